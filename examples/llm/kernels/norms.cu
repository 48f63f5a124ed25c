// Norms of rows of fp32 or bf16; the results are bf16. A row is read once: its
// threads keep it in registers.
//
//   early         whether weights are loaded before they are needed
//   scale_row     scales a row by its root mean square and the weights
//   rms_norm      x / rms(x) * weight
//   add_rms_norm  x += added, and then RMSNorm of x
//   layer_norm    (x - mean) / sqrt(variance + eps) * weight + bias
// expect: spills (two words of one add_rms_norm on sm_86 and sm_89)
// requires: sm_80
#include "ptx/overlap.cuh"
#include "rows.cuh"

// All kernels here have these parameters.
//
// T: type of the elements of x, float or bf16.
// W: type of the weights, float or bf16.
// VEC: elements that one load brings. With more than 1, rows have to begin at
//   multiples of VEC elements, and width has to be a multiple of VEC.
// LANES: threads of a row, a power of 2; more than 32 are the whole block.
// PER: vectors of a thread; LANES * PER * VEC is at least width.
//
// Rows are x_stride and out_stride elements apart; out may be x if the strides
// are equal. Sums are in fp32, in an order that depends on width, VEC and
// LANES: a row's result does not depend on other rows.

// Whether a thread loads its weights before it needs them. Few rows take little
// time, most of it for loads, so that early loads help. Where a thread has
// much, they would cost too many of its registers (64 where the block has 1024
// threads), and other blocks hide the time of the loads.
template <int LANES, int VEC, int PER>
__device__ constexpr bool early(int x_bytes, int weight_bytes,
                                int weights = 1) {
  const int words =
      PER * ((VEC * x_bytes + 3) / 4 + (VEC * weight_bytes + 3) / 4 * weights);
  return words <= (LANES > 512 ? 32 : 40);
}

constexpr int threads_at_most(int lanes) { return lanes > 128 ? lanes : 128; }

// For scale_row, ready holds this thread's weights if `early` is true; left
// counts the columns from this thread's first to the end of the row; share is
// 1 / width.
// --8<-- [start:scale]
// Scales the row in v to a root mean square of 1, and then by the weights.
template <int LANES, typename T, typename W, int VEC, int PER>
__device__ __forceinline__ void scale_row(Vector<T, VEC> (&v)[PER],
                                          Vector<W, VEC> (&ready)[PER],
                                          const W* __restrict__ weight,
                                          __nv_bfloat16* out, int left,
                                          float share, float eps) {
  __shared__ float slots[32];
  float squares = 0.0f;
#pragma unroll
  for (int k = 0; k < PER; ++k)
#pragma unroll
    for (int i = 0; i < VEC; ++i) {
      const float x = to_float(v[k].at[i]);
      squares += x * x;
    }
  squares = over_row<LANES>(squares, slots, Sum());
  keep_packed(v);
  keep_packed(ready);
  const float scale = rsqrtf(squares * share + eps);
#pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int c = k * LANES * VEC;
    if (c < left) {
      Vector<W, VEC> w = ready[k];
      if constexpr (!early<LANES, VEC, PER>(sizeof(T), sizeof(W)))
        w = *reinterpret_cast<const Vector<W, VEC>*>(weight + c);
      float y[VEC];
#pragma unroll
      for (int i = 0; i < VEC; ++i)
        y[i] = to_float(v[k].at[i]) * scale * to_float(w.at[i]);
      store(out + c, y);
    }
  }
}
// --8<-- [end:scale]

// --8<-- [start:rms]
template <typename T, typename W, int VEC, int LANES, int PER>
__global__ void __launch_bounds__(threads_at_most(LANES), PER > 16)
    rms_norm(const T* x, long long x_stride, const W* __restrict__ weight,
             __nv_bfloat16* out, long long out_stride, int rows, int width,
             float eps) {
  begin_next();
  const long long row = row_of_thread<LANES>();
  const int first = first_column<VEC, LANES>();
  // A thread behind the last row has no columns, but its part of reductions.
  const int left = row < rows ? width - first : 0;
  Vector<W, VEC> ready[PER];
  if constexpr (early<LANES, VEC, PER>(sizeof(T), sizeof(W)))
    load_share<LANES>(ready, weight + first, left);
  wait_for_previous();
  Vector<T, VEC> v[PER];
  load_share<LANES>(v, x + row * x_stride + first, left);
  scale_row<LANES>(v, ready, weight + first, out + row * out_stride + first,
                   left, 1.0f / width, eps);
}
// --8<-- [end:rms]

