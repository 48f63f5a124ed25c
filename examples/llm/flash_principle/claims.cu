// What others say of FlashAttention, as kernels.
//
//   read_shared  how fast shared memory can be read
//   first_way    attention in tiles with keys in the outer loop and a thread
//                for each query of a tile, in the scheme of CUDATutorial 17/02
//
// requires: sm_75
// expect: spills (two words of read_shared on sm_100)
// @instance first_way<16, 32>
// @instance first_way<32, 32>

constexpr int WORDS = 2048;  // of 16 bytes

// words [WORDS], sums [blocks, 1024]. Lanes that follow each other read words
// that follow each other.
extern "C" __global__ void __launch_bounds__(1024)
    read_shared(const uint4* __restrict__ words, int passes,
                unsigned* __restrict__ sums) {
  __shared__ uint4 held[WORDS];
  for (int i = threadIdx.x; i < WORDS; i += 1024) held[i] = words[i];
  __syncthreads();
  unsigned sum = 0;
#pragma unroll 16
  for (int pass = 0; pass < passes; ++pass) {
    const uint4 x = held[(threadIdx.x + 32 * pass) % WORDS];
    sum += x.x ^ x.y ^ x.z ^ x.w;
  }
  sums[blockIdx.x * 1024 + threadIdx.x] = sum;
}

// q, k, v and out are [heads, n, 64]; most and total, [heads, n], begin as -inf
// and 0, out as 0. n is a multiple of both tiles. Grid: heads, block: KEYS.
template <int QUERIES, int KEYS>
__global__ void first_way(const float* __restrict__ q,
                          const float* __restrict__ k,
                          const float* __restrict__ v, int n, float scale,
                          float* __restrict__ most, float* __restrict__ total,
                          float* __restrict__ out) {
  static_assert(QUERIES <= KEYS, "a thread has at most one query");
  constexpr int D = 64;
  __shared__ float q_tile[QUERIES][D], k_tile[KEYS][D], v_tile[KEYS][D];
  __shared__ float s[QUERIES][KEYS];
  const int t = threadIdx.x;
  const size_t head = (size_t)blockIdx.x * n;
  for (int key = 0; key < n; key += KEYS) {
    for (int d = 0; d < D; ++d) {
      k_tile[t][d] = k[(head + key + t) * D + d];
      v_tile[t][d] = v[(head + key + t) * D + d];
    }
    __syncthreads();
    for (int top = 0; top < n && t < QUERIES; top += QUERIES) {
      const size_t row = head + top + t;
      for (int d = 0; d < D; ++d) q_tile[t][d] = q[row * D + d];
      float here = -INFINITY, sum = 0;
      for (int j = 0; j < KEYS; ++j) {
        float score = 0;
        for (int d = 0; d < D; ++d) score += q_tile[t][d] * k_tile[j][d];
        s[t][j] = score * scale;
        here = fmaxf(here, s[t][j]);
      }
      for (int j = 0; j < KEYS; ++j) {
        s[t][j] = __expf(s[t][j] - here);
        sum += s[t][j];
      }
      const float old = most[row], base = fmaxf(old, here);
      const float before = __expf(old - base) * total[row];
      const float now = __expf(here - base), all = before + now * sum;
      for (int d = 0; d < D; ++d) {
        float mixed = 0;
        for (int j = 0; j < KEYS; ++j) mixed += s[t][j] * v_tile[j][d];
        out[row * D + d] = (before * out[row * D + d] + now * mixed) / all;
      }
      most[row] = base;
      total[row] = all;
    }
    __syncthreads();
  }
}
