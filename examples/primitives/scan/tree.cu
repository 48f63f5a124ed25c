// Each block scans a tile of its own; two more launches add what precedes it.
//
//   scan_tree    work-efficient: a tree in shared memory, up and down again
//   scan_warps   by shuffles, one element for each thread
//   add_sums     the third launch; the second is scan_sums of passes.cu
#ifndef ELEMENT
#define ELEMENT float  // or int, long long, double
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef EXCLUSIVE
#define EXCLUSIVE 0  // 1: an element is no part of its own sum
#endif
#ifndef PADDED
#define PADDED 0  // 1: a word is left out after every 32
#endif
using T = ELEMENT;

// --8<-- [start:place]
__device__ __forceinline__ int place(int i) { return PADDED ? i + i / 32 : i; }
// --8<-- [end:place]

// out: the scan of each tile of 2 * BLOCK elements; sums[t]: its sum.
// --8<-- [start:tree]
extern "C" __global__ void scan_tree(const T* __restrict__ in,
                                     T* __restrict__ out, T* __restrict__ sums,
                                     long long n) {
  __shared__ T tree[2 * BLOCK + 2 * BLOCK / 32];
  const int t = threadIdx.x;
  const long long first = (long long)blockIdx.x * (2 * BLOCK);
  T own[2];
  for (int k = 0; k < 2; ++k) {
    const long long at = first + t + k * BLOCK;
    own[k] = at < n ? in[at] : T(0);
    tree[place(t + k * BLOCK)] = own[k];
  }
  // Up: the right one of two neighbors gets the sum of both.
  int reach = 1;
  for (int pairs = BLOCK; pairs > 0; pairs /= 2, reach *= 2) {
    __syncthreads();
    const int left = (2 * t + 1) * reach - 1, right = left + reach;
    if (t < pairs) tree[place(right)] += tree[place(left)];
  }
  if (t == 0) {
    sums[blockIdx.x] = tree[place(2 * BLOCK - 1)];
    tree[place(2 * BLOCK - 1)] = T(0);
  }
  // Down: the left child gets what precedes both, the right one also the left.
  for (int pairs = 1; pairs <= BLOCK; pairs *= 2) {
    reach /= 2;
    __syncthreads();
    const int left = (2 * t + 1) * reach - 1, right = left + reach;
    if (t < pairs) {
      const T sum = tree[place(left)];
      tree[place(left)] = tree[place(right)];
      tree[place(right)] += sum;
    }
  }
  __syncthreads();
  for (int k = 0; k < 2; ++k) {
    const long long at = first + t + k * BLOCK;
    const T before = tree[place(t + k * BLOCK)];
    if (at < n) out[at] = EXCLUSIVE ? before : before + own[k];
  }
}
// --8<-- [end:tree]

// The same for tiles of BLOCK elements.
// --8<-- [start:warps]
extern "C" __global__ void scan_warps(const T* __restrict__ in,
                                      T* __restrict__ out, T* __restrict__ sums,
                                      long long n) {
  __shared__ T of_warp[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long at = (long long)blockIdx.x * BLOCK + threadIdx.x;
  const T own = at < n ? in[at] : T(0);
  T x = own;
  for (int reach = 1; reach < 32; reach *= 2) {
    const T left = __shfl_up_sync(0xffffffffu, x, reach);
    if (lane >= reach) x += left;
  }
  if (lane == 31) of_warp[warp] = x;
  __syncthreads();
  if (warp == 0) {  // the same once more, of the sums of the warps
    T sum = lane < BLOCK / 32 ? of_warp[lane] : T(0);
    for (int reach = 1; reach < 32; reach *= 2) {
      const T left = __shfl_up_sync(0xffffffffu, sum, reach);
      if (lane >= reach) sum += left;
    }
    of_warp[lane] = sum;
  }
  __syncthreads();
  if (warp > 0) x += of_warp[warp - 1];
  const T left = __shfl_up_sync(0xffffffffu, x, 1);
  const T before = lane ? left : warp ? of_warp[warp - 1] : T(0);
  if (at < n) out[at] = EXCLUSIVE ? before : x;
  if (threadIdx.x == BLOCK - 1) sums[blockIdx.x] = x;
}
// --8<-- [end:warps]

// out[i] += sums[t], what precedes the tile t of so many elements. One block of
// BLOCK threads for each tile.
// --8<-- [start:add]
extern "C" __global__ void add_sums(T* __restrict__ out,
                                    const T* __restrict__ sums, int tile,
                                    long long n) {
  const long long first = (long long)blockIdx.x * tile;
  for (int i = threadIdx.x; i < tile && first + i < n; i += BLOCK)
    out[first + i] += sums[blockIdx.x];
}
// --8<-- [end:add]
