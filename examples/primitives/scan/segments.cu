// A segmented scan: the sums begin anew at every element with a head flag. What
// is added up are pairs, of a sum and of whether a segment began.
#include "primitives/scan/look_back.cuh"

#ifndef RESIDENT
#define RESIDENT 1  // blocks that an SM holds at least
#endif

// --8<-- [start:segment]
// head: whether a segment begins in here; then sum is that of the last one.
struct Segment {
  T sum = T(0);
  unsigned head = 0;
};

__device__ __forceinline__ Segment operator+(Segment left, Segment right) {
  if (!right.head) right.sum = left.sum + right.sum;
  right.head |= left.head;
  return right;
}
// --8<-- [end:segment]

__device__ __forceinline__ Segment up(Segment s, int lanes) {
  return {up(s.sum, lanes), up(s.head, lanes)};
}
__device__ __forceinline__ Segment down(Segment s, int lanes) {
  return {down(s.sum, lanes), down(s.head, lanes)};
}
__device__ __forceinline__ Segment from(Segment s, int lane) {
  return {from(s.sum, lane), from(s.head, lane)};
}

// The tag of a word has room for the flag.
template <>
constexpr int WORDS<Segment> = WORDS<T>;

__device__ __forceinline__ void post(Word* at, Segment s, unsigned tag) {
  post(at, s.sum, tag | s.head << 2);
}
__device__ __forceinline__ bool peek(const Word* at, unsigned number,
                                     Segment& s, unsigned& state) {
  typename BitsOf<sizeof(T)>::Type bits;
  const unsigned found = peek_bits(at, bits);
  s = {reinterpret_cast<const T&>(bits), found >> 2 & 1};
  state = found & 3;
  return found >> 3 == number;
}

struct alignas(PER_VECTOR) Heads {
  unsigned char at[PER_VECTOR];
};

// heads: bit k * PER_VECTOR + i of the result is element i of row k.
__device__ __forceinline__ unsigned load_heads(
    const unsigned char* __restrict__ heads, long long tile, long long n) {
  static_assert(VECTORS * PER_VECTOR <= 32, "a bit for each element");
  const long long first = first_of(tile);
  const bool full = (tile + 1) * TILE <= n;
  unsigned bits = 0;
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) {
    Heads row = {};
    if (full) {
      row = *reinterpret_cast<const Heads*>(heads + first + k * ROW);
    } else {
      for (int i = 0; i < PER_VECTOR; ++i)
        if (first + k * ROW + i < n) row.at[i] = heads[first + k * ROW + i];
    }
#pragma unroll
    for (int i = 0; i < PER_VECTOR; ++i)
      bits |= (unsigned)(row.at[i] != 0) << (k * PER_VECTOR + i);
  }
  return bits;
}

// out: sums of in[0 .. n) that begin anew where heads is not 0. One block for
// each tile; state as for scan_look_back.
// --8<-- [start:kernel]
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    scan_segments(const T* __restrict__ in,
                  const unsigned char* __restrict__ heads, T* __restrict__ out,
                  long long n, Word* __restrict__ state) {
  __shared__ Ticket ticket;
  __shared__ T sums[WARPS];
  __shared__ unsigned head[WARPS];
  __shared__ T prefix;
  if (threadIdx.x == 0) ticket = ticket_of(draw(state), state, gridDim.x);
  __syncthreads();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Vector v[VECTORS];
  load_rows(in, ticket.tile, n, v);
  const unsigned bits = load_heads(heads, ticket.tile, n);
  Segment before[VECTORS], rows;
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) {
    Segment s;
#pragma unroll
    for (int i = 0; i < PER_VECTOR; ++i)
      s = s + Segment{v[k].at[i], bits >> (k * PER_VECTOR + i) & 1};
    before[k] = warp_inclusive(s);
  }
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) {
    const Segment left = up(before[k], 1), all = from(before[k], 31);
    before[k] = lane ? rows + left : rows;
    rows = rows + all;
  }
  if (lane == 0) sums[warp] = rows.sum, head[warp] = rows.head;
  __syncthreads();
  // What precedes this warp in its tile, and the whole tile.
  Segment of_warps;
  if (lane < WARPS) of_warps = {sums[lane], head[lane]};
  of_warps = warp_inclusive(of_warps);
  const Segment tile = from(of_warps, WARPS - 1);
  Segment in_tile = from(of_warps, warp ? warp - 1 : 0);
  if (warp == 0) in_tile = Segment();
  if (threadIdx.x == 0)
    announce(state + HEADER, ticket.tile, ticket.number, tile);
  if (warp == 0) {
    const Segment found =
        look_back(state + HEADER, ticket.tile, ticket.number, tile);
    if (lane == 0) prefix = found.sum;
  }
  __syncthreads();
  in_tile = Segment{prefix, 0} + in_tile;
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) {
    T sum = (in_tile + before[k]).sum;
#pragma unroll
    for (int i = 0; i < PER_VECTOR; ++i) {
      const T x = v[k].at[i];
      if (bits >> (k * PER_VECTOR + i) & 1) sum = T(0);
      v[k].at[i] = EXCLUSIVE ? sum : sum + x;
      sum += x;
    }
  }
  store_rows(out, ticket.tile, n, v);
}
// --8<-- [end:kernel]
