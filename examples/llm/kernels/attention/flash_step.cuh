// What flash.cu and flash_parts.cu do with a tile of keys and a tile of values.
//
//   Tiles   the sizes that follow from the template arguments of both kernels
//   Warp    a warp's queries, and its results so far
#pragma once
#include "flash.cuh"

// D, BM, BN, WARPS, BLOCKS: as flash.cu explains them.
template <int D, int BM, int BN, int WARPS, int BLOCKS>
struct Tiles {
  // MT tiles of 16 queries belong to a warp: a tile of keys that was read from
  // shared memory serves them all. NT tiles of 8 keys.
  static constexpr int MT = BM / (16 * WARPS), NT = BN / 8;
  static constexpr int THREADS = WARPS * 32, TILE = BN * D * 2;  // bytes
  // Queries stay in registers beside results and scores if there are enough of
  // them; otherwise they are read again for each tile of keys.
  static constexpr bool KEEP =
      MT * (D / 4 + D / 2 + BN / 2) + 75 <= 65536 / (THREADS * BLOCKS);
  static_assert(D % 16 == 0 && BN % 16 == 0 && BM == MT * 16 * WARPS, "tiles");
  static_assert((BM & (BM - 1)) == 0 && BN <= THREADS, "tiles");
};

// T: the Tiles. D, BN: as there.
template <class T, int D, int BN>
struct Warp {
  static constexpr int MT = T::MT, NT = T::NT;
  static constexpr bool KEEP = T::KEEP;
  using Scores = float[MT][NT][4];

  unsigned lane_at, key_at, q_at;
  unsigned kept[KEEP ? D / 16 : 1][MT][4];
  // For each of this lane's rows: the base of its exponentials, this lane's
  // part of their sum, and of the results.
  float base[MT][2], sum[MT][2] = {}, o[MT][D / 8][4] = {};

  // Where this lane reads in 16 rows of a tile, as ldmatrix wants it. Queries
  // and values: 8 columns of the first 8 rows, of the last 8 rows, and then the
  // next 8 columns. For queries that is a first factor of mma; for values,
  // which are turned while they are loaded, it is two second factors. Keys: 16
  // columns of the first 8 rows, then of the last 8: two second factors. The
  // two registers of a factor have to be neighbors, or the compiler copies them
  // for each product.
  __device__ __forceinline__ Warp(unsigned of_q, int warp, int lane)
      : lane_at(Layout<D>::place(lane % 16, lane / 16)),
        key_at(Layout<D>::place(lane % 8 + lane / 16 * 8, lane / 8 % 2)),
        q_at(of_q + warp * (16 * MT) * (D * 2)) {
    if (KEEP) {
#pragma unroll
      for (int kk = 0; kk < D / 16; ++kk)
#pragma unroll
        for (int i = 0; i < MT; ++i)
          ldmatrix(kept[kk][i],
                   q_at + Layout<D>::right(lane_at, kk) + i * 16 * (D * 2));
    }
#pragma unroll
    for (int i = 0; i < MT; ++i) base[i][0] = base[i][1] = LOWEST;
  }

  // s += q k^T for the keys at `k_at`.
  // --8<-- [start:scores]
  __device__ __forceinline__ void multiply(Scores& s, unsigned k_at) const {
    const auto load_queries = [&](unsigned (&a)[MT][4], int kk) {
#pragma unroll
      for (int i = 0; i < MT; ++i) {
        if (KEEP) {
#pragma unroll
          for (int w = 0; w < 4; ++w) a[i][w] = kept[kk][i][w];
        } else {
          ldmatrix(a[i],
                   q_at + Layout<D>::right(lane_at, kk) + i * 16 * (D * 2));
        }
      }
    };
    const auto load_keys = [&](unsigned (&b)[4], int kk, int n) {
      ldmatrix(b, k_at + Layout<D>::right(key_at, kk) + n * 8 * (D * 2));
    };
    // The next factors are loaded while these are multiplied.
    unsigned a[2][MT][4], b[2][4];
    load_queries(a[0], 0);
    load_keys(b[0], 0, 0);
#pragma unroll
    for (int at = 0; at < D / 16 * (NT / 2); ++at) {
      const int kk = at / (NT / 2), n = at % (NT / 2) * 2, next = at + 1;
      if (n == 0 && kk + 1 < D / 16) load_queries(a[(kk + 1) % 2], kk + 1);
      if (next < D / 16 * (NT / 2))
        load_keys(b[next % 2], next / (NT / 2), next % (NT / 2) * 2);
#pragma unroll
      for (int i = 0; i < MT; ++i) {
        mma(s[i][n], a[kk % 2][i], b[at % 2][0], b[at % 2][1]);
        mma(s[i][n + 1], a[kk % 2][i], b[at % 2][2], b[at % 2][3]);
      }
    }
  }
  // --8<-- [end:scores]

  // Where a base rises, what was added up before gets a factor.
  // --8<-- [start:rescale]
  __device__ __forceinline__ void rescale(const Scores& s, float power) {
    float factor[MT][2];
    if (raise_bases(s, power, base, factor)) {
#pragma unroll
      for (int i = 0; i < MT; ++i) {
        sum[i][0] *= factor[i][0], sum[i][1] *= factor[i][1];
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e) o[i][n][e] *= factor[i][e / 2];
      }
    }
  }
  // --8<-- [end:rescale]

  // o += 2^(s * power - base) v for the values at `v_at`.
  // --8<-- [start:values]
  __device__ __forceinline__ void add(const Scores& s, float power,
                                      unsigned v_at) {
#pragma unroll
    for (int kk = 0; kk < BN / 16; ++kk) {
      unsigned a[MT][4];
#pragma unroll
      for (int i = 0; i < MT; ++i) {
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          const float* const x = s[i][kk * 2 + w / 2] + w % 2 * 2;
          const float p = power_of_two(x[0] * power - base[i][w % 2]),
                      r = power_of_two(x[1] * power - base[i][w % 2]);
          sum[i][w % 2] += p + r;
          a[i][w] = pack(p, r);
        }
      }
#pragma unroll
      for (int n = 0; n < D / 8; n += 2) {
        unsigned b[4];
        ldmatrix_turned(
            b, v_at + Layout<D>::right(lane_at, n / 2) + kk * 16 * (D * 2));
#pragma unroll
        for (int i = 0; i < MT; ++i) {
          mma(o[i][n], a[i], b[0], b[1]);
          mma(o[i][n + 1], a[i], b[2], b[3]);
        }
      }
    }
  }
  // --8<-- [end:values]
};
