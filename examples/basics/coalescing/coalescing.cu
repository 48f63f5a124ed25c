// Reads whose addresses inside a warp can be chosen.

// Every thread reads one word. Lane l of a warp takes the place of lane
// (l * turn) % 32 ^ flip: turn = 1, flip = 0 is the order of the lanes,
// flip = 31 reverses it, an odd turn shuffles it.
// --8<-- [start:pattern]
extern "C" __global__ void read_pattern(const float* __restrict__ in,
                                        float* __restrict__ out, int stride,
                                        int offset, int turn, int flip) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = t % 32, place = t - lane + (lane * turn % 32 ^ flip);
  out[t] = in[offset + stride * place];
}
// --8<-- [end:pattern]

// out[i] = in[offset + i]: a copy from an address that need not be aligned.
// (unsigned: an int could pass 2^31 - 1 in the last block although n does not.)
// --8<-- [start:offset]
extern "C" __global__ void offset_copy(const float* __restrict__ in,
                                       float* __restrict__ out, int n,
                                       int offset) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[offset + i];
}
// --8<-- [end:offset]
