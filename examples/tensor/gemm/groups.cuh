// Products of many sizes as one list of tiles: what a group is, and which group
// a tile belongs to.
#pragma once
#include "ptx/tma.cuh"

constexpr int BM = 128, CONSUMERS = 2, THREADS = 128 * (1 + CONSUMERS);

// --8<-- [start:group]
// One product. Its factors lie in two matrices that have tensor maps: in two of
// its own, or in two that all groups share.
struct Group {
  __nv_bfloat16* C;  // m x n
  int m, n, k;
  int map;    // of A, in Work::maps; that of B follows it
  int row_b;  // where B begins in its matrix
};

struct Work {
  const CUtensorMap* maps;
  const Group* groups;
  const int* ends;  // or null: where the rows of each group end, if the rows
                    // of all groups stand below each other in one A and one C
  unsigned* taken;  // a 0: tiles are given to who asks; or null: dealt in turn
  int count, rows;  // groups, at most THREADS; rows of the common A
  int order;        // tiles below each other in the order
};
// --8<-- [end:group]
static_assert(sizeof(Work) == 48, "grouped_product.py has the same");
static_assert(sizeof(Group) == 32, "and this");

// --8<-- [start:count]
// The rows of a group: the first in its matrices, and how many.
__device__ __forceinline__ int2 rows_of(const Work& work, int group) {
  if (!work.ends) return make_int2(0, work.groups[group].m);
  const int begin = group ? work.ends[group - 1] : 0;
  return make_int2(begin, min(work.ends[group], work.rows) - begin);
}

// Each thread counts the tiles of one group and adds up those of the groups
// before. All threads of the block; afterwards `first` is complete.
template <int BN>
__device__ __forceinline__ void count_tiles(const Work& work, int* first,
                                            int* of_warp) {
  const int t = threadIdx.x, lane = t % 32;
  int sum = 0;
  if (t < work.count)
    sum = (max(rows_of(work, t).y, 0) + BM - 1) / BM *
          ((work.groups[t].n + BN - 1) / BN);
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    const int before = __shfl_up_sync(~0u, sum, by);
    if (lane >= by) sum += before;
  }
  if (lane == 31) of_warp[t / 32] = sum;
  __syncthreads();
  for (int i = 0; i < t / 32; ++i) sum += of_warp[i];
  first[t + 1] = sum;
  if (t == 0) first[0] = 0;
  __syncthreads();
}

// The group of a tile: the last that does not begin behind it. A group without
// tiles begins where the next one does, and is never the last.
__device__ __forceinline__ int group_of(int tile, const int* first, int count) {
  int low = 0, high = count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (first[middle] <= tile)
      low = middle;
    else
      high = middle;
  }
  return low;
}
// --8<-- [end:count]
