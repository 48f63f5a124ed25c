// Indices in one, two and three dimensions.
//
//   flip          an image mirrored left to right: one thread per element
//   last_ids      the ids of the threads of one block, in three integer types
//   nine          one id per thread, by any of the nine formulas
//   smooth        each element from its neighbors; safe only into another array
//   scale         out = 2 x, with an index of the type INDEX (int unless given)
//   count_blocks  how many blocks ran, with how many threads, and on which SMs
#ifndef INDEX
#define INDEX int
#endif

// --8<-- [start:flip]
extern "C" __global__ void flip(const float* __restrict__ in,
                                float* __restrict__ out, int rows,
                                int columns) {
  const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || column >= columns) return;
  const size_t start = (size_t)row * columns;  // where this row begins
  out[start + column] = in[start + columns - 1 - column];
}
// --8<-- [end:flip]

// --8<-- [start:last-ids]
extern "C" __global__ void last_ids(int* __restrict__ as_int,
                                    unsigned* __restrict__ as_unsigned,
                                    long long* __restrict__ as_long_long,
                                    int block) {
  if (blockIdx.x != block) return;
  const int t = threadIdx.x;
  as_int[t] = blockIdx.x * blockDim.x + threadIdx.x;
  as_unsigned[t] = blockIdx.x * blockDim.x + threadIdx.x;
  as_long_long[t] = (long long)blockIdx.x * blockDim.x + threadIdx.x;
}
// --8<-- [end:last-ids]

// --8<-- [start:formulas]
__device__ unsigned linear_id(int formula) {
  // First digit: dimensions of the grid; second digit: of the block.
  switch (formula) {
    case 11:
      return blockIdx.x * blockDim.x + threadIdx.x;
    case 12:
      return (blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    case 13:
      return ((blockIdx.x * blockDim.z + threadIdx.z) * blockDim.y +
              threadIdx.y) *
                 blockDim.x +
             threadIdx.x;
    case 21:
      return (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
    case 22:
      return ((blockIdx.y * gridDim.x + blockIdx.x) * blockDim.y +
              threadIdx.y) *
                 blockDim.x +
             threadIdx.x;
    case 23:
      return (((blockIdx.y * gridDim.x + blockIdx.x) * blockDim.z +
               threadIdx.z) *
                  blockDim.y +
              threadIdx.y) *
                 blockDim.x +
             threadIdx.x;
    case 31:
      return ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) *
                 blockDim.x +
             threadIdx.x;
    case 32:
      return (((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) *
                  blockDim.y +
              threadIdx.y) *
                 blockDim.x +
             threadIdx.x;
    default:
      return ((((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x +
                blockIdx.x) *
                   blockDim.z +
               threadIdx.z) *
                  blockDim.y +
              threadIdx.y) *
                 blockDim.x +
             threadIdx.x;
  }
}
// --8<-- [end:formulas]

// --8<-- [start:nine]
// Each thread writes its six coordinates, 5 bits each, to the place that the
// formula names.
extern "C" __global__ void nine(unsigned* __restrict__ out, int formula,
                                int offset) {
  const unsigned blocks = blockIdx.z << 10 | blockIdx.y << 5 | blockIdx.x;
  const unsigned threads = threadIdx.z << 10 | threadIdx.y << 5 | threadIdx.x;
  out[offset + linear_id(formula)] = blocks << 15 | threads;
}
// --8<-- [end:nine]

// --8<-- [start:smooth]
extern "C" __global__ void smooth(const float* in, float* out, int n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const bool inside = i > 0 && i < n - 1;
  out[i] = inside ? 0.5f * (in[i - 1] + in[i + 1]) : in[i];
}
// --8<-- [end:smooth]

// --8<-- [start:scale]
extern "C" __global__ void scale(const float* __restrict__ x,
                                 float* __restrict__ out, long long n) {
  const INDEX i = (INDEX)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * x[i];
}
// --8<-- [end:scale]

// --8<-- [start:count-blocks]
extern "C" __global__ void count_blocks(int* __restrict__ blocks,
                                        int* __restrict__ threads,
                                        int* __restrict__ sm_used) {
  const int present = __syncthreads_count(1);  // threads of this block
  if (threadIdx.x != 0) return;
  atomicAdd(blocks, 1);
  atomicMax(threads, present);
  int sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  sm_used[sm] = 1;
}
// --8<-- [end:count-blocks]
