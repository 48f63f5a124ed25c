// Attention of a tile of queries over all keys, tile by tile, in fp32: no score
// ever leaves the SM.
//
//   Four, four       four floats that move at once
//   copy             rows of a matrix into shared memory
//   flash_principle  the kernel
//
// requires: sm_75

// --8<-- [start:sizes]
constexpr int D = 64;                   // elements of a head
constexpr int QUERIES = 64, KEYS = 32;  // in a tile
constexpr int ROW = D + 4;              // a row in shared memory, padded
// --8<-- [end:sizes]

struct alignas(16) Four {
  float at[4];
};
__device__ Four& four(float* from) { return *reinterpret_cast<Four*>(from); }

// --8<-- [start:copy]
// Copies ROWS rows of a matrix of n rows, from row `first` on; zeros stand for
// rows behind the last.
template <int ROWS>
__device__ void copy(float (&to)[ROWS][ROW], const float* from, int first,
                     int n) {
  for (int i = threadIdx.x; i < ROWS * D / 4; i += blockDim.x) {
    const int row = i / (D / 4), column = i % (D / 4) * 4;
    const size_t at = (size_t)(first + row) * D + column;
    Four x = {};
    if (first + row < n) x = *reinterpret_cast<const Four*>(from + at);
    four(&to[row][column]) = x;
  }
}
// --8<-- [end:copy]

// q, k, v and out are [heads, n, D]. Grid: tiles of queries x heads, 256
// threads. Thread (ty, tx) has 4 queries: for each, 2 scores with a tile of
// keys, and 4 elements of the result. The 16 threads of a query are half a
// warp.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(256)
    flash_principle(const float* __restrict__ q, const float* __restrict__ k,
                    const float* __restrict__ v, float* __restrict__ out, int n,
                    float scale, int causal) {
  __shared__ __align__(16) float q_tile[QUERIES][ROW], k_tile[KEYS][ROW],
      v_tile[KEYS][ROW], weights[QUERIES][KEYS + 4];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int top = blockIdx.x * QUERIES;  // the first query of this block
  const size_t head = (size_t)blockIdx.y * n * D;
  copy(q_tile, q + head, top, n);

  float base[4], sum[4] = {}, o[4][4] = {};
  for (int i = 0; i < 4; ++i) base[i] = -INFINITY;
  const int end = causal ? min(n, top + QUERIES) : n;  // keys from here: unseen
  for (int first = 0; first < end; first += KEYS) {
    __syncthreads();  // no thread needs the last tile of keys anymore
    copy(k_tile, k + head, first, n);
    copy(v_tile, v + head, first, n);
    __syncthreads();

    // --8<-- [start:scores]
    float s[4][2] = {};
#pragma unroll
    for (int d = 0; d < D; d += 4) {
      const Four b[2] = {four(&k_tile[tx][d]), four(&k_tile[tx + 16][d])};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Four a = four(&q_tile[4 * ty + i][d]);
#pragma unroll
        for (int e = 0; e < 8; ++e)
          s[i][e / 4] += a.at[e % 4] * b[e / 4].at[e % 4];
      }
    }
    // --8<-- [end:scores]
    // --8<-- [start:softmax]
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int last = causal ? min(n - 1, top + 4 * ty + i) : n - 1;
      for (int j = 0; j < 2; ++j)
        s[i][j] = first + tx + 16 * j <= last ? s[i][j] * scale : -INFINITY;
      float most = fmaxf(s[i][0], s[i][1]);
      for (int away = 8; away > 0; away /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, away));
      most = fmaxf(most, base[i]);
      const float factor = expf(base[i] - most);  // 0 for the first tile
      base[i] = most;
      sum[i] *= factor;
      for (int c = 0; c < 4; ++c) o[i][c] *= factor;
      for (int j = 0; j < 2; ++j) {
        const float weight = expf(s[i][j] - most);  // 0 for an unseen key
        sum[i] += weight;
        weights[4 * ty + i][tx + 16 * j] = weight;
      }
    }
    __syncwarp();
    // --8<-- [end:softmax]
    // --8<-- [start:values]
#pragma unroll
    for (int key = 0; key < KEYS; key += 4) {
      Four w[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) w[i] = four(&weights[4 * ty + i][key]);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const Four x = four(&v_tile[key + e][4 * tx]);
#pragma unroll
        for (int i = 0; i < 16; ++i)
          o[i / 4][i % 4] += w[i / 4].at[e] * x.at[i % 4];
      }
    }
    // --8<-- [end:values]
  }

  // --8<-- [start:store]
  for (int i = 0; i < 4; ++i) {
    for (int away = 8; away > 0; away /= 2)
      sum[i] += __shfl_xor_sync(~0u, sum[i], away);
    const int row = top + 4 * ty + i;
    for (int c = 0; c < 4; ++c) o[i][c] /= sum[i];
    if (row < n)
      four(out + head + (size_t)row * D + 4 * tx) = {o[i][0], o[i][1], o[i][2],
                                                     o[i][3]};
  }
  // --8<-- [end:store]
}
// --8<-- [end:kernel]
