// A step of decode with fewer launches: its products also do what stands
// between them. For 1 to 8 rows of x, launches are much of what a step takes.
//
//   x_pitch         bytes from row to row of the normalized x
//   normalize       RMSNorm of all rows of x into shared memory
//   normed_product  the product of that, for a block
//   norm_qkv        RMSNorm, W_qkv, RoPE, and the store into the cache
//   norm_gate_up    RMSNorm, W_gate and W_up, and SwiGLU
//
// requires: sm_80
#include "fp8.cuh"
#include "gemv.cuh"
#include "ptx/overlap.cuh"
#include "rows.cuh"

// Bytes between two rows of the normalized x in shared memory: an odd multiple
// of 32 bytes, so that 4 rows are read from different banks. Zeros fill the
// depth up to a multiple of 64.
__device__ __forceinline__ int x_pitch(int inputs) {
  return (inputs + 63) / 64 * 128 + 32;
}

// --8<-- [start:norm]
// Normalizes the 8 rows of x as norms.cu does, into shared memory as bf16. A
// warp has a row, and waits for no other warp. Every block does this for
// itself: that takes no longer than if one block did it for all, and no block
// waits for another launch. Missing rows become zeros. meanwhile(), a function
// of type F: work to do while x is loaded.
template <class F>
__device__ __forceinline__ void normalize(unsigned char* to, const float* x,
                                          const float* __restrict__ weight,
                                          int rows, int inputs, float eps,
                                          F meanwhile) {
  constexpr int KEPT = 6, CHUNK = KEPT * 128;  // elements that a warp keeps
  const int row = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= 8) {
    meanwhile();
    wait_for_previous();
    return;
  }
  const int inside = row < rows ? inputs : 0;
  x += row < rows ? (size_t)row * inputs : 0;
  to += row * x_pitch(inputs);
  const int padded = (inputs + 63) / 64 * 64;
  // The weights are loaded before x is there, since they alone come from far
  // away.
  Vector<float, 4> v[KEPT], w[KEPT];
  load_share<32>(w, weight + lane * 4, inside - lane * 4);
  meanwhile();
  wait_for_previous();
  load_share<32>(v, x + lane * 4, inside - lane * 4);
  float squares = 0.0f;
#pragma unroll 1
  for (int chunk = 0; chunk < padded; chunk += CHUNK) {
    const int c = chunk + lane * 4;
    if (chunk) load_share<32>(v, x + c, inside - c);
#pragma unroll
    for (int k = 0; k < KEPT; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i) squares += v[k].at[i] * v[k].at[i];
  }
  squares = over_row<32>(squares, nullptr, Sum());
  const float scale = rsqrtf(squares * (1.0f / inputs) + eps);
#pragma unroll 1
  for (int chunk = 0; chunk < padded; chunk += CHUNK) {
    const int c = chunk + lane * 4;
    if (padded > CHUNK) {  // more than one chunk: x again, now from L1
      load_share<32>(v, x + c, inside - c);
      load_share<32>(w, weight + c, inside - c);
    }
#pragma unroll
    for (int k = 0; k < KEPT; ++k) {
      if (c + k * 128 >= padded) break;
      float y[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) y[i] = v[k].at[i] * scale * w[k].at[i];
      if (c + k * 128 >= inside) y[0] = y[1] = y[2] = y[3] = 0.0f;
      store(reinterpret_cast<__nv_bfloat16*>(to) + c + k * 128, y);
    }
  }
}
// --8<-- [end:norm]

