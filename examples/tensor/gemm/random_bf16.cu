// Random bf16 numbers from -1 to 1, made on the GPU: the host would take long
// for billions of them.
//
//   mixed        the bits of an index, mixed
//   random_bf16  the kernel
//
// requires: sm_80
#include <cuda_bf16.h>

// Mixes all bits of an index: the last steps of MurmurHash3.
__device__ __forceinline__ unsigned mixed(unsigned long long x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
  return (unsigned)(x ^ x >> 33);
}

// Writes `pairs` pairs of numbers, the same for the same seed. Grid: any number
// of blocks.
extern "C" __global__ void __launch_bounds__(256)
    random_bf16(__nv_bfloat162* out, unsigned long long pairs, unsigned seed) {
  const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
  unsigned long long i =
      (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < pairs; i += stride) {
    const unsigned bits = mixed(i + ((unsigned long long)seed << 40));
    out[i] = __floats2bfloat162_rn((bits & 0xffff) / 32768.0f - 1.0f,
                                   (bits >> 16) / 32768.0f - 1.0f);
  }
}
