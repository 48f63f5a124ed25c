// im2col: the windows of some images, written as a matrix.
//
//   im2col_words   rung 1: a thread finds where its word of the matrix is from
//   im2col_places  rung 2: a thread finds its window's place once
//   im2col_four    rung 3: four places, and stores of 16 bytes
//   im2col_row     rung 4: the words of a row are loaded once for its windows
//
// A row of the matrix is a channel and a place in the window, (channel, row,
// column); a column is a window: (image, row, column of the result). Weights
// that lie as [filter][channel][row][column] are the other factor as they are.
// The rows of a group of channels lie together.
//
// from: the first of s.images images, [image][channel][row][column]. pitch:
// words from one row of the matrix to the next, which is the number of columns
// rounded up to a multiple of 4; columns beyond are written as zeros.
//
// requires: sm_75
// @instance im2col_row<3,1>
// @instance im2col_row<3,2>
// @instance im2col_row<7,2>
#include "images/shape.cuh"

// --8<-- [start:words]
// One thread for each word: grid.x * block threads at least.
extern "C" __global__ void im2col_words(const Shape s, const long long pitch,
                                        const float* __restrict__ from,
                                        float* __restrict__ matrix) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const int all = s.groups * s.channels;
  if (i >= pitch * all * window(s)) return;
  const long long column = i % pitch, row = i / pitch;
  const int place = (int)(column % plane(s));
  const long long image = column / plane(s);
  const int q = (int)(row % s.columns), r = (int)(row / s.columns % s.rows);
  const int channel = (int)(row / window(s));
  const int y = place / s.out_width * s.stride_y - s.pad_y + r * s.dilation_y;
  const int x = place % s.out_width * s.stride_x - s.pad_x + q * s.dilation_x;
  const bool inside =
      image < s.images && y >= 0 && y < s.height && x >= 0 && x < s.width;
  matrix[i] = inside
                  ? from[((image * all + channel) * s.height + y) * s.width + x]
                  : 0.0f;
}
// --8<-- [end:words]

// --8<-- [start:places]
// One thread for each column: grid.x * block threads at least. Blocks of row b
// (grid.y) have channels b, b + gridDim.y ...
extern "C" __global__ void im2col_places(const Shape s, const long long pitch,
                                         const float* __restrict__ from,
                                         float* __restrict__ matrix) {
  const long long column = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= pitch) return;
  const int all = s.groups * s.channels;
  const int place = (int)(column % plane(s));
  const long long image = column / plane(s);
  const int top = place / s.out_width * s.stride_y - s.pad_y,
            left = place % s.out_width * s.stride_x - s.pad_x;
  for (int channel = blockIdx.y; channel < all; channel += gridDim.y) {
    const float* const words =
        from + (image * all + channel) * ((long long)s.height * s.width);
    float* to = matrix + (long long)channel * window(s) * pitch + column;
    for (int r = 0; r < s.rows; ++r) {
      const int y = top + r * s.dilation_y;
      for (int q = 0; q < s.columns; ++q, to += pitch) {
        const int x = left + q * s.dilation_x;
        const bool inside =
            image < s.images && y >= 0 && y < s.height && x >= 0 && x < s.width;
        *to = inside ? words[y * s.width + x] : 0.0f;
      }
    }
  }
}
// --8<-- [end:places]

// The places of four columns: the first by divisions, each other one from the
// one before it.
struct Four {
  int top[4], left[4];
  long long image[4];

  __device__ __forceinline__ Four(const Shape& s, long long column) {
    // Divisions of 32 bits take far fewer instructions.
    const unsigned all = (unsigned)plane(s), few = (unsigned)column;
    image[0] = column >> 32 ? column / all : few / all;
    const unsigned place = (unsigned)(column - image[0] * all);
    int row = (int)(place / (unsigned)s.out_width),
        at = (int)(place % (unsigned)s.out_width);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      top[i] = row * s.stride_y - s.pad_y;
      left[i] = at * s.stride_x - s.pad_x;
      if (i == 3) break;
      image[i + 1] = image[i];
      if (++at == s.out_width) at = 0, ++row;
      if (row == s.out_height) row = 0, ++image[i + 1];
    }
  }
};

