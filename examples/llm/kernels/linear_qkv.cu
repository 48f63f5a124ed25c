// The product with W_qkv for many rows, with what rope.cu does behind it:
// queries and keys are turned, keys and values go into the cache. That saves a
// launch in each layer.
// requires: sm_80
#include "fp8.cuh"
#include "linear.cuh"
#include "rows.cuh"

// x is n x inputs. W is outputs x inputs as for linear.cu; its outputs are
// `heads` queries, `kv_heads` keys and `kv_heads` values of head_dim elements,
// an even number. Row r of q, and the keys and values of slots[r] of the cache,
// become what rope.cu makes of the product, with pairs that are neighbors. The
// product stays fp32 until it is turned; rope.cu gets it as bf16, so the last
// bit may differ. Rows of q are q_stride elements apart, an even number.
// Nothing is stored for a slot that is none of the cache's slot_count slots,
// such as -1.
//
// BM to STAGES, the grid and shared memory are those of linear.cu.
// Cache: bf16, or FP8 with `scales` as in fp8.cuh.
//
// As in linear.cu no sum is split: bits depend on no tile and on no other row.
// --8<-- [start:kernel]
template <int BM, int BN, int BK, int WM, int WN, int STAGES,
          class Cache = __nv_bfloat16>
__global__ void __launch_bounds__(Tile<BM, BN, BK, WM, WN, STAGES>::THREADS,
                                  Tile<BM, BN, BK, WM, WN, STAGES>::BLOCKS)
    linear_qkv(const __nv_bfloat16* __restrict__ x,
               const __nv_bfloat16* __restrict__ W,
               const int* __restrict__ positions, const int* __restrict__ slots,
               const float2* __restrict__ table, __nv_bfloat16* __restrict__ q,
               long long q_stride, Cache* __restrict__ keys,
               Cache* __restrict__ values, int slot_count, int n, int inputs,
               int heads, int kv_heads, int head_dim,
               const float* __restrict__ scales) {
  using T = Tile<BM, BN, BK, WM, WN, STAGES>;
  constexpr int M = T::M, N = T::N;
  const int outputs = (heads + 2 * kv_heads) * head_dim;
  int top, left;
  T::find(blockIdx.x, n, outputs, top, left);
  const int lane = threadIdx.x % 32;
  const int row = top + T::warp_row() + lane / 4;
  const int column = left + T::warp_column() + lane % 4 * 2;
  // Positions and slots come from far away: they are loaded before the product.
  int position[M][2], slot[M][2];
#pragma unroll
  for (int i = 0; i < M; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = row + i * 16 + half * 8;
      position[i][half] = r < n ? positions[r] : 0;
      slot[i][half] = r < n ? slots[r] : -1;
    }
  typename T::Sums sum = {};
  T::add_slabs(sum, x, W, top, left, n, outputs, inputs, 0,
               (inputs + BK - 1) / BK);

  // --8<-- [start:epilogue]
#pragma unroll
  for (int j = 0; j < 2 * N; ++j) {
    const int c = column + j * 8;
    if (c >= outputs) break;
    const int head = c / head_dim, at = c % head_dim;
    const int kv = head - heads;  // from 0 on: keys, and then values
    const bool turns = kv < kv_heads;
    float of_cache = 1.0f;  // factor of what goes into the cache
    if (sizeof(Cache) == 1 && kv >= 0) of_cache /= scales[kv];
    float2 by[M][2];
#pragma unroll
    for (int i = 0; i < M; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        by[i][half] = make_float2(1.0f, 0.0f);
        if (turns)
          by[i][half] =
              table[(long long)position[i][half] * (head_dim / 2) + at / 2];
      }
#pragma unroll
    for (int i = 0; i < M; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = row + i * 16 + half * 8;
        const float a = sum[i][j][2 * half], b = sum[i][j][2 * half + 1];
        const float2 turn = by[i][half];
        // A value stays as it is, also if it is infinite.
        const float first = turns ? a * turn.x - b * turn.y : a;
        const float second = turns ? a * turn.y + b * turn.x : b;
        if (kv < 0) {
          if (r < n) store(q + r * q_stride + c, {first, second});
        } else if ((unsigned)slot[i][half] < (unsigned)slot_count) {
          Cache* const to = turns ? keys : values;
          const int of_kv = turns ? kv : kv - kv_heads;
          store(to + ((long long)slot[i][half] * kv_heads + of_kv) * head_dim +
                    at,
                {first * of_cache, second * of_cache});
        }
      }
  }
  // --8<-- [end:epilogue]
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance linear_qkv<64, 128, 64, 32, 64, 3>
// @instance linear_qkv<64, 64, 64, 32, 32, 8>
// @instance linear_qkv<32, 64, 64, 16, 32, 8>
// @instance linear_qkv<16, 64, 64, 16, 16, 4, __nv_fp8_e4m3>
// @instance linear_qkv<16, 32, 64, 16, 16, 8>
