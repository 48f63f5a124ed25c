// Softmax of long rows: the blocks of a cluster share a row, keep it in
// registers, and read it once.
// requires: sm_90
#include "ptx/push.cuh"
#include "softmax.cuh"

// As keep_packed of rows.cuh, but ptxas forgets, too: it does not see an empty
// asm, and would keep the floats that were made for the sum until the stores
// need them. zero: 0, which no compiler knows.
template <typename T, int VEC, int PER>
__device__ __forceinline__ void make_again(Vector<T, VEC> (&v)[PER],
                                           unsigned zero) {
  keep_packed(v);
  if constexpr (sizeof(T) == 2 && VEC > 1) {
#pragma unroll
    for (int k = 0; k < PER; ++k)
#pragma unroll
      for (int i = 0; i < VEC; i += 2)
        reinterpret_cast<unsigned&>(v[k].at[i]) ^= zero;
  }
}

// As softmax_fused of softmax.cu, with its arguments, but a cluster has each
// row. Grid: BLOCKS blocks for each row. The order of a sum depends on width,
// VEC, THREADS and BLOCKS alone.
//
// T, U: types of the elements of x and of out.
// VEC: elements that one load brings.
// THREADS: threads of a block.
// PER: vectors of a thread; BLOCKS * THREADS * PER * VEC is at least width.
// BLOCKS: blocks of the cluster, a power of 2 of at most 8.
// --8<-- [start:kernel]
// 1024 threads of 64 registers fill an SM: of blocks of 256 it has room for
// four, and while one waits for its cluster, the others load and store.
template <typename T, typename U, int VEC, int THREADS, int PER, int BLOCKS>
__global__ void __cluster_dims__(BLOCKS, 1, 1)
    __launch_bounds__(THREADS, 1024 / THREADS)
        softmax_cluster(const T* x, long long x_stride, U* out,
                        long long out_stride, int width, float scale,
                        int queries, const int* lengths) {
  constexpr int LANES = BLOCKS * THREADS;  // threads of a row
  __shared__ float slots[2][32];
  __shared__ float2 parts[BLOCKS];  // a pair of each block
  __shared__ Barrier brought;
  if (threadIdx.x == 0) expect_pairs(&brought, BLOCKS);
  // When all blocks have arrived here, each may be sent a pair. The wait for
  // that comes behind the loads.
  arrive_early();
  // Blocks with neighboring numbers are a cluster.
  const long long row = blockIdx.x / BLOCKS;
  const int rank = blockIdx.x % BLOCKS;
  const int first = (rank * THREADS + threadIdx.x) * VEC;
  const int seen = columns_seen(row, width, queries, lengths) - first;
  const float log2_e = scale * LOG2_E;
  Vector<T, VEC> v[PER];
  load_share<LANES>(v, x + row * x_stride + first, seen);
  hide<LANES>(v, seen);
  // Largest number and sum of this block's part of the row.
  float largest = over_row<THREADS>(largest_of(v), slots[0], Largest());
  keep_packed(v);
  float sum = over_row<THREADS>(sum_of(v, largest, log2_e), slots[1], Sum());
  make_again(v, (unsigned)queries >> 31);  // queries is at least 0
  wait_for_cluster();
  // Every block gets the pair.
  if (threadIdx.x < BLOCKS)
    send_pair(in_block(parts + rank, threadIdx.x), make_float2(largest, sum),
              in_block(&brought, threadIdx.x));
  // A block that has the pairs of all is sent no more, and reads its own memory
  // only. So it may end whenever it is done, and no barrier stands at the end.
  wait_for_pairs(&brought);
  // Largest number and sum of the row: every BLOCKS lanes of a warp read the
  // pairs, one each, and join them.
  const float2 pair = parts[threadIdx.x % BLOCKS];
  largest = over_row<BLOCKS>(pair.x, nullptr, Largest());
  sum =
      over_row<BLOCKS>(pair.y * power(pair.x, largest, log2_e), nullptr, Sum());
  store_shares<LANES>(out + row * out_stride + first, width - first, v, largest,
                      log2_e, inverse(sum));
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance softmax_cluster<float,float,4,256,1,2>
// @instance softmax_cluster<float,float,4,256,8,8>
// @instance softmax_cluster<float,float,4,512,8,8>
// @instance softmax_cluster<float,float,4,1024,8,8>
// @instance softmax_cluster<float,__nv_bfloat16,4,256,8,4>
// @instance softmax_cluster<float,__nv_bfloat16,1,256,32,8>
// @instance softmax_cluster<float,__nv_bfloat16,1,1024,32,8>
// @instance softmax_cluster<__nv_bfloat16,__nv_bfloat16,8,256,8,8>
// @instance softmax_cluster<__nv_bfloat16,float,8,256,8,4>
// @instance softmax_cluster<__nv_bfloat16,__nv_bfloat16,8,512,6,8>
// @instance softmax_cluster<__nv_bfloat16,__nv_bfloat16,8,512,8,8>
// @instance softmax_cluster<__nv_bfloat16,__nv_bfloat16,8,1024,4,8>
// @instance softmax_cluster<__nv_bfloat16,float,1,256,32,8>
// @instance softmax_cluster<__nv_bfloat16,float,1,512,32,8>
// @instance softmax_cluster<__nv_bfloat16,float,1,1024,32,8>