// Returns the sums of this block's outputs, for `merge` of gemv.cuh. It is the
// product of gemv.cu, but x stays in shared memory. The first spans of W are
// copied while x is normalized. Parameters: see below.
// --8<-- [start:product]
template <class Format, int OUTPUTS, int PARTS, int STAGES, class F>
__device__ __forceinline__ const float* normed_product(
    const float* x, const float* __restrict__ weight,
    const void* __restrict__ W, int rows, int outputs, int inputs, float eps,
    F meanwhile) {
  constexpr int SPAN = Format::SPAN, STAGE = OUTPUTS * Format::PITCH;
  extern __shared__ __align__(128) unsigned char shared[];
  unsigned char* const normed = shared + STAGES * STAGE;
  const Matrix<Format, OUTPUTS, OUTPUTS / 16 * PARTS> matrix(
      W, blockIdx.x * OUTPUTS, outputs, inputs);
  const int spans = (inputs + SPAN - 1) / SPAN;
  const auto copy = [&](int span) {
    if (span < spans) matrix.copy(shared + span % STAGES * STAGE, span);
    commit();
  };
  begin_next();
#pragma unroll 1
  for (int span = 0; span < STAGES - 1; ++span) copy(span);
  normalize(normed, x, weight, rows, inputs, eps, meanwhile);

  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4;
  const int strip = warp / PARTS * 16, part = warp % PARTS;
  const int low = matrix.at(strip + g);
  const unsigned char* const of_x = normed + g * x_pitch(inputs);
  float sum[4] = {};
  for (int span = 0; span < spans; ++span) {
    wait_for_all_but<STAGES - 2>();
    __syncthreads();  // for this span, and for x
    copy(span + STAGES - 1);
    const unsigned char* const stage = shared + span % STAGES * STAGE;
    const int blocks = (min(SPAN, inputs - span * SPAN) + 31) / 32;
    add_span<Format, PARTS>(sum, stage + low, of_x + span * SPAN * 2, part,
                            blocks);
  }
  __syncthreads();
  float* const merged = reinterpret_cast<float*>(shared);
  put_sums<OUTPUTS>(merged, sum, strip, part);
  __syncthreads();
  return merged;
}
// --8<-- [end:product]

// Both kernels have these parameters.
//
// Format: how W is stored: BF16, Q4_1 or Q8_0 of gemv.cuh.
// OUTPUTS: outputs (rows of W) of a block, a multiple of 16.
// PARTS: warps that share the depth of the same 16 outputs, an even number.
// STAGES: spans of W in shared memory, at least 2.
//
// x is rows x inputs in fp32, with at most 8 rows; weight is that of the norm,
// `inputs` long; W is outputs x inputs, as gemv.cu takes it. inputs is a
// multiple of 32, for BF16 of 8. x, weight and W begin at multiples of 16
// bytes. Grid: a block for each OUTPUTS outputs. Dynamic shared memory: STAGES
// * OUTPUTS * PITCH + 8 * x_pitch(inputs) bytes. The order of a sum depends on
// PARTS and inputs alone, so the bits of a row do not depend on the other rows.

// The outputs of W are `heads` queries, `kv_heads` keys and `kv_heads` values
// of head_dim elements, an even number. Row r of q, and the keys and values of
// slots[r] of the cache, become what rope.cu makes of the product. The product
// stays fp32 until it is turned; rope.cu gets it as bf16, so the last bit may
// differ. Rows of q are q_stride elements apart, an even number. Nothing is
// stored for a slot that is none of the cache's slot_count slots, such as -1.
// Cache: bf16, or FP8 with `scales` as in fp8.cuh.
// --8<-- [start:qkv]
template <class Format, int OUTPUTS, int PARTS, int STAGES,
          class Cache = __nv_bfloat16>
