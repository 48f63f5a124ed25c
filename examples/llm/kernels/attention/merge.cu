// Attention over all keys, joined from that over some keys and that over the
// rest.
// requires: sm_80
#include <cuda_bf16.h>

// --8<-- [start:merge]
// out is the mean of a and b, [rows, dim], with the weights exp(lse_a) and
// exp(lse_b); lse is that of all keys. An lse of -inf means that there were no
// keys, and so does +inf, as some libraries have it: such a row is not read. If
// both have no keys, the result is 0. dim is a multiple of 8. out may be a or
// b; lse must be none of the others. A thread computes 8 elements, 16 bytes of
// out.
extern "C" __global__ void __launch_bounds__(256)
    merge(const __nv_bfloat16* a, const float* lse_a, const __nv_bfloat16* b,
          const float* lse_b, __nv_bfloat16* out, float* lse, long long rows,
          int dim) {
  const long long i = blockIdx.x * 256LL + threadIdx.x, row = i / (dim / 8);
  if (row >= rows) return;
  float at[2] = {lse_a[row], lse_b[row]}, weight[2] = {};
  uint4 words[2] = {};
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    if (isinf(at[k])) at[k] = -INFINITY;
    if (at[k] != -INFINITY)
      words[k] = reinterpret_cast<const uint4*>(k == 0 ? a : b)[i];
  }
  // --8<-- [start:weights]
  const float most = fmaxf(at[0], at[1]);
#pragma unroll
  for (int k = 0; k < 2; ++k)
    if (at[k] != -INFINITY) weight[k] = expf(at[k] - most);
  const float sum = weight[0] + weight[1], by = sum == 0 ? 0 : 1 / sum;
  const auto* const x = reinterpret_cast<const __nv_bfloat16*>(&words[0]);
  const auto* const y = reinterpret_cast<const __nv_bfloat16*>(&words[1]);
  uint4 result;
  auto* const z = reinterpret_cast<__nv_bfloat16*>(&result);
#pragma unroll
  for (int e = 0; e < 8; ++e)
    z[e] = __float2bfloat16((weight[0] * __bfloat162float(x[e]) +
                             weight[1] * __bfloat162float(y[e])) *
                            by);
  // --8<-- [end:weights]
  reinterpret_cast<uint4*>(out)[i] = result;
  if (i % (dim / 8) == 0) lse[row] = most + logf(sum);
}
// --8<-- [end:merge]
