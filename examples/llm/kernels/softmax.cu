// Softmax of rows, by four kernels that differ in how often they read memory.
//
//   load_seen           a vector of what a row sees
//   write_row           the last walk: the quotients
//   softmax_three_pass  reads x three times: maximum, sum, quotients
//   Running             the maximum and the sum so far
//   softmax_online      reads x twice: maximum and sum in one pass
//   softmax_fused       reads x once: a row stays in registers
//   softmax_shared      reads x once: a longer row stays in shared memory
//
// requires: sm_80
#include "softmax.cuh"

// out[r][c] = exp(scale x[r][c]) / the sum of that over the columns that row r
// sees; the other columns become zero, whatever x holds there. A row that sees
// no column, or only -inf, becomes zeros. Rows are x_stride and out_stride
// elements apart. scale > 0.
//
// T: type of the elements of x. U: type of the elements of out.
// VEC: elements that one load brings. With more than 1, rows have to begin at
//   multiples of VEC elements, and width has to be a multiple of VEC.
// THREADS: threads of a block, which has one row.
//
// Sums are in fp32, in an order that depends on width, VEC and the number of
// threads alone.

// Loads the vector of a row that begins at column c. Columns that the row does
// not see become -inf by a selection, since NaN may lie there.
template <typename T, int VEC>
__device__ __forceinline__ void load_seen(float (&x)[VEC], const T* row, int c,
                                          int seen) {
  Vector<T, VEC> v = {};
  if (c < seen) v = *reinterpret_cast<const Vector<T, VEC>*>(row + c);
#pragma unroll
  for (int i = 0; i < VEC; ++i)
    x[i] = c + i < seen ? to_float(v.at[i]) : -INFINITY;
}

// The last pass of all kernels here but softmax_fused.
template <typename T, typename U, int VEC, int THREADS>
__device__ __forceinline__ void write_row(const T* __restrict__ x,
                                          U* __restrict__ out, int width,
                                          int seen, float log2_e, float largest,
                                          float sum) {
  const float share = inverse(sum);
#pragma unroll 4
  for (int c = threadIdx.x * VEC; c < width; c += THREADS * VEC) {
    float y[VEC];
    load_seen(y, x, c, seen);
#pragma unroll
    for (int i = 0; i < VEC; ++i) y[i] = power(y[i], largest, log2_e) * share;
    store(out + c, y);
  }
}

// Finds the largest number of a row, then the sum, then the quotients: x is
// read three times. out must not overlap x.
// --8<-- [start:three]
template <typename T, typename U, int VEC, int THREADS>
__global__ void __launch_bounds__(THREADS)
    softmax_three_pass(const T* __restrict__ x, long long x_stride,
                       U* __restrict__ out, long long out_stride, int width,
                       float scale, int queries, const int* lengths) {
  __shared__ float slots[2][32];
  const long long row = blockIdx.x;
  const int seen = columns_seen(row, width, queries, lengths);
  const float log2_e = scale * LOG2_E;
  x += row * x_stride, out += row * out_stride;
  float largest = -INFINITY, sum = 0.0f, v[VEC];
#pragma unroll 4
  for (int c = threadIdx.x * VEC; c < seen; c += THREADS * VEC) {
    load_seen(v, x, c, seen);
#pragma unroll
    for (int i = 0; i < VEC; ++i) largest = fmaxf(largest, v[i]);
  }
  largest = over_row<THREADS>(largest, slots[0], Largest());
#pragma unroll 4
  for (int c = threadIdx.x * VEC; c < seen; c += THREADS * VEC) {
    load_seen(v, x, c, seen);
#pragma unroll
    for (int i = 0; i < VEC; ++i) sum += power(v[i], largest, log2_e);
  }
  sum = over_row<THREADS>(sum, slots[1], Sum());
  write_row<T, U, VEC, THREADS>(x, out, width, seen, log2_e, largest, sum);
}
// --8<-- [end:three]

// The largest number so far, and the sum of powers relative to it.
// --8<-- [start:running]
struct Running {
  float largest = -INFINITY, sum = 0.0f;

  template <int VEC>
  __device__ __forceinline__ void add(const float (&x)[VEC], float log2_e) {
    float next = largest;
#pragma unroll
    for (int i = 0; i < VEC; ++i) next = fmaxf(next, x[i]);
    sum *= power(largest, next, log2_e);  // 1 if there was no larger one
#pragma unroll
    for (int i = 0; i < VEC; ++i) sum += power(x[i], next, log2_e);
    largest = next;
  }

  // Joins the numbers of all threads to those of the whole row.
  template <int THREADS>
  __device__ __forceinline__ void combine(float (&slots)[2][32], float log2_e) {
    const float own = largest;
    largest = over_row<THREADS>(own, slots[0], Largest());
    sum *= power(own, largest, log2_e);
    sum = over_row<THREADS>(sum, slots[1], Sum());
  }
};
// --8<-- [end:running]