// x += added, and then RMSNorm of x as it was stored: x is read and written
// once.
// D: type of the elements of `added`.
// --8<-- [start:add]
template <typename T, typename D, typename W, int VEC, int LANES, int PER>
__global__ void __launch_bounds__(threads_at_most(LANES), PER > 16)
    add_rms_norm(T* x, long long x_stride, const D* __restrict__ added,
                 long long added_stride, const W* __restrict__ weight,
                 __nv_bfloat16* __restrict__ out, long long out_stride,
                 int rows, int width, float eps) {
  const long long row = row_of_thread<LANES>();
  const int first = first_column<VEC, LANES>();
  const int left = row < rows ? width - first : 0;
  x += row * x_stride + first;
  Vector<T, VEC> v[PER];
  load_share<LANES>(v, x, left);
  Vector<W, VEC> ready[PER];
  if constexpr (early<LANES, VEC, PER>(sizeof(T), sizeof(W)))
    load_share<LANES>(ready, weight + first, left);
  added += row * added_stride + first;
#pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int c = k * LANES * VEC;
    if (c < left) {
      const auto d = *reinterpret_cast<const Vector<D, VEC>*>(added + c);
      float sum[VEC];
#pragma unroll
      for (int i = 0; i < VEC; ++i)
        sum[i] = to_float(v[k].at[i]) + to_float(d.at[i]);
      store(v[k].at, sum);
      *reinterpret_cast<Vector<T, VEC>*>(x + c) = v[k];
    }
  }
  scale_row<LANES>(v, ready, weight + first, out + row * out_stride + first,
                   left, 1.0f / width, eps);
}
// --8<-- [end:add]

// (x - mean) / sqrt(variance + eps) * weight + bias, in two passes: the mean is
// known before squares are summed, which would otherwise cancel where the mean
// is large. In registers a second pass costs next to nothing.
// --8<-- [start:layer]
template <typename T, typename W, int VEC, int LANES, int PER>
__global__ void __launch_bounds__(threads_at_most(LANES), PER > 16)
    layer_norm(const T* x, long long x_stride, const W* __restrict__ weight,
               const W* __restrict__ bias, __nv_bfloat16* out,
               long long out_stride, int rows, int width, float eps) {
  constexpr bool ready = early<LANES, VEC, PER>(sizeof(T), sizeof(W), 2);
  __shared__ float slots[2][32];
  const long long row = row_of_thread<LANES>();
  const int first = first_column<VEC, LANES>();
  const int left = row < rows ? width - first : 0;
  Vector<T, VEC> v[PER];
  load_share<LANES>(v, x + row * x_stride + first, left);
  Vector<W, VEC> w[PER], b[PER];
  if constexpr (ready) {
    load_share<LANES>(w, weight + first, left);
    load_share<LANES>(b, bias + first, left);
  }
  const float share = 1.0f / width;
  float sum = 0.0f, squares = 0.0f;
#pragma unroll
  for (int k = 0; k < PER; ++k)
#pragma unroll
    for (int i = 0; i < VEC; ++i) sum += to_float(v[k].at[i]);
  const float mean = over_row<LANES>(sum, slots[0], Sum()) * share;
  keep_packed(v);
#pragma unroll
  for (int k = 0; k < PER; ++k) {
    if (k * LANES * VEC >= left) continue;  // behind the row
#pragma unroll
    for (int i = 0; i < VEC; ++i) {
      const float x = to_float(v[k].at[i]) - mean;
      squares += x * x;
    }
  }
  squares = over_row<LANES>(squares, slots[1], Sum());
  keep_packed(v);
  if constexpr (ready) {
    keep_packed(w);
    keep_packed(b);
  }
  const float scale = rsqrtf(squares * share + eps);
  weight += first, bias += first, out += row * out_stride + first;
#pragma unroll
  for (int k = 0; k < PER; ++k) {
    const int c = k * LANES * VEC;
    if (c < left) {
      if constexpr (!ready) {
        w[k] = *reinterpret_cast<const Vector<W, VEC>*>(weight + c);
        b[k] = *reinterpret_cast<const Vector<W, VEC>*>(bias + c);
      }
      float y[VEC];
#pragma unroll
      for (int i = 0; i < VEC; ++i)
        y[i] = (to_float(v[k].at[i]) - mean) * scale * to_float(w[k].at[i]) +
               to_float(b[k].at[i]);
      store(out + c, y);
    }
  }
}
// --8<-- [end:layer]

// Instances that are compiled by the tests:
// @instance rms_norm<float,__nv_bfloat16,4,32,5>
// @instance rms_norm<__nv_bfloat16,float,8,256,4>
// @instance rms_norm<__nv_bfloat16,__nv_bfloat16,1,1024,6>
// @instance add_rms_norm<float,__nv_bfloat16,__nv_bfloat16,4,32,5>
// @instance add_rms_norm<float,float,__nv_bfloat16,4,1024,8>
// @instance layer_norm<__nv_bfloat16,__nv_bfloat16,8,256,4>
// @instance layer_norm<float,float,1,128,7>
