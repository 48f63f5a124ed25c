// The last steps of a tile by halves of its columns: the left half is stored
// beside the products of the right half.
//
//   ByHalves, HALVED  an epilogue that asks for this
//   finish_by_halves  the last steps
#pragma once
#include "work.cuh"

// --8<-- [start:halves]
// `Bare`, for workers that have several tiles. HALVED<End>: how many steps at
// the end of each tile go by halves. gemm.py sees to it that a tile has more.
struct ByHalves : Bare {};
template <class End>
constexpr int HALVED = 0;
template <>
constexpr int HALVED<ByHalves> = 2;

// The last LAST steps, at most STAGES: first the products with the left half of
// the columns, then, in the same stages, those with the right half. wgmma runs
// them in this order, and while it still computes the right half, the left half
// is stored. `sum` has the products of the steps before, whose stages have been
// given back, except for stage `before`. release(stage), of type Release, gives
// one back. The other parameters are those of the kernel.
template <int LAST, bool A_ALONG, bool B_ALONG, class Out, class In, int BN,
          int STAGES, int BUFFERS, class Release>
__device__ __forceinline__ void finish_by_halves(
    float (&sum)[BN / 2], Shared<BN, STAGES, BUFFERS>& s, Ring<STAGES>& ring,
    int before, const CUtensorMap& map_c, int top, int left, int consumer,
    const Release& release) {
  static_assert(LAST <= STAGES, "all of them are there at a time");
  auto& low = reinterpret_cast<float (&)[BN / 4]>(sum[0]);
  auto& high = reinterpret_cast<float (&)[BN / 4]>(sum[BN / 4]);
  wait_for_products<0>();  // others of another shape use these registers
  release(before);
  Ring<STAGES> mine = ring;
#pragma unroll
  for (int i = 0; i < LAST; ++i, mine.advance()) {
    wait(&s.full[mine.stage], mine.parity);
    multiply_stage<A_ALONG, B_ALONG, In>(
        low, shared_address(s.a[mine.stage] + consumer * BOX),
        shared_address(s.b[mine.stage]), true);
  }
  mine = ring;
#pragma unroll
  for (int i = 0; i < LAST; ++i, mine.advance())
    multiply_stage<A_ALONG, B_ALONG, In>(
        high, shared_address(s.a[mine.stage] + consumer * BOX),
        shared_address(s.b[mine.stage] + BN / 2 * 128), true);
  wait_for_products<LAST>();
  store_boxes<BUFFERS, Out>(low, map_c, top + consumer * 64, left,
                            s.c[consumer][0], consumer);
  wait_for_products<0>();
#pragma unroll
  for (int i = 0; i < LAST; ++i, ring.advance()) release(ring.stage);
  store_boxes<BUFFERS, Out>(high, map_c, top + consumer * 64, left + BN / 2,
                            s.c[consumer][0], consumer);
}
// --8<-- [end:halves]
