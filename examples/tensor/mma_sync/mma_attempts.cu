// Attempts at a faster `mma_spread`: larger parts for a warp, and mbarriers in
// place of the barrier of all threads.
//
//   init_barrier, arrive_at  an mbarrier, in instructions that Ampere has
//   arrive_with_copies       arrives at it when copies have arrived
//   wait_on_ampere           waits at it
//   gemm_mma_attempt         the kernel
//
// expect: spills (192 sums leave a lane 63 registers for everything else)
// requires: sm_80
#include "hopper/order.cuh"
#include "measure/stamps.cuh"
#include "tensor/ladder/copies.cuh"

// The same as in ptx/mbarrier.cuh, but in forms that Ampere has, too.
__device__ __forceinline__ void init_barrier(unsigned at, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(count)
               : "memory");
}

__device__ __forceinline__ void arrive_at(unsigned at) {
  asm volatile(
      "{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(at)
      : "memory");
}

// Arrives as soon as all that this thread has copied so far is there.
__device__ __forceinline__ void arrive_with_copies(unsigned at) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at)
               : "memory");
}

__device__ __forceinline__ void wait_on_ampere(unsigned at, int parity) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again_%=:\n"
      "mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n"
      "@!done bra again_%=; }" ::"r"(at),
      "r"(parity)
      : "memory");
}

// Tiles below each other in the order; copies that are started together.
constexpr int GROUP = 16, CLUMP = 4;

// C = A B as the rungs compute it; k is at least 1. A warp holds one set of
// fragments of A, each loaded anew after its last use, and two sets of B, for
// 32 columns each. Grid: x over the columns, y over the rows. Dynamic shared
// memory: STAGES * ((BM + BN) * 128 + 16) bytes. stamps: 4 words for each
// block, two before and two behind the loop.
//
//   BM, BN  rows and columns of C that a block computes: multiples of 64
//   WM, WN  rows and columns of C that a warp computes: WM a multiple of 16, WN
//           of 32; they divide BM and BN
//   STAGES  stages in the ring: at least 2, or 3 with PHASES
//   PHASES  whether mbarriers take the place of the barrier of all threads
// --8<-- [start:kernel]
template <int BM, int BN, int WM, int WN, int STAGES, bool PHASES>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32, 1)
    gemm_mma_attempt(const __nv_bfloat16* __restrict__ A,
                     const __nv_bfloat16* __restrict__ B,
                     __nv_bfloat16* __restrict__ C, int m, int n, int k,
                     long long* __restrict__ stamps) {
  constexpr int THREADS = BM / WM * (BN / WN) * 32, STAGE = (BM + BN) * 128;
  constexpr int STEPS = BK / 16, CHUNKS = WN / 32, TURNS = STEPS * CHUNKS;
  // A stage that is overwritten was read one stage ago; with mbarriers, two.
  constexpr int AHEAD = PHASES ? STAGES - 2 : STAGES - 1;
  extern __shared__ __align__(1024) unsigned char memory[];
  const unsigned stages = shared_address(memory);
  const unsigned full = stages + STAGES * STAGE, empty = full + STAGES * 8;
  const int block = blockIdx.y * gridDim.x + blockIdx.x;
  const int2 at = place_of(block, GROUP, gridDim.y, gridDim.x);
  const int top = at.y * BM, left = at.x * BN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, half = lane / 16;
  const int row = warp / (BN / WN) * WM, column = warp % (BN / WN) * WN;
  Copies<BM, BN, THREADS> copies(A, B, m, n, k, top, left);
  constexpr int COUNT = copies.COUNT;
  unsigned a[WM / 16][4], b[2][2][4];
  float sum[WM / 16][WN / 8][4] = {};
  // Where a lane's first pieces lie; XOR sets the bits that change.
  const unsigned of_a = row * 128 + place(lane % 16, half);
  unsigned of_b[CHUNKS];
#pragma unroll
  for (int i = 0; i < CHUNKS; ++i) {
    const int c = column + i * 32;
    of_b[i] = (BM + c / 64 * BK) * 128 + place(lane % 16, c % 64 / 8 + half);
  }
  const auto load_a = [&](unsigned tile, int step, int i) {
    ldmatrix(a[i], ((tile + of_a) ^ step * 32) + i * 2048);
  };
  const auto load_b = [&](unsigned tile, int turn) {
    const unsigned at = tile + of_b[turn % CHUNKS] + turn / CHUNKS * 2048;
#pragma unroll
    for (int j = 0; j < 2; ++j) ldmatrix_turned(b[turn % 2][j], at ^ j * 32);
  };
  const auto end_of_stage = [&](int stage) {
    copies.advance();
    if (PHASES)
      arrive_with_copies(full + stage * 8);
    else
      commit();
  };
  if (PHASES) {
    for (int i = threadIdx.x; i < STAGES; i += THREADS)
      init_barrier(full + i * 8, THREADS),
          init_barrier(empty + i * 8, THREADS / 32);
    __syncthreads();
  }
#pragma unroll 1
  for (int s = 0; s < AHEAD; ++s) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) copies.start(stages + s * STAGE, i);
    end_of_stage(s);
  }
  if (PHASES) {
    wait_on_ampere(full, 0);
  } else {
    wait_for_all_but<AHEAD - 1>();
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < WM / 16; ++i) load_a(stages, 0, i);
  load_b(stages, 0);
  const unsigned end = stages + STAGES * STAGE;
  unsigned tile = stages, to = stages + AHEAD * STAGE;
  unsigned stage = 0, spare = AHEAD, read_parity = 0, spare_parity = 1;
  stamp(stamps + (size_t)block * 4);
#pragma unroll 1
  for (int start = 0; start < k; start += BK) {
    if (PHASES) wait_on_ampere(empty + spare * 8, spare_parity);
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
      if (turn + 1 == TURNS) {
        end_of_stage(spare);
        if (PHASES) {
          __syncwarp();
          if (lane == 0) arrive_at(empty + stage * 8);
          if (++spare == STAGES) spare = 0, spare_parity ^= 1;
          if (++stage == STAGES) stage = 0, read_parity ^= 1;
          wait_on_ampere(full + stage * 8, read_parity);
        } else {
          wait_for_all_but<AHEAD - 1>();
          __syncthreads();
        }
        if ((to += STAGE) == end) to = stages;
        if ((tile += STAGE) == end) tile = stages;
      }
      load_b(tile, (turn + 1) % TURNS);
#pragma unroll
      for (int i = 0; i < WM / 16; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
          mma(sum[i][turn % CHUNKS * 4 + j], a[i],
              b[turn % 2][j / 2][j % 2 * 2], b[turn % 2][j / 2][j % 2 * 2 + 1]);
#pragma unroll
        for (int x = 0; x < COUNT; ++x)
          if (x / CLUMP * CLUMP * (TURNS - 1) * (WM / 16) / COUNT ==
              turn * (WM / 16) + i)
            copies.start(to, x);
        if (turn % CHUNKS == CHUNKS - 1)
          load_a(tile, (turn / CHUNKS + 1) % STEPS, i);
      }
    }
  }
  stamp(stamps + (size_t)block * 4 + 2);
  store_warp(sum, C, top + row, left + column, m, n);
}
// --8<-- [end:kernel]

// Instances that are compiled by the tests:
// @instance gemm_mma_attempt<192, 256, 96, 64, 4, false>
// @instance gemm_mma_attempt<128, 256, 64, 64, 4, true>
// Where shared memory is smaller, as on an A100:
// @instance gemm_mma_attempt<192, 256, 96, 64, 2, false>
// @instance gemm_mma_attempt<128, 256, 64, 64, 3, true>
