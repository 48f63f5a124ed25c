// What CUDATutorial 18 says of CUDA beside Triton, as kernels.
//
//   add_guarded  an addition with the guard `if (i < n)`
//   add_plain    the same without, for arrays that are filled up
//   add_strided  the same with neighbors some elements apart
//   two_ways     an `if` with a loop on one side, which has to be a branch
//
// requires: sm_75

extern "C" __global__ void add_guarded(const float* __restrict__ x,
                                       const float* __restrict__ y,
                                       float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

extern "C" __global__ void add_plain(const float* __restrict__ x,
                                     const float* __restrict__ y,
                                     float* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = x[i] + y[i];
}

extern "C" __global__ void add_strided(const float* __restrict__ x,
                                       const float* __restrict__ y,
                                       float* __restrict__ out, int n,
                                       int stride) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const size_t at = (size_t)i * stride;
    out[at] = x[at] + y[at];
  }
}

extern "C" __global__ void two_ways(const float* __restrict__ x,
                                    float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  if (x[i] > 0)
#pragma unroll 1
    for (int j = 0; j < n; ++j) sum += x[j];
  else
    sum = sqrtf(-x[i]);
  out[i] = sum;
}