// STREAMED: nobody reads them again soon.
__device__ __forceinline__ void store(float* to, const float4& words) {
#if STREAMED
  __stcs(reinterpret_cast<float4*>(to), words);
#else
  *reinterpret_cast<float4*>(to) = words;
#endif
}

// --8<-- [start:four]
// One thread for each four columns; the rest as above.
extern "C" __global__ void im2col_four(const Shape s, const long long pitch,
                                       const float* __restrict__ from,
                                       float* __restrict__ matrix) {
  const long long column =
      4 * ((long long)blockIdx.x * blockDim.x + threadIdx.x);
  if (column >= pitch) return;
  const int all = s.groups * s.channels;
  const long long words = (long long)s.height * s.width;
  const Four of(s, column);
  for (int channel = blockIdx.y; channel < all; channel += gridDim.y) {
    float* to = matrix + (long long)channel * window(s) * pitch + column;
    for (int r = 0; r < s.rows; ++r) {
      for (int q = 0; q < s.columns; ++q, to += pitch) {
        float word[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int y = of.top[i] + r * s.dilation_y,
                    x = of.left[i] + q * s.dilation_x;
          const bool inside = of.image[i] < s.images && y >= 0 &&
                              y < s.height && x >= 0 && x < s.width;
          word[i] = inside ? from[(of.image[i] * all + channel) * words +
                                  y * s.width + x]
                           : 0.0f;
        }
        store(to, make_float4(word[0], word[1], word[2], word[3]));
      }
    }
  }
}
// --8<-- [end:four]

// --8<-- [start:row]
// As im2col_four, for windows of COLUMNS, a stride of STRIDE, no dilation to
// the right. The windows of four places in one row share most of their words.
template <int COLUMNS, int STRIDE>
__global__ void im2col_row(const Shape s, const long long pitch,
                           const float* __restrict__ from,
                           float* __restrict__ matrix) {
  constexpr int WORDS = COLUMNS + 3 * STRIDE;
  const long long column =
      4 * ((long long)blockIdx.x * blockDim.x + threadIdx.x);
  if (column >= pitch) return;
  const int all = s.groups * s.channels;
  const long long words = (long long)s.height * s.width;
  const Four of(s, column);
  const bool one = of.top[0] == of.top[3] && of.image[0] == of.image[3];
  for (int channel = blockIdx.y; channel < all; channel += gridDim.y) {
    float* to = matrix + (long long)channel * window(s) * pitch + column;
    for (int r = 0; r < s.rows; ++r) {
      // Word i of place k, where the row has WORDS in all: k * STRIDE + i.
      const auto load = [&](int k, int i) {
        const int y = of.top[k] + r * s.dilation_y, x = of.left[k] + i;
        const bool inside = of.image[k] < s.images && y >= 0 && y < s.height &&
                            x >= 0 && x < s.width;
        return inside ? from[(of.image[k] * all + channel) * words +
                             y * s.width + x]
                      : 0.0f;
      };
      // --8<-- [start:row-loads]
      if (one) {
        float word[WORDS];
#pragma unroll
        for (int i = 0; i < WORDS; ++i) word[i] = load(0, i);
#pragma unroll
        for (int q = 0; q < COLUMNS; ++q, to += pitch)
          store(to, make_float4(word[q], word[q + STRIDE], word[q + 2 * STRIDE],
                                word[q + 3 * STRIDE]));
      }
      // --8<-- [end:row-loads]
      if (!one) {
#pragma unroll 1
        for (int q = 0; q < COLUMNS; ++q, to += pitch)
          store(to,
                make_float4(load(0, q), load(1, q), load(2, q), load(3, q)));
      }
    }
  }
}
// --8<-- [end:row]
