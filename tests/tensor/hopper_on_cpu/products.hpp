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

// A box of lines of 128 bytes, told as 64 elements of 16 bits; or of words.
#ifndef PER_LINE
#define PER_LINE 32  // elements of the factors in 128 bytes
#endif
inline void copy_box(void* to, const CUtensorMap& map, int row, int column,
                     Barrier* barrier) {
  if (!map.words && shared_address(to) % 1024)
    fail("a box that is not aligned");
  const int part = map.words ? column : column / PER_LINE;
  copies.push_back(
      {self->block, shared_address(to), map, row, part, 0, 0, barrier});
}
inline void copy_box_to_all(void* to, const CUtensorMap& map, int row,
                            int column, Barrier* barrier, unsigned blocks) {
  for (int block = 0; block < MOST_BLOCKS; ++block)
    if (blocks >> block & 1)
      copies.push_back({block, shared_address(to), map, row, column / PER_LINE,
                        0, 0, barrier});
}

inline void sync_consumer(int consumer) {
  meet(turns[self->block][consumer + 1], 128, "its consumer");
}

inline unsigned kept(unsigned x) { return x; }
inline void wait_at(unsigned barrier, int parity) {
  wait((Barrier*)(shared_memory[self->block] + barrier), parity);
}

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
template <bool A_ALONG, bool B_ALONG, class In = __nv_bfloat16, int COUNT>
void wgmma(float (&d)[COUNT], unsigned long long a, unsigned long long b,
           bool add) {
  start({d,
         COUNT,
         nullptr,
         {},
         a,
         b,
         add,
         0,
         false,
         false,
         !A_ALONG,
         !B_ALONG,
         std::is_same<In, __half>::value});
}
template <int COUNT>
void wgmma_tf32(float (&d)[COUNT], unsigned long long a, unsigned long long b,
                bool add) {
  start({d, COUNT, nullptr, {}, a, b, add, 0, true});
}
template <int COUNT>
void wgmma_e4m3(float (&d)[COUNT], unsigned long long a, unsigned long long b,
                bool add) {
  start({d, COUNT, nullptr, {}, a, b, add, 0, false, true});
}
template <int COUNT>
void wgmma_e4m3(float (&d)[COUNT], const unsigned (&a)[4], unsigned long long b,
                bool add) {
  start({d, COUNT, a, {a[0], a[1], a[2], a[3]}, 0, b, add, 0, false, true});
}
inline void ldmatrix(unsigned (&tile)[4], unsigned row) {
  for (int i = 0; i < 4; ++i)
    std::memcpy(tile + i,
                shared_memory[self->block] +
                    from_lane(row, 8 * i + lane() / 4) + lane() % 4 * 4,
                4);
}
inline float __ldg(const float* from) { return *from; }
inline void sync_cluster() { meet_cluster(); }
inline void await_turn() { wait_for_turn(threadIdx.x / 128 + 2); }
inline void wait_for_other_consumer() { wait_for_turn(3); }
inline void let_other_consumer() { pass_turn(3); }
inline void pass_turn() { pass_turn(5 - threadIdx.x / 128); }
