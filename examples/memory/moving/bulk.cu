// A copy inside the GPU by the tensor memory accelerator (TMA): one thread of a
// block asks for pieces, and nothing passes through a register.
// requires: sm_90
#include "ptx/bulk.cuh"
#include "ptx/tma.cuh"

#ifndef AHEAD
#define AHEAD 4  // pieces that are under way at the same time
#endif
#ifndef PIECE
#define PIECE 16384  // bytes of a piece
#endif

// --8<-- [start:bulk]
// A block of one warp. Its pieces lie gridDim.x pieces apart; piece k goes to
// stage k % AHEAD of the ring.
extern "C" __global__ void copy_bulk(const float* __restrict__ in,
                                     float* __restrict__ out, size_t n) {
  static_assert(AHEAD > 1, "one stage is read while others are filled");
  extern __shared__ __align__(128) char ring[];
  __shared__ Barrier full[AHEAD];
  const size_t bytes = n / 4 * 16;
  const size_t pieces = (bytes + PIECE - 1) / PIECE;
  const char* from = (const char*)in;
  char* to = (char*)out;
  auto size = [&](size_t piece) {
    const size_t left = bytes - piece * PIECE;
    return (int)(left < PIECE ? left : PIECE);
  };
  auto load = [&](size_t piece, int stage) {
    if (piece >= pieces) return;
    arrive_and_expect(&full[stage], size(piece));
    load_bytes(ring + stage * PIECE, from + piece * PIECE, size(piece),
               &full[stage]);
  };
  const size_t rest = bytes / 4 + threadIdx.x;  // at most three floats
  if (blockIdx.x == 0 && rest < n) out[rest] = in[rest];
  if (threadIdx.x != 0) return;
  for (int stage = 0; stage < AHEAD; ++stage) init(&full[stage], 1);
  fence_init();
  const size_t step = gridDim.x;
  for (int stage = 0; stage < AHEAD; ++stage)
    load(blockIdx.x + stage * step, stage);
  Ring<AHEAD> at;
  for (size_t piece = blockIdx.x; piece < pieces; piece += step) {
    wait(&full[at.stage], at.parity);
    store_bytes(to + piece * PIECE, ring + at.stage * PIECE, size(piece));
    close_stores();
    wait_for_reads<1>();  // the store before this one has left its stage
    if (piece != blockIdx.x)
      load(piece + (AHEAD - 1) * step, at.stage ? at.stage - 1 : AHEAD - 1);
    at.advance();
  }
  wait_for_reads<0>();  // or the block would end, and its shared memory with it
}
// --8<-- [end:bulk]
