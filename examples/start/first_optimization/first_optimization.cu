// out[i] = x[i] + y[i] for n elements, shared among threads in four ways.
//
//   add_one_thread    one thread adds all elements
//   add_one_block     the threads of one block share them
//   add_many_blocks   each thread of many blocks adds one
//   add_grid_stride   each thread of many blocks adds several
//   chase             no addition: measures the time of one load

// --8<-- [start:one-thread]
extern "C" __global__ void add_one_thread(const float* __restrict__ x,
                                          const float* __restrict__ y,
                                          float* __restrict__ out, int n) {
  for (int i = 0; i < n; ++i) {
    out[i] = x[i] + y[i];
  }
}
// --8<-- [end:one-thread]

// --8<-- [start:one-block]
extern "C" __global__ void add_one_block(const float* __restrict__ x,
                                         const float* __restrict__ y,
                                         float* __restrict__ out, int n) {
  // Neighboring threads take neighboring elements, then all step on together.
  // 64-bit: with int, i + blockDim.x could pass 2^31 - 1 although n does not.
  for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
    out[i] = x[i] + y[i];
  }
}
// --8<-- [end:one-block]

// --8<-- [start:many-blocks]
extern "C" __global__ void add_many_blocks(const float* __restrict__ x,
                                           const float* __restrict__ y,
                                           float* __restrict__ out, size_t n) {
  // 64-bit: with int, the last block could pass 2^31 - 1 although n does not.
  size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {  // the last block is usually not full
    out[i] = x[i] + y[i];
  }
}
// --8<-- [end:many-blocks]

// --8<-- [start:grid-stride]
extern "C" __global__ void add_grid_stride(const float* __restrict__ x,
                                           const float* __restrict__ y,
                                           float* __restrict__ out, size_t n) {
  // 64-bit: with int, i + stride could pass 2^31 - 1 although n itself fits.
  // The cast stands before the product, which has 32 bits otherwise.
  size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < n; i += stride) {
    out[i] = x[i] + y[i];
  }
}
// --8<-- [end:grid-stride]

// --8<-- [start:chase]
// Each load needs the answer of the one before: the time of one load.
extern "C" __global__ void chase(const unsigned* __restrict__ next,
                                 unsigned* __restrict__ last, int steps) {
  unsigned at = 0;
  for (int i = 0; i < steps; ++i) {
    at = next[at];
  }
  *last = at;
}
// --8<-- [end:chase]
