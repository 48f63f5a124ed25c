// What claims.py measures.
//
//   notes_weights  a block copies the weights of its filters into shared
//                  memory, in one of two ways
//
// requires: sm_75
// @instance notes_weights<false>
// @instance notes_weights<true>

// --8<-- [start:weights]
// A block has blockDim.z filters, `each` weights of each. TOGETHER: all threads
// of the block share the copy; else each copies all weights of its filter, and
// so do the others of that filter. Then each thread adds up some of them.
template <bool TOGETHER>
__global__ void notes_weights(const float* __restrict__ weights,
                              float* __restrict__ sums, const int each) {
  extern __shared__ float held[];
  const int plane = blockDim.x * blockDim.y, threads = plane * blockDim.z;
  const int of_filter = threadIdx.y * blockDim.x + threadIdx.x;
  const int all = each * blockDim.z, filter = blockIdx.z * blockDim.z;
  if (TOGETHER) {
    for (int i = threadIdx.z * plane + of_filter; i < all; i += threads)
      held[i] = weights[filter * each + i];
  } else {
    for (int i = 0; i < each; ++i)
      held[threadIdx.z * each + i] = weights[(filter + threadIdx.z) * each + i];
  }
  __syncthreads();
  float sum = 0;
  for (int i = of_filter; i < each; i += plane)
    sum += held[threadIdx.z * each + i];
  sums[((blockIdx.x * gridDim.z + blockIdx.z) * blockDim.z + threadIdx.z) *
           plane +
       of_filter] = sum;
}
// --8<-- [end:weights]
