// C = alpha op(A) op(B) + beta C where C has few rows or few columns. Each word
// of the long matrix is needed for a few FMAs only, so what counts is to read
// it once, as fast as memory delivers it.
//
//   place, load4    which four words of a line a lane has, and their loads
//   add_depths      the products of several depths, where X lies across
//   skinny          the kernel
//
// requires: sm_80
#include <cuda_pipeline.h>

#include "ptx/ticket.cuh"

// Which of 4 * LANES neighboring words is a lane's word number `word`, 0 to 3.
// A lane has four words: side by side where a load may take 16 bytes (VEC = 4),
// otherwise (VEC = 1) LANES apart, so that lanes side by side load words side
// by side.
template <int VEC, int LANES>
__device__ __forceinline__ int place(int word) {
  const int lane = threadIdx.x % LANES;
  return VEC == 4 ? lane * 4 + word : lane + word * LANES;
}

// Load these four words of the part of a line that begins at its word `at`;
// zeros stand from word `end` on.
// --8<-- [start:load]
template <int VEC, int LANES>
__device__ __forceinline__ void load4(float (&to)[4], const float* line, int at,
                                      int end) {
  if constexpr (VEC == 4) {
    const int i = at + place<4, LANES>(0);
    float4 four = {0, 0, 0, 0};
    if (i < end) four = *reinterpret_cast<const float4*>(line + i);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  } else {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const int i = at + place<1, LANES>(w);
      to[w] = i < end ? line[i] : 0.0f;
    }
  }
}
// --8<-- [end:load]

// --8<-- [start:depths]
// sum += products of `count` depths. A depth is a line of X, of which the lane
// has four words, and FEW words of Y, the same for all lanes at that depth. All
// loads are on their way before the first of them is needed. WHOLE: `count` is
// BATCH; if it is less, the last depth is loaded again in place of those that
// are missing, and not used.
template <int BATCH, int VEC, int LANES, bool WHOLE, int FEW>
__device__ __forceinline__ void add_depths(float (&sum)[4][FEW], const float* X,
                                           size_t x_step, int first, int many,
                                           const float* Y, size_t y_step,
                                           int y_few, int few, int count) {
  float x[BATCH][4], y[BATCH][FEW];
#pragma unroll
  for (int b = 0; b < BATCH; ++b) {
    const int d = WHOLE ? b : min(b, count - 1);
    load4<VEC, LANES>(x[b], X + d * x_step, first, many);
#pragma unroll
    for (int c = 0; c < FEW; ++c)
      y[b][c] = Y[d * y_step + (size_t)min(c, few - 1) * y_few];
  }
#pragma unroll
  for (int b = 0; b < BATCH; ++b) {
    if (WHOLE || b < count) {
#pragma unroll
      for (int c = 0; c < FEW; ++c)
#pragma unroll
        for (int r = 0; r < 4; ++r) sum[r][c] += x[b][r] * y[b][c];
    }
  }
}
// --8<-- [end:depths]

