// What the arithmetic of Philox takes without stores: four counters per thread,
// as in fill with EACH = 4.
//
// @instance alone<256>
#include "philox.cuh"

template <int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    alone(unsigned* __restrict__ out, unsigned long long seed,
          unsigned long long stream) {
  const Stream numbers = {seed, stream};
  const unsigned first = blockIdx.x * 4 * BLOCK + threadIdx.x;
  unsigned all = 0;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const uint4 w = numbers.words(first + e * BLOCK, 0);
    all += w.x ^ w.y ^ w.z ^ w.w;
  }
  if (all == 0x12345678) out[0] = all;  // rare, but the compiler cannot know
}