// Finds largest number and sum in one pass: x is read twice. out must not
// overlap x.
// --8<-- [start:online]
template <typename T, typename U, int VEC, int THREADS>
__global__ void __launch_bounds__(THREADS)
    softmax_online(const T* __restrict__ x, long long x_stride,
                   U* __restrict__ out, long long out_stride, int width,
                   float scale, int queries, const int* lengths) {
  __shared__ float slots[2][32];
  const long long row = blockIdx.x;
  const int seen = columns_seen(row, width, queries, lengths);
  const float log2_e = scale * LOG2_E;
  x += row * x_stride, out += row * out_stride;
  Running all;
#pragma unroll 4
  for (int c = threadIdx.x * VEC; c < seen; c += THREADS * VEC) {
    float v[VEC];
    load_seen(v, x, c, seen);
    all.add(v, log2_e);
  }
  all.combine<THREADS>(slots, log2_e);
  write_row<T, U, VEC, THREADS>(x, out, width, seen, log2_e, all.largest,
                                all.sum);
}
// --8<-- [end:online]

// The row stays in registers: x is read once. out may be x where T is U and the
// strides are equal.
// LANES: threads of a row, a power of 2; more than 32 are the whole block.
// PER: vectors of a thread; LANES * PER * VEC is at least width.
// --8<-- [start:fused]
constexpr int threads_at_most(int lanes) { return lanes > 128 ? lanes : 128; }

template <typename T, typename U, int VEC, int LANES, int PER>
__global__ void __launch_bounds__(threads_at_most(LANES), PER > 16)
    softmax_fused(const T* x, long long x_stride, U* out, long long out_stride,
                  int rows, int width, float scale, int queries,
                  const int* lengths) {
  __shared__ float slots[2][32];
  const long long row = row_of_thread<LANES>();
  const int first = first_column<VEC, LANES>();
  // A thread behind the last row sees nothing, but has its part of reductions.
  const int seen =
      row < rows ? columns_seen(row, width, queries, lengths) - first : 0;
  const float log2_e = scale * LOG2_E;
  Vector<T, VEC> v[PER];
  load_share<LANES>(v, x + row * x_stride + first, seen);
  hide<LANES>(v, seen);
  const float largest = over_row<LANES>(largest_of(v), slots[0], Largest());
  keep_packed(v);
  const float sum =
      over_row<LANES>(sum_of(v, largest, log2_e), slots[1], Sum());
  keep_packed(v);
  store_shares<LANES>(out + row * out_stride + first,
                      row < rows ? width - first : 0, v, largest, log2_e,
                      inverse(sum));
}
// --8<-- [end:fused]

// A row that is too long for registers stays in dynamic shared memory: width
// elements of T. out may be x as for softmax_fused.
// --8<-- [start:shared]
template <typename T, typename U, int VEC, int THREADS>
__global__ void __launch_bounds__(THREADS)
    softmax_shared(const T* x, long long x_stride, U* out, long long out_stride,
                   int width, float scale, int queries, const int* lengths) {
  extern __shared__ __align__(16) unsigned char bytes[];
  __shared__ float slots[2][32];
  T* const kept = reinterpret_cast<T*>(bytes);
  const long long row = blockIdx.x;
  const int seen = columns_seen(row, width, queries, lengths);
  const float log2_e = scale * LOG2_E;
  x += row * x_stride, out += row * out_stride;
  // A thread reads what it has written itself, so it needs no barrier.
  Running all;
#pragma unroll 4
  for (int c = threadIdx.x * VEC; c < seen; c += THREADS * VEC) {
    const auto v = *reinterpret_cast<const Vector<T, VEC>*>(x + c);
    *reinterpret_cast<Vector<T, VEC>*>(kept + c) = v;
    float values[VEC];
#pragma unroll
    for (int i = 0; i < VEC; ++i)
      values[i] = c + i < seen ? to_float(v.at[i]) : -INFINITY;
    all.add(values, log2_e);
  }
  all.combine<THREADS>(slots, log2_e);
  write_row<T, U, VEC, THREADS>(kept, out, width, seen, log2_e, all.largest,
                                all.sum);
}
// --8<-- [end:shared]

// Instances that are compiled by the tests:
// @instance softmax_three_pass<float,float,4,256>
// @instance softmax_online<float,float,4,256>
// @instance softmax_online<__nv_bfloat16,__nv_bfloat16,1,1024>
// @instance softmax_fused<float,float,4,512,4>
// @instance softmax_fused<__nv_bfloat16,__nv_bfloat16,8,256,4>
// @instance softmax_fused<float,__nv_bfloat16,1,1024,32>
// @instance softmax_fused<float,float,4,4,1>
// @instance softmax_shared<float,float,4,1024>
// @instance softmax_shared<__nv_bfloat16,float,1,1024>