// many x few results of X (many x k) and Y (k x few). A row of X lies ALONG the
// depth, ldx words from row to row, or X lies across, as k x many. Word (d, c)
// of Y is at d * y_depth + c * y_few, result (r, c) at r * c_many + c * c_few.
//
//   FEW    columns of Y that are computed, `few` or more
//   ALONG  whether rows of X lie along the depth
//   VEC    words per load of X, 1 or 4; 4 asks for lines of X that begin at
//          multiples of 16 bytes, and that are a multiple of 4 words long
//   ROWS   rows of X for a block, a multiple of 4
//   WARPS  warps of a block. Along, each has 4 of the rows, and WARPS is a
//          multiple of ROWS / 4; across, ROWS / 4 lanes have all of the rows.
//          The other warps or lanes have the same rows and share the depth
//
// Grid: `parts` blocks, each with `per_part` of the depth (a multiple of 4),
// for each group of ROWS rows. partials: a word for each result of each block;
// tickets: a 0 for each group. Launches that may overlap need their own.
// --8<-- [start:kernel]
template <int FEW, bool ALONG, int VEC, int ROWS, int WARPS>
__global__ void __launch_bounds__(32 * WARPS, (FEW > 1 ? 16 : 24) / WARPS)
    skinny(int many, int few, int k, float alpha, const float* __restrict__ X,
           int ldx, const float* __restrict__ Y, int y_depth, int y_few,
           float beta, float* __restrict__ C, int c_many, int c_few, int parts,
           int per_part, float* __restrict__ partials,
           unsigned* __restrict__ tickets) {
  constexpr int THREADS = 32 * WARPS, LANES = ALONG ? 32 : ROWS / 4;
  constexpr int ROW_WARPS = ROWS / 4;  // along
  constexpr int SHARING = ALONG ? WARPS / ROW_WARPS : THREADS / LANES;
  constexpr int CHUNK = FEW > 2 ? 512 : 2048 / FEW;  // depths of Y at a time
  constexpr int PITCH = CHUNK + 4, RESULTS = ROWS * FEW;
  constexpr int OF_Y = ALONG ? 2 * FEW * PITCH : 0, LEFT = SHARING * RESULTS;
  __shared__ __align__(16) float words[OF_Y > LEFT ? OF_Y : LEFT];
  __shared__ bool last;
  const int lane = threadIdx.x % LANES;
  const int row_warp = threadIdx.x / 32 % ROW_WARPS;
  const int sharer = threadIdx.x / (ALONG ? 32 * ROW_WARPS : LANES);
  const int group = blockIdx.x / parts, part = blockIdx.x % parts;
  const int first = group * ROWS + (ALONG ? row_warp * 4 : 0);
  if (alpha == 0.0f) k = 0;
  if (k == 0) alpha = 0.0f;
  // This block's part of the depth begins here.
  const int depth = max(0, min(per_part, k - part * per_part));
  X += (size_t)part * per_part * (ALONG ? 1 : ldx);
  Y += (size_t)part * per_part * y_depth;
  float sum[4][FEW] = {};

  if constexpr (ALONG) {
    // --8<-- [start:along]
    // A lane has 4 rows, and of 128 words of each it has 4. It needs Y at the
    // same 4 depths: these words come from shared memory. They are copied there
    // chunk after chunk, past the registers, while X is read.
    const auto fetch = [&](float* y, int chunk) {
      if (chunk >= depth) return;
#pragma unroll 4
      for (int i = threadIdx.x; i < FEW * CHUNK; i += THREADS) {
        // Neighboring threads copy neighboring words.
        const int d = y_few == 1 ? i / FEW : i % CHUNK;
        const int c = y_few == 1 ? i % FEW : i / CHUNK;
        if (chunk + d < depth && c < few)
          __pipeline_memcpy_async(
              &y[c * PITCH + d],
              &Y[(size_t)(chunk + d) * y_depth + (size_t)c * y_few], 4);
        else
          y[c * PITCH + d] = 0.0f;
      }
      __pipeline_commit();
    };
    int buffer = 0;
    fetch(words, 0);
    // The first words of X are on their way while the block waits for Y.
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int d = sharer * 128 + lane * 4;
      if (first + r < many && d < depth)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(
            X + (size_t)(first + r) * ldx + d));
    }
    for (int chunk = 0; chunk < depth; chunk += CHUNK) {
      const float* const y_chunk = words + buffer * FEW * PITCH;
      buffer ^= 1;
      __pipeline_wait_prior(0);
      __syncthreads();
      fetch(words + buffer * FEW * PITCH, chunk + CHUNK);
      const int deep = min(CHUNK, depth - chunk);
#pragma unroll(FEW > 4 ? 1 : 2)
      for (int d = sharer * 128; d < deep; d += SHARING * 128) {
        float x[4][4];
#pragma unroll
        for (int r = 0; r < 4; ++r)
          load4<VEC, 32>(x[r], X + (size_t)(first + r) * ldx + chunk, d,
                         first + r < many ? deep : 0);
#pragma unroll
        for (int c = 0; c < FEW; ++c) {
          float y[4];
          load4<VEC, 32>(y, y_chunk + c * PITCH, d, CHUNK);
#pragma unroll
          for (int r = 0; r < 4; ++r)
#pragma unroll
            for (int w = 0; w < 4; ++w) sum[r][c] += x[r][w] * y[w];
        }
      }
    }
    // A row's sum is spread over the lanes.
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
      for (int c = 0; c < FEW; ++c)
