// The products of cluster.cu: one row of numbers by a matrix that streams past.
#pragma once
#include "cluster_step.cuh"

// --8<-- [start:integers]
// x is multiplied as integers of 16 bits: a scale for each 32 of them, as the
// weights have it. That is more exact than bf16 would be, and Q4_1's numbers
// are bytes after three instructions instead of bf16 after seven. The tensor
// cores multiply bytes; x has a high and a low one, x = 256 high + low, both
// with a sign.
//
// Of block b: 32 high bytes from 64 b on, 32 low ones behind; depths 4t to 4t +
// 3 and 16 + 4t to 16 + 4t + 3, which are lane t's, side by side. scales: what
// the integers are multiplied by, and the sum of x.
template <class F>
__device__ __forceinline__ void quantize(unsigned char* bytes, float2* scales,
                                         int count, F value) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int place = lane % 16 / 4 * 8 + lane / 16 * 4 + lane % 4;
#pragma unroll 1
  for (int b = warp; b < count / 32; b += WARPS) {
    const float x = value(b * 32 + lane);
    const float most = __uint_as_float(
        __reduce_max_sync(~0u, __float_as_uint(fabsf(x))));  // NaN is larger
    // 127 * 256: high stays below 128 when low is rounded up.
    const float inverse = most < 1e-30f ? 0.0f : 32512.0f / most;
    const int integer = __float2int_rn(x * inverse);
    const int high = (integer + 128) >> 8;
    bytes[b * 64 + place] = (unsigned char)high;
    bytes[b * 64 + 32 + place] = (unsigned char)(integer - high * 256);
    const float scale = most * (1.0f / 32512.0f);
    const int sum = __reduce_add_sync(~0u, integer);
    if (lane == 0) scales[b] = make_float2(scale, scale * sum);
  }
}

// A lane's bytes of a block of weights, those from 4t and from 16 + 4t on, and
// the block's scale and minimum.
__device__ __forceinline__ void load_bytes(Q4_1, const unsigned char* block,
                                           int t, unsigned& first,
                                           unsigned& second) {
  const unsigned word = reinterpret_cast<const unsigned*>(block + 4)[t];
  first = word & 0x0f0f0f0f, second = word >> 4 & 0x0f0f0f0f;
}
__device__ __forceinline__ float2 load_scale(Q4_1, const unsigned char* block) {
  return __half22float2(*reinterpret_cast<const __half2*>(block));
}
__device__ __forceinline__ void load_bytes(Q8_0, const unsigned char* block,
                                           int t, unsigned& first,
                                           unsigned& second) {
  const unsigned char* const at = block + 2 + t * 4;
  const int off = (size_t)at % 4;  // 0 or 2, as in gemv.cuh
  const unsigned* const words = reinterpret_cast<const unsigned*>(at - off);
  first = __funnelshift_r(words[0], words[1], off * 8);
  second = __funnelshift_r(words[4], words[5], off * 8);
}
__device__ __forceinline__ float2 load_scale(Q8_0, const unsigned char* block) {
  return Q8_0::scale(block);
}

// D += A B as in mma.cuh, of bytes with a sign, in int: A is 16 x 32, B 32 x 8.
// Four bytes in a register: a[0], a[1] columns 4t to 4t + 3 of rows g and g +
// 8, a[2], a[3] the same, columns + 16; b0, b1 likewise.
__device__ __forceinline__ void mma_bytes(int (&d)[4], const unsigned (&a)[4],
                                          unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// --8<-- [end:integers]

// --8<-- [start:dot]
// Products of two rows of W, low and high, with the blocks of x from `from` to
// `to`: this lane's part of them. One row of x needs one of the 8 columns of B;
// what the others are used for: four blocks after each other go into the same
// D, each by its own two columns, for the high and the low bytes, where the
// others hold zeros. So each lane has the sums of one block, and multiplies
// them by the scales of that one only.
template <class Format>
__device__ __forceinline__ float2 dot(const unsigned char* low,
                                      const unsigned char* high,
                                      const unsigned char* bytes,
                                      const float2* scales, int from, int to) {
  constexpr int BLOCK = Format::BLOCK;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  float2 sum = {0.0f, 0.0f};
#pragma unroll 2
  for (int b = from; b < to; b += 4) {
    // Column g: high or low bytes of block b + g / 2; behind `to` any bytes.
    const uint2 x =
        *reinterpret_cast<const uint2*>(bytes + b * 64 + g * 32 + t * 8);
    int product[4] = {};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (b + j >= to) break;
      unsigned w[4];
      load_bytes(Format(), low + (b + j) * BLOCK, t, w[0], w[2]);
      load_bytes(Format(), high + (b + j) * BLOCK, t, w[1], w[3]);
      const bool mine = g / 2 == j;
      mma_bytes(product, w, mine ? x.x : 0, mine ? x.y : 0);
    }
    if (b + t < to) {
      const float2 of_x = scales[b + t];
      const float2 of_low = load_scale(Format(), low + (b + t) * BLOCK);
      const float2 of_high = load_scale(Format(), high + (b + t) * BLOCK);
      sum.x += of_low.x * of_x.x * (float)(product[0] * 256 + product[1]) +
               of_low.y * of_x.y;
      sum.y += of_high.x * of_x.x * (float)(product[2] * 256 + product[3]) +
               of_high.y * of_x.y;
    }
  }
  return sum;
}
// --8<-- [end:dot]

