// What a launch of the final kernel computes, and its shared memory.
//
//   Shared  the shared memory of a block
//   Work    what a launch computes
#pragma once
#include "epilogue.cuh"
#include "factors.cuh"

// Rows of a block's tile; warpgroups that multiply.
constexpr int BM = 128, CONSUMERS = 2;

// --8<-- [start:shared]
// BN: columns of a tile; STAGES: stages in the ring; BUFFERS: boxes of results
// for each consumer.
template <int BN, int STAGES, int BUFFERS>
struct Shared {
  unsigned char a[STAGES][BM * 128], b[STAGES][BN * 128];
  unsigned char c[CONSUMERS][BUFFERS][BOX];
  Barrier full[STAGES], empty[STAGES];
  Barrier loaded[CONSUMERS][BUFFERS];  // for `Fused`: R is in a box of `c`
};
// --8<-- [end:shared]

// What a launch computes: A is m x k, or k x m for TA; B is k x n, or n x k for
// TB; C has elements of type Out. A tile has CLUSTER * BM rows; each block of
// the cluster has BM of them.
// --8<-- [start:work]
template <class Out>
struct Work {
  int m, n, ldc;
  int group;         // tiles below each other in the order
  int steps;         // of depth BK, at least one
  int whole, share;  // as Schedule has them
  int boxes;         // whether the TMA may store C, through `map_c`
  float alpha, beta;
  Out* C;
  float* parts;                // 64 BN words for each consumer of each block
  unsigned* flags;             // a 0 for each of them
  const __nv_bfloat16 *A, *B;  // for PLAIN, which has no maps; or fp16
  int k;
  Extra<Out> extra;  // for `Fused`
};
// --8<-- [end:work]
static_assert(sizeof(Work<float>) == 120, "gemm.py has the same");