#pragma unroll
        for (int away = 16; away > 0; away /= 2)
          sum[r][c] += __shfl_xor_sync(~0u, sum[r][c], away);
    // --8<-- [end:along]
  } else {
    // --8<-- [start:across]
    // A lane has 4 columns of X, which are 4 rows of C. It adds the products of
    // BATCH depths at a time, and in the end those of the depths that are left.
    constexpr int BATCH = FEW > 4 ? 4 : 8;
    const size_t x_step = (size_t)SHARING * ldx;
    const size_t y_step = (size_t)SHARING * y_depth;
    const float *x = X + (size_t)sharer * ldx,
                *y = Y + (size_t)sharer * y_depth;
    int left = (depth - sharer + SHARING - 1) / SHARING;
    for (; left >= BATCH;
         left -= BATCH, x += BATCH * x_step, y += BATCH * y_step)
      add_depths<BATCH, VEC, LANES, true>(sum, x, x_step, first, many, y,
                                          y_step, y_few, few, BATCH);
    if (left > 0)
      add_depths<BATCH, VEC, LANES, false>(sum, x, x_step, first, many, y,
                                           y_step, y_few, few, left);
    // --8<-- [end:across]
  }

  // --8<-- [start:reduce]
  // All threads leave their sums in shared memory; then one thread for each
  // result adds the sums of this result, always in the same order.
  __syncthreads();
  if (!ALONG || lane == 0) {
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
      for (int c = 0; c < FEW; ++c)
        words[sharer * RESULTS + c * ROWS +
              (ALONG ? row_warp * 4 + r : place<VEC, LANES>(r))] = sum[r][c];
  }
  __syncthreads();
  float* const all = partials + (size_t)group * parts * RESULTS;
  for (int i = threadIdx.x; i < RESULTS; i += THREADS) {
    float total = 0.0f;
#pragma unroll
    for (int s = 0; s < SHARING; ++s) total += words[s * RESULTS + i];
    words[i] = total;
    if (parts > 1) all[(size_t)part * RESULTS + i] = total;
  }
  // --8<-- [end:reduce]

  // The last block of a group adds what all of them have left, as in
  // ladder/final.cu.
  if (parts > 1) {
    __syncthreads();
    if (threadIdx.x == 0) last = last_to_arrive(tickets + group, parts);
    __syncthreads();
    if (!last) return;
    // If there are many parts, a warp adds those of a result; if few, a thread.
    const int lanes = parts > 16 ? 32 : 1;
    for (int i = threadIdx.x / lanes; i < RESULTS; i += THREADS / lanes) {
      float total = 0.0f;
#pragma unroll 8
      for (int p = threadIdx.x % lanes; p < parts; p += lanes)
        total += __ldcg(all + (size_t)p * RESULTS + i);
      for (int away = lanes / 2; away > 0; away /= 2)
        total += __shfl_xor_sync(~0u, total, away);
      words[i] = total;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < RESULTS; i += THREADS) {
    const int row = c_few == 1 ? i / FEW : i % ROWS;
    const int c = c_few == 1 ? i % FEW : i / ROWS;
    if (group * ROWS + row < many && c < few) {
      float* const to =
          C + (size_t)(group * ROWS + row) * c_many + (size_t)c * c_few;
      const float product = alpha * words[c * ROWS + row];
      *to = beta == 0.0f ? product : product + beta * *to;
    }
  }
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance skinny<1,true,4,32,8>
// @instance skinny<4,true,1,4,8>
// @instance skinny<8,true,4,16,8>
// @instance skinny<8,false,4,32,8>
// @instance skinny<1,false,4,32,16>
// @instance skinny<4,false,1,32,2>
