// What the headers of the products wrap, on top of instructions.hpp.
#pragma once
#include "instructions.hpp"

struct int2 {
  int x, y;
};
inline int2 make_int2(int x, int y) { return {x, y}; }
struct float2 {
  float x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
struct float4 {
  float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}
inline void __stcg(float4* to, float4 x) { *to = x; }
inline float4 __ldcg(const float4* from) { return *from; }

inline int rank_in_cluster() { return self->block; }
inline void fence_init() {}
inline void prefetch(const CUtensorMap&) {}
template <int COUNT>
void give_registers_back() {}

// A line of a box has 128 bytes: so many columns of the matrix, told as 64 of 16
// bits.
inline int columns_of_line = 32;

inline void copy_box(void* to, const CUtensorMap& map, int row, int column,
                     Barrier* barrier) {
  if (shared_address(to) % 1024) fail("a box that is not aligned");
  copies.push_back(
      {self->block, shared_address(to), map, row, column / columns_of_line, 0, 0, barrier});
}
inline void copy_box_to_all(void* to, const CUtensorMap& map, int row,
                            int column, Barrier* barrier, unsigned blocks) {
  for (int block = 0; block < 2; ++block)
    if (blocks >> block & 1)
      copies.push_back(
          {block, shared_address(to), map, row, column / columns_of_line, 0, 0, barrier});
}

inline void sync_consumer(int consumer) {
  meet(turns[self->block][consumer + 1], 128, "its consumer");
}
inline void wait_to_begin() { wait_for_turn(3); }
inline void let_begin() { pass_turn(3); }

inline void raise(unsigned* flag) { *flag = 1, ++progress; }
inline void wait_for(unsigned* flag) {
  while (!*flag) yield("a part");
  *flag = 0;
}

inline void fence_sums() { begin_products(); }
inline void close_products() { end_group(); }
// A product is one of all four warps: it ends when all have begun it, and then
// for all of them.
template <int GROUPS>
void wait_for_products() {
  Meeting& warpgroup = turns[self->block][8 + self->index / 128];
  meet(warpgroup, 128, "its warpgroup");
  wait_for_groups<GROUPS>();
  meet(warpgroup, 128, "its warpgroup");
}
template <int COUNT>
void wgmma_tf32(float (&d)[COUNT], unsigned long long a, unsigned long long b,
                bool add) {
  start({d, COUNT, nullptr, {}, a, b, add, 0, true});
}