__global__ void
// 16 warps on an SM, in one block or two: 128 registers for each thread.
__launch_bounds__(OUTPUTS / 16 * PARTS * 32, 16 / (OUTPUTS / 16 * PARTS))
    norm_qkv(const float* x, const float* __restrict__ weight,
             const void* __restrict__ W, const int* __restrict__ positions,
             const int* __restrict__ slots, const float2* __restrict__ table,
             __nv_bfloat16* __restrict__ q, long long q_stride,
             Cache* __restrict__ keys, Cache* __restrict__ values,
             int slot_count, int rows, int inputs, int heads, int kv_heads,
             int head_dim, float eps, const float* __restrict__ scales) {
  constexpr int PAIRS = OUTPUTS / 2;
  static_assert(OUTPUTS / 16 * PARTS * 32 >= 8 * PAIRS, "a pair a thread");
  const int outputs = (heads + 2 * kv_heads) * head_dim;
  // The two neighboring results of this thread.
  const int row = threadIdx.x / PAIRS, local = threadIdx.x % PAIRS * 2;
  const int output = blockIdx.x * OUTPUTS + local;
  const bool mine = row < rows && output < outputs;
  const int head = output / head_dim, at = output % head_dim;
  const bool turns = mine && head < heads + kv_heads;
  // The pair's angle is loaded now, not when the product waits for it. Its
  // place in the table is known only when the position is there, so the copies
  // of W and the loads of x begin before.
  int slot = -1, position = 0;
  if (mine && head >= heads) slot = slots[row];
  if (turns) position = positions[row];
  float2 by = make_float2(1.0f, 0.0f);
  float of_cache = 1.0f;  // factor of what goes into the cache
  if (sizeof(Cache) == 1 && mine && head >= heads)
    of_cache /= scales[head - heads];
  const float* const merged = normed_product<Format, OUTPUTS, PARTS, STAGES>(
      x, weight, W, rows, outputs, inputs, eps, [&] {
        if (turns) by = table[(long long)position * (head_dim / 2) + at / 2];
      });
  if (!mine) return;
  if (head >= heads && (unsigned)slot >= (unsigned)slot_count) return;
  const float a = merge<OUTPUTS, PARTS>(merged, row, local);
  const float b = merge<OUTPUTS, PARTS>(merged, row, local + 1);
  const long long in_cache = (long long)slot * kv_heads * head_dim + at;
  if (head >= heads + kv_heads) {  // a value stays as it is
    const int kv = head - heads - kv_heads;
    store(values + in_cache + kv * head_dim, {a * of_cache, b * of_cache});
    return;
  }
  const float turned[2] = {a * by.x - b * by.y, a * by.y + b * by.x};
  if (head < heads)
    store(q + row * q_stride + output, turned);
  else
    store(keys + in_cache + (head - heads) * head_dim,
          {turned[0] * of_cache, turned[1] * of_cache});
}
// --8<-- [end:qkv]

// out = silu(gate) up, rows x outputs / 2 in bf16, where gate and up are
// products with W in fp32. Of every 16 rows of W the first 8 belong to gates,
// the others to the ups of the same outputs: so a block has both. outputs is a
// multiple of 16.
// --8<-- [start:gate_up]
template <class Format, int OUTPUTS, int PARTS, int STAGES>
__global__ void __launch_bounds__(OUTPUTS / 16 * PARTS * 32,
                                  16 / (OUTPUTS / 16 * PARTS))
    norm_gate_up(const float* x, const float* __restrict__ weight,
                 const void* __restrict__ W, __nv_bfloat16* __restrict__ out,
                 int rows, int outputs, int inputs, float eps) {
  constexpr int HALF = OUTPUTS / 2;
  static_assert(OUTPUTS / 16 * PARTS * 32 >= 8 * HALF, "one result a thread");
  const float* const merged = normed_product<Format, OUTPUTS, PARTS, STAGES>(
      x, weight, W, rows, outputs, inputs, eps, [] {});
  const int row = threadIdx.x / HALF, i = threadIdx.x % HALF;
  const int column = blockIdx.x * HALF + i;
  if (row >= rows || column >= outputs / 2) return;
  const int local = i / 8 * 16 + i % 8;
  const float gate = merge<OUTPUTS, PARTS>(merged, row, local);
  const float up = merge<OUTPUTS, PARTS>(merged, row, local + 8);
  // e^-gate may be infinite: gate / inf is 0.
  const float result = __fdividef(gate, 1.0f + expf(-gate)) * up;
  out[(size_t)row * (outputs / 2) + column] = __float2bfloat16_rn(result);
}
// --8<-- [end:gate_up]

// Instances that are compiled by the tests:
// @instance norm_qkv<Q4_1, 16, 8, 4>
// @instance norm_qkv<Q8_0, 16, 8, 4>
// @instance norm_qkv<BF16, 16, 8, 4>
// @instance norm_qkv<Q4_1, 32, 4, 3>
// @instance norm_qkv<Q8_0, 16, 8, 4, __nv_fp8_e4m3>
// @instance norm_gate_up<Q4_1, 16, 8, 4>
// @instance norm_gate_up<Q8_0, 16, 8, 4>
// @instance norm_gate_up<BF16, 16, 8, 4>
// @instance norm_gate_up<Q4_1, 32, 4, 3>
// @instance norm_gate_up<Q8_0, 32, 4, 3>
// @instance norm_gate_up<BF16, 32, 4, 3>
