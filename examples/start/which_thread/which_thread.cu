// Which thread am I? Every thread writes down which one it is, and NumPy checks
// it.
//
//   what_is_my_id      one dimension: block, thread, warp, lane, global id
//   what_is_my_id_2d   two dimensions: the pixel, and the thread's numbers
//   what_is_my_id_3d   three dimensions: the warp by its formula and by the
//                      hardware
//   arrival            the order in which blocks start, and their SMs
//   warp_arrival       the order in which the warps of a block pass a barrier

// --8<-- [start:one-dimension]
extern "C" __global__ void what_is_my_id(int* __restrict__ block,
                                         int* __restrict__ thread,
                                         int* __restrict__ warp,
                                         int* __restrict__ lane,
                                         int* __restrict__ global_id, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;  // the last block may reach past the end
  block[i] = blockIdx.x;
  thread[i] = threadIdx.x;
  warp[i] = threadIdx.x / 32;
  lane[i] = threadIdx.x % 32;
  global_id[i] = i;
}
// --8<-- [end:one-dimension]

// --8<-- [start:two-dimensions]
extern "C" __global__ void what_is_my_id_2d(int* __restrict__ pixel,
                                            int* __restrict__ linear,
                                            int* __restrict__ warp,
                                            int* __restrict__ lane, int width,
                                            int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;

  const int p = y * width + x;  // where is my pixel?
  // Who am I in my block, and which block is mine?
  const int in_block = threadIdx.y * blockDim.x + threadIdx.x;
  const int block = blockIdx.y * gridDim.x + blockIdx.x;
  pixel[p] = p;
  // Who am I in the grid?
  linear[p] = block * (blockDim.x * blockDim.y) + in_block;
  warp[p] = in_block / 32;
  lane[p] = in_block % 32;
}
// --8<-- [end:two-dimensions]

// --8<-- [start:hardware]
__device__ int lane_id() {
  int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

__device__ int sm_id() {
  int sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
}
// --8<-- [end:hardware]

// --8<-- [start:three-dimensions]
extern "C" __global__ void what_is_my_id_3d(int* __restrict__ block_at,
                                            int* __restrict__ thread_at,
                                            int* __restrict__ lane,
                                            int* __restrict__ leader) {
  const int threads = blockDim.x * blockDim.y * blockDim.z;
  const int block =
      (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int in_block =
      (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;

  // The lanes in my warp: all 32, or fewer in the last warp of the block.
  const int lanes = min(32, threads - in_block / 32 * 32);
  const unsigned int mask = 0xffffffffu >> (32 - lanes);

  const int i = block * threads + in_block;
  // z, y and x as two digits each: who wrote place i?
  block_at[i] = (blockIdx.z * 100 + blockIdx.y) * 100 + blockIdx.x;
  thread_at[i] = (threadIdx.z * 100 + threadIdx.y) * 100 + threadIdx.x;
  lane[i] = lane_id();  // asked of the hardware, not computed
  leader[i] = __shfl_sync(mask, in_block, 0);  // the thread in lane 0
}
// --8<-- [end:three-dimensions]

// --8<-- [start:arrival]
extern "C" __global__ void arrival(int* __restrict__ counter,
                                   int* __restrict__ order,
                                   int* __restrict__ sm) {
  if (threadIdx.x != 0) return;
  const int ticket = atomicAdd(counter, 1);  // 0: the first block to get here
  order[ticket] = blockIdx.x;
  sm[blockIdx.x] = sm_id();
}

extern "C" __global__ void warp_arrival(int* __restrict__ order) {
  __shared__ int counter;
  if (threadIdx.x == 0) counter = 0;
  __syncthreads();  // from here on every warp may go first
  if (threadIdx.x % 32 == 0) {
    const int ticket = atomicAdd(&counter, 1);
    order[blockIdx.x * (blockDim.x / 32) + ticket] = threadIdx.x / 32;
  }
}
// --8<-- [end:arrival]
