// What the scans of this chapter do with a tile, the elements of one block:
//
//   load_rows, store_rows   a lane's vectors of a tile, from and to memory
//   warp_inclusive          the scan of one value per lane, by shuffles
//   scan_rows               the scans of the rows of a warp
//   finish_rows             the last additions, when it is known what precedes
#pragma once

#ifndef ELEMENT
#define ELEMENT float  // or int, long long, double
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef VECTORS
#define VECTORS 8  // loads that each thread has in flight
#endif
#ifndef WIDTH
#define WIDTH 16  // bytes of a load, to which the arrays are aligned
#endif
#ifndef EXCLUSIVE
#define EXCLUSIVE 0  // 1: an element is no part of its own sum
#endif
#ifndef STREAMED
#define STREAMED 0  // 1: loads and stores say that nobody needs the line again
#endif
using T = ELEMENT;

constexpr unsigned ALL = 0xffffffffu;
constexpr int WARPS = BLOCK / 32;

// --8<-- [start:layout]
// A lane loads a vector, and its warp a row: elements in the order of memory.
// A warp has VECTORS rows, one behind the other, and a tile has WARPS warps.
constexpr int PER_VECTOR = WIDTH / sizeof(T);
constexpr int ROW = 32 * PER_VECTOR, PER_WARP = VECTORS * ROW;
constexpr int TILE = WARPS * PER_WARP;

struct alignas(WIDTH) Vector {
  T at[PER_VECTOR];
};
// --8<-- [end:layout]

template <int BYTES>
struct RawOf;
template <>
struct RawOf<16> {
  using Type = uint4;
};
template <>
struct RawOf<8> {
  using Type = uint2;
};
template <>
struct RawOf<4> {
  using Type = unsigned;
};
using Raw = RawOf<WIDTH>::Type;

__device__ __forceinline__ Vector load_vector(const T* at) {
  const Raw* from = reinterpret_cast<const Raw*>(at);
  const Raw raw = STREAMED ? __ldcs(from) : *from;
  return reinterpret_cast<const Vector&>(raw);
}

__device__ __forceinline__ void store_vector(T* at, const Vector& v) {
  Raw* to = reinterpret_cast<Raw*>(at);
  if (STREAMED)
    __stcs(to, reinterpret_cast<const Raw&>(v));
  else
    *to = reinterpret_cast<const Raw&>(v);
}

// Where this lane's first vector of a warp's part of a tile begins; the next is
// ROW further.
__device__ __forceinline__ long long first_of(long long tile,
                                              int warp = threadIdx.x / 32) {
  return tile * TILE + warp * PER_WARP + threadIdx.x % 32 * PER_VECTOR;
}

// Zeros behind the last element, which change no sum.
// --8<-- [start:load]
__device__ __forceinline__ void load_rows(const T* __restrict__ in,
                                          long long tile, long long n,
                                          Vector (&v)[VECTORS],
                                          int warp = threadIdx.x / 32) {
  const long long first = first_of(tile, warp);
  if ((tile + 1) * TILE <= n) {
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) v[k] = load_vector(in + first + k * ROW);
  } else {
#pragma unroll
    for (int k = 0; k < VECTORS; ++k)
#pragma unroll
      for (int i = 0; i < PER_VECTOR; ++i) {
        const long long at = first + k * ROW + i;
        v[k].at[i] = at < n ? in[at] : T(0);
      }
  }
}
// --8<-- [end:load]

__device__ __forceinline__ void store_rows(T* __restrict__ out, long long tile,
                                           long long n,
                                           const Vector (&v)[VECTORS]) {
  const long long first = first_of(tile);
  if ((tile + 1) * TILE <= n) {
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) store_vector(out + first + k * ROW, v[k]);
  } else {
#pragma unroll
    for (int k = 0; k < VECTORS; ++k)
#pragma unroll
      for (int i = 0; i < PER_VECTOR; ++i) {
        const long long at = first + k * ROW + i;
        if (at < n) out[at] = v[k].at[i];
      }
  }
}

// What a scan adds up: numbers, or what has a `+` and shuffles of its own. The
// left operand of each `+` lies before the right one in memory.
template <typename P>
__device__ __forceinline__ P up(P x, int lanes) {
  return __shfl_up_sync(ALL, x, lanes);
}
template <typename P>
__device__ __forceinline__ P down(P x, int lanes) {
  return __shfl_down_sync(ALL, x, lanes);
}
template <typename P>
__device__ __forceinline__ P from(P x, int lane) {
  return __shfl_sync(ALL, x, lane);
}

// --8<-- [start:warp]
// Lane l gets the sum of lanes 0 to l. After the step of `reach` each lane
// holds the sum of 2 * reach lanes that end with it, as far as there are any.
template <typename P>
__device__ __forceinline__ P warp_inclusive(P x) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int reach = 1; reach < 32; reach *= 2) {
    const P left = up(x, reach);
    if (lane >= reach) x = left + x;
  }
  return x;
}
// --8<-- [end:warp]

// What precedes this warp in its block, and the sum of the block. of_warp: the
// sums of its warps; a barrier lies between their stores and this.
template <typename P>
__device__ __forceinline__ P before_warp(const P* of_warp, P& total) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const P sums = warp_inclusive(lane < WARPS ? of_warp[lane] : P());
  const P before = from(sums, warp > 0 ? warp - 1 : 0);
  total = from(sums, WARPS - 1);
  return warp > 0 ? before : P();
}

// --8<-- [start:rows]
// Each vector becomes its own scan; before[k]: what precedes vector k in this
// warp. Returns the sum of the warp.
__device__ __forceinline__ T scan_rows(Vector (&v)[VECTORS],
                                       T (&before)[VECTORS]) {
  T sums[VECTORS];
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) {
    T sum = T(0);
#pragma unroll
    for (int i = 0; i < PER_VECTOR; ++i) {
      const T x = v[k].at[i];
      if (EXCLUSIVE) v[k].at[i] = sum;
      sum = i ? sum + x : x;
      if (!EXCLUSIVE) v[k].at[i] = sum;
    }
    sums[k] = warp_inclusive(sum);  // the rows do not wait for each other
  }
  T rows = T(0);
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) {
    const T left = up(sums[k], 1);
    before[k] = threadIdx.x % 32 ? rows + left : rows;
    rows += from(sums[k], 31);
  }
  return rows;
}

// prefix: what precedes this warp in the array.
__device__ __forceinline__ void finish_rows(Vector (&v)[VECTORS],
                                            const T (&before)[VECTORS],
                                            T prefix) {
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) {
    const T left = prefix + before[k];
#pragma unroll
    for (int i = 0; i < PER_VECTOR; ++i) v[k].at[i] = left + v[k].at[i];
  }
}
// --8<-- [end:rows]
