// Reads whose addresses inside a warp can be chosen.

// Every thread reads one word. Lane l of a warp takes the place of lane (l * turn) % 32 ^ flip:
// turn = 1, flip = 0 is the order of the lanes, flip = 31 reverses it, an odd turn shuffles it.
// --8<-- [start:pattern]
extern "C" __global__ void read_pattern(const float* __restrict__ in, float* __restrict__ out,
                                        int stride, int offset, int turn, int flip) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = t % 32, place = t - lane + (lane * turn % 32 ^ flip);
  out[t] = in[offset + stride * place];
}
// --8<-- [end:pattern]

// Adds every stride-th word from `offset` on, `reads` of them, eight per thread: eight loads in
// flight keep the memory busy, and only an eighth as many words are written.
// --8<-- [start:strided]
constexpr int EACH = 8;
extern "C" __global__ void read_strided(const float* __restrict__ in, float* __restrict__ out,
                                        long long reads, int stride, int offset) {
  const long long first = (long long)blockIdx.x * blockDim.x * EACH + threadIdx.x;
  float sum = 0;
#pragma unroll
  for (int j = 0; j < EACH; ++j) {
    const long long i = first + j * blockDim.x;  // neighboring threads, neighboring i
    if (i < reads) sum += in[offset + i * stride];
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
// --8<-- [end:strided]
