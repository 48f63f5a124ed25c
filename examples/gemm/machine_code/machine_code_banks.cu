// A loop of FMAs and nothing else: banks.py gives its machine code other
// registers.
// requires: sm_80

// Each thread adds products of factors[0] to [9] to its 64 sums, four products
// to each sum in a turn, and stores the sums. cycles: how many cycles this
// took, a word for each warp.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(512)
    chains(const float* __restrict__ factors, float4* __restrict__ out,
           unsigned* __restrict__ cycles, int turns) {
  float a[8], b[2], sum[64] = {};
#pragma unroll
  for (int i = 0; i < 8; ++i) a[i] = factors[i];
  b[0] = factors[8], b[1] = factors[9];
  const unsigned start = clock();
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int i = 0; i < 256; ++i)
      sum[i % 64] = fmaf(a[i % 8], b[i / 64 % 2], sum[i % 64]);
  }
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x % 32 == 0) cycles[thread / 32] = clock() - start;
#pragma unroll
  for (int i = 0; i < 16; ++i)
    out[thread * 16 + i] = reinterpret_cast<const float4*>(sum)[i];
}
// --8<-- [end:kernel]
