// What numbers the types of the tensor cores have, and how their products are
// added.
//
//   F16, B16, T32              the types, by their conversions
//   Fp8: E4M3, E5M2            those of 8 bits
//   decode                     the kernel that gives the numbers of bits
//   round_to                   the kernel that rounds numbers to a type
//   add_up                     the kernel that adds products by one instruction
//   add_up_fma                 the kernel that adds the same products by FMAs
//
// requires: sm_80
#include <cuda_fp8.h>

#include "types.cuh"

// Each type by its conversions: `value` gives the number of some bits, `bits`
// the bits of an fp32 that is rounded to the type.
struct F16 {
  static __device__ float value(unsigned bits) {
    return __half2float(__ushort_as_half((unsigned short)bits));
  }
  static __device__ unsigned bits(float x) {
    return __half_as_ushort(__float2half_rn(x));
  }
};

struct B16 {
  static __device__ float value(unsigned bits) {
    return __bfloat162float(__ushort_as_bfloat16((unsigned short)bits));
  }
  static __device__ unsigned bits(float x) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(x));
  }
};

// TF32 has 19 bits: the upper ones of an fp32.
struct T32 {
  static __device__ float value(unsigned bits) {
    return __uint_as_float(bits << 13);
  }
  static __device__ unsigned bits(float x) { return Tf32::round({x}) >> 13; }
};

// KIND: e4m3 or e5m2. What is too large becomes the largest number.
template <__nv_fp8_interpretation_t KIND>
struct Fp8 {
  static __device__ float value(unsigned bits) {
    const __half_raw raw =
        __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)bits, KIND);
    return __half2float(__half(raw));
  }
  static __device__ unsigned bits(float x) {
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, KIND);
  }
};
using E4M3 = Fp8<__NV_E4M3>;
using E5M2 = Fp8<__NV_E5M2>;

// T: one of the types above. Grid of this and the next: x, a thread for each of
// n numbers.
// --8<-- [start:convert]
template <class T>
__global__ void decode(const unsigned* bits, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = T::value(bits[i]);
}

// Each x is rounded to the type, and becomes fp32 again.
template <class T>
__global__ void round_to(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = T::value(T::bits(x[i]));
}
// --8<-- [end:convert]

// d = c + a[0] b[0] + a[1] b[1] + ..., as many products as one instruction
// adds: 16, or 8 of TF32. A block is one warp, and has one case: row 0 of its A
// and column 0 of its B hold the numbers, all else is zero. a, b:
// cases x products. T: a type of types.cuh.
// --8<-- [start:add]
template <class T>
__global__ void add_up(const float* a, const float* b, const float* c,
                       float* d) {
  const int lane = threadIdx.x, first = blockIdx.x * 8 * T::N;
  unsigned A[4] = {}, B[2] = {};
  if (lane < 4)
    for (int q = 0; q < 2; ++q) {
      float x[T::N], y[T::N];
      for (int e = 0; e < T::N; ++e) {
        const int place = first + (lane + 4 * q) * T::N + e;
        x[e] = a[place], y[e] = b[place];
      }
      A[2 * q] = T::round(x), B[q] = T::round(y);
    }
  float sums[4] = {lane == 0 ? c[blockIdx.x] : 0.0f, 0.0f, 0.0f, 0.0f};
  T::multiply(sums, A, B);
  if (lane == 0) d[blockIdx.x] = sums[0];
}
// --8<-- [end:add]

// The same sums by fp32 FMAs, one after the other. A thread has one case.
extern "C" __global__ void add_up_fma(const float* a, const float* b,
                                      const float* c, float* d, int cases,
                                      int products) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= cases) return;
  float sum = c[i];
  for (int k = 0; k < products; ++k)
    sum = fmaf(a[i * products + k], b[i * products + k], sum);
  d[i] = sum;
}

// Instances that are compiled by the tests:
// @instance decode<F16>
// @instance decode<B16>
// @instance decode<T32>
// @instance decode<E4M3>
// @instance decode<E5M2>
// @instance round_to<F16>
// @instance round_to<B16>
// @instance round_to<T32>
// @instance round_to<E4M3>
// @instance round_to<E5M2>
// @instance add_up<Fp16>
// @instance add_up<Bf16>
// @instance add_up<Tf32>