// --8<-- [start:product]
// Start to copy a tile: number `count` of the tiles from matrix `product` of a
// layer on, which may be one of a later matrix or layer.
__device__ __noinline__ void fetch(const Step& s, int slot, int layer,
                                   int product, int count) {
  __builtin_assume(__isShared(&s));
  while (count >= s.shares[product].tiles) {
    count -= s.shares[product].tiles;
    if (++product > DOWN) product = QKV, ++layer;
  }
  if (layer < s.layers)
    copy_tile(s.ring, slot, s.shares[product], count,
              s.of[layer].matrices[product]);
}

// This block's strips of a matrix, times what `quantize` has left, into
// sums[part][output]. tile: number of the matrix's first tile in this launch.
// Returns that of the next matrix.
template <class Format>
__device__ __noinline__ unsigned multiply(const Step& s, int layer, int product,
                                          unsigned tile) {
  __builtin_assume(__isShared(&s));
  const Share& share = s.shares[product];
  const Work work = s.works[product * WARPS + threadIdx.x / 32];
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const bool second_rows = share.pitch % 16;
  const int low = second_rows ? 2 * g : g;
  const int high = second_rows ? 2 * g + 1 : g + 8;
  __syncthreads();  // the integers are there
#pragma unroll 1
  for (int strip = work.strip; strip < share.strips; strip += work.step) {
    const int count = strip * share.by_tile >> 16;  // of this matrix's tiles
    const int in_tile = strip - count * share.per_tile;
    const unsigned slot = (tile + count) % SLOTS<Format>;
    wait(s.ring.full[slot], (tile + count) / SLOTS<Format> % 2);
    const unsigned char* const rows =
        s.ring.slots + slot * s.ring.slot_bytes + in_tile * 16 * share.pitch;
    float2 sum =
        dot<Format>(rows + low * share.pitch, rows + high * share.pitch,
                    s.bytes, s.scales, work.from, work.to);
    __syncwarp();  // all lanes are through
    const int strips =
        min(share.per_tile, share.strips - count * share.per_tile);
    if (lane == 0 && last_reader(s.ring.read[slot], strips * share.parts))
      fetch(s, slot, layer, product, count + SLOTS<Format>);
    __syncwarp();
#pragma unroll
    for (int away = 1; away < 4; away *= 2) {
      sum.x += __shfl_xor_sync(~0u, sum.x, away);
      sum.y += __shfl_xor_sync(~0u, sum.y, away);
    }
    float* const to = s.sums + (work.part * share.strips + strip) * 16;
    if (t == 0) to[low] = sum.x, to[high] = sum.y;
  }
  __syncthreads();  // the sums are there
  return tile + share.tiles;
}

// Four neighboring outputs, of this block's, from number i on.
__device__ __forceinline__ float4 add_parts(const Step& s, const Share& share,
                                            int i) {
  float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 1
  for (int part = 0; part < share.parts; ++part) {
    const float4 v =
        *reinterpret_cast<const float4*>(s.sums + part * share.strips * 16 + i);
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
  }
  return sum;
}
// --8<-- [end:product]
