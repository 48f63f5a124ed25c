// Parallel thinking and nine index formulas.
//
//   nine           one linear id per thread, by any of the nine formulas
//   smooth         each element from its neighbors: a map if `out` is another array, a race if it
//   is the same scale          the plainest map, with an index of 32 bits or, with -DINDEX="long
//   long", of 64 last_ids       the id of every thread of the last block, in three integer types
//   count_blocks   how many blocks ran, how many threads each had, and on which SMs
#ifndef INDEX
#define INDEX int
#endif

// --8<-- [start:formulas]
__device__ unsigned linear_id(int formula) {
  switch (formula) {  // first digit: dimensions of the grid; second: dimensions of the block
    case 11:
      return blockIdx.x * blockDim.x + threadIdx.x;
    case 12:
      return (blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    case 13:
      return ((blockIdx.x * blockDim.z + threadIdx.z) * blockDim.y + threadIdx.y) * blockDim.x +
             threadIdx.x;
    case 21:
      return (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
    case 22:
      return ((blockIdx.y * gridDim.x + blockIdx.x) * blockDim.y + threadIdx.y) * blockDim.x +
             threadIdx.x;
    case 23:
      return (((blockIdx.y * gridDim.x + blockIdx.x) * blockDim.z + threadIdx.z) * blockDim.y +
              threadIdx.y) *
                 blockDim.x +
             threadIdx.x;
    case 31:
      return ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * blockDim.x +
             threadIdx.x;
    case 32:
      return (((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * blockDim.y +
              threadIdx.y) *
                 blockDim.x +
             threadIdx.x;
    default:
      return ((((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * blockDim.z +
               threadIdx.z) *
                  blockDim.y +
              threadIdx.y) *
                 blockDim.x +
             threadIdx.x;
  }
}
// --8<-- [end:formulas]

// --8<-- [start:nine]
extern "C" __global__ void nine(unsigned* __restrict__ out, int formula, int offset) {
  // Who I am, by my own coordinates, 5 bits each; where I write it, by the formula. Two threads
  // with one id leave a slot that nobody writes, a wrong id leaves the wrong coordinates.
  const unsigned me = blockIdx.z << 25 | blockIdx.y << 20 | blockIdx.x << 15 | threadIdx.z << 10 |
                      threadIdx.y << 5 | threadIdx.x;
  out[offset + linear_id(formula)] = me;
}
// --8<-- [end:nine]

// --8<-- [start:smooth]
extern "C" __global__ void smooth(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const bool inside = i > 0 && i < n - 1;
  out[i] = inside ? 0.5f * (in[i - 1] + in[i + 1]) : in[i];
}
// --8<-- [end:smooth]

// --8<-- [start:scale]
extern "C" __global__ void scale(const float* __restrict__ x, float* __restrict__ out,
                                 long long n) {
  const INDEX i = (INDEX)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * x[i];
}
// --8<-- [end:scale]

// --8<-- [start:last-ids]
extern "C" __global__ void last_ids(int* __restrict__ as_int, unsigned* __restrict__ as_unsigned,
                                    long long* __restrict__ as_long_long, int block) {
  if (blockIdx.x != block) return;
  as_int[threadIdx.x] = blockIdx.x * blockDim.x + threadIdx.x;
  as_unsigned[threadIdx.x] = blockIdx.x * blockDim.x + threadIdx.x;
  as_long_long[threadIdx.x] = (long long)blockIdx.x * blockDim.x + threadIdx.x;
}
// --8<-- [end:last-ids]

// --8<-- [start:count-blocks]
extern "C" __global__ void count_blocks(int* __restrict__ blocks, int* __restrict__ threads,
                                        int* __restrict__ sm_used) {
  const int present = __syncthreads_count(1);  // threads of this block that are here
  if (threadIdx.x != 0) return;
  atomicAdd(blocks, 1);
  atomicMax(threads, present);
  int sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  sm_used[sm] = 1;
}
// --8<-- [end:count-blocks]
