// Kernels whose warps read addresses in a chosen pattern.
//
//   read_pattern   a stride, an offset, and a new order of the lanes
//   offset_copy    a copy from an address that need not be aligned

// Every thread reads one word. Lane l of a warp reads the word at place (l *
// turn) % 32 ^ flip of its warp. turn = 1 with flip = 0 keeps the order of the
// lanes, flip = 31 reverses it, and an odd turn shuffles it. Neighboring places
// are `stride` words apart.
// --8<-- [start:pattern]
extern "C" __global__ void read_pattern(const float* __restrict__ in,
                                        float* __restrict__ out, int stride,
                                        int offset, int turn, int flip) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = t % 32, place = t - lane + (lane * turn % 32 ^ flip);
  out[t] = in[offset + stride * place];
}
// --8<-- [end:pattern]

// out[i] = in[offset + i]. i is unsigned, because an int could pass 2^31 - 1 in
// the last block although n does not.
// --8<-- [start:offset]
extern "C" __global__ void offset_copy(const float* __restrict__ in,
                                       float* __restrict__ out, int n,
                                       int offset) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[offset + i];
}
// --8<-- [end:offset]
