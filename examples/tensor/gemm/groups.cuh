// Products of many sizes as one list of tiles.
//
//   Group, Work  a product, and what a launch computes
//   rows_of      the rows of a group
//   count_tiles  the first tile of each group
//   group_of     the group of a tile
#pragma once
#include "ptx/tma.cuh"

// Rows of a tile; warpgroups that multiply; threads of a block.
constexpr int BM = 128, CONSUMERS = 2, THREADS = 128 * (1 + CONSUMERS);

// --8<-- [start:group]
// One product. Its factors lie in two matrices that have tensor maps: in two of
// its own, or in two that all groups share.
struct Group {
  __nv_bfloat16* C;  // m x n
  int m, n, k;
  int map;    // number of the map of A in Work::maps; that of B follows it
  int row_b;  // where B begins in its matrix
};

// What a launch computes. If the rows of all groups stand below each other in
// one A and one C, `ends` says where those of each group end; otherwise it is
// null. If blocks draw tiles, `taken` is a 0; if tiles are dealt in turn, null.
struct Work {
  const CUtensorMap* maps;
  const Group* groups;
  const int* ends;
  unsigned* taken;
  int count, rows;  // number of groups, at most THREADS; rows of the common A
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

// Each thread counts the tiles of one group, and adds those of the groups
// before. All threads of the block call this; afterwards `first` is complete.
// BN: columns of a tile. first: a word for each group, and one more for the
// number of all tiles; of_warp: a word for each warp. Both are in shared
// memory.
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

// The group of a tile: the last group that does not begin behind the tile. A
// group without tiles begins where the next group does, so it is never the
// last.
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
