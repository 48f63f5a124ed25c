// The bilinear warp, faster: a thread makes four neighbors of the output. Its
// positions follow from the first one by sums, which are exact, and two
// neighbors in the image come by three words of four bytes.
//
// Blocks may have any shape.
//
// @instance warp_words<CONSTANT>
// @instance warp_words<REPLICATE>
#include "../resize/words.cuh"
#include "map.cuh"
#include "sample.cuh"

// --8<-- [start:words]
// out and image begin at multiples of four bytes.
template <int border>
__global__ void warp_words(unsigned char* __restrict__ out,
                           const unsigned char* __restrict__ image, Fixed m,
                           int out_height, int out_width, int height, int width,
                           float value) {
  const int x = (blockIdx.x * blockDim.x + threadIdx.x) * PIXELS;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= out_width || y >= out_height) return;
  const long long first_column = along(m.a, m.b, m.c, x, y);
  const long long first_row = along(m.d, m.e, m.f, x, y);
  Position column[PIXELS], row[PIXELS];
  bool all = true;  // READ bytes follow in the row below, too
#pragma unroll
  for (int p = 0; p < PIXELS; ++p) {
    column[p] = split(first_column + p * m.a);
    row[p] = split(first_row + p * m.d);
    all = all && column[p].whole >= 0 && column[p].whole < width - 1 &&
          row[p].whole >= 0 && row[p].whole < height - 2;
  }
  unsigned v[PIXELS * 3];
  if (all) {  // four pixels around each position: no border, no branch
#pragma unroll
    for (int p = 0; p < PIXELS; ++p) {
      const long long at =
          3 * ((long long)row[p].whole * width + column[p].whole);
      const Pair up = load_words(image, at);
      const Pair low = load_words(image, at + 3LL * width);
#pragma unroll
      for (int c = 0; c < 3; ++c) {
        const float a = mixed(up.at[c], up.at[3 + c], column[p].between);
        const float b = mixed(low.at[c], low.at[3 + c], column[p].between);
        v[3 * p + c] = to_byte(fmaf(row[p].between, b - a, a));
      }
    }
  } else {
#pragma unroll
    for (int p = 0; p < PIXELS; ++p) {
      float down[2], across[2], sum[3];
      weigh(row[p].between, down);
      weigh(column[p].between, across);
      sample<2, border>(image, height, width, row[p].whole, column[p].whole,
                        down, across, value, sum);
#pragma unroll
      for (int c = 0; c < 3; ++c) v[3 * p + c] = byte(sum[c]);
    }
  }
  const long long to = 3 * ((long long)y * out_width + x);
  store(out + to, v, min(PIXELS, out_width - x), to % 4 == 0);
}
// --8<-- [end:words]
