// GELU of an array, element by element.
//
//   gelu_one   one element per thread
//   gelu       16 bytes per access, several in flight
//   bias_gelu_residual  three kernels in one
//   add_bias, add  two of the three
//
// OP: 0 by erf; 1 by tanh; 2 by erf, 3 by tanh, with instructions of the
// special function units.
//
// @instance gelu_one<float,0>
// @instance gelu<float,4,4,256,0>
// @instance gelu<__nv_bfloat16,8,2,256,1>
// @instance bias_gelu_residual<float,4,2,256,0>
// @instance bias_gelu_residual<__nv_bfloat16,8,2,256,1>
// @instance add_bias<float,4,2,256>
// @instance add<float,4,2,256>
#include "elements.cuh"
#include "gelu.cuh"

template <int OP>
__device__ __forceinline__ float gelu_of(float x) {
  return OP == 0   ? gelu_erf(x)
         : OP == 1 ? gelu_tanh(x)
         : OP == 2 ? gelu_erf_fast(x)
                   : gelu_tanh_fast(x);
}

// --8<-- [start:one]
template <class T, int OP>
__global__ void gelu_one(const T* in, T* out, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = rounded<T>(gelu_of<OP>(to_float(in[i])));
}
// --8<-- [end:one]

// N: elements of a vector; EACH: vectors of a thread; BLOCK: threads. in and
// out begin at multiples of N elements; out may be in.
// --8<-- [start:kernel]
template <class T, int N, int EACH, int BLOCK, int OP>
__global__ void __launch_bounds__(BLOCK)
    gelu(const T* in, T* out, long long n) {
  const long long vectors = n / N;
  const long long first = (long long)blockIdx.x * (EACH * BLOCK) + threadIdx.x;
  const auto* const from = reinterpret_cast<const Vector<T, N>*>(in);
  auto* const to = reinterpret_cast<Vector<T, N>*>(out);
  Vector<T, N> v[EACH];
#pragma unroll
  for (int e = 0; e < EACH; ++e)
    if (first + e * BLOCK < vectors) v[e] = from[first + e * BLOCK];
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
#pragma unroll
    for (int k = 0; k < N; ++k)
      v[e].at[k] = rounded<T>(gelu_of<OP>(to_float(v[e].at[k])));
    if (first + e * BLOCK < vectors) to[first + e * BLOCK] = v[e];
  }
  const long long tail = vectors * N + threadIdx.x;  // less than one vector
  if (blockIdx.x == 0 && tail < n)
    out[tail] = rounded<T>(gelu_of<OP>(to_float(in[tail])));
}
// --8<-- [end:kernel]

// out = gelu(x + bias) + residual, rows of `columns` elements one behind the
// other. A vector lies within a row: columns is a multiple of N. All begin at
// multiples of N elements; out may be x or residual.
// --8<-- [start:fused]
template <class T, int N, int EACH, int BLOCK, int OP>
__global__ void __launch_bounds__(BLOCK)
    bias_gelu_residual(const T* x, const T* __restrict__ bias,
                       const T* residual, T* out, long long n, int columns) {
  using Elements = Vector<T, N>;
  const long long vectors = n / N;
  const int wide = columns / N;  // vectors of a row
  const long long first = (long long)blockIdx.x * (EACH * BLOCK) + threadIdx.x;
  Elements v[EACH], r[EACH], b[EACH];
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const long long i = first + e * BLOCK;
    if (i < vectors) {
      v[e] = reinterpret_cast<const Elements*>(x)[i];
      r[e] = reinterpret_cast<const Elements*>(residual)[i];
      const int column = vectors <= 0xffffffffLL ? (unsigned)i % (unsigned)wide
                                                 : (int)(i % wide);
      b[e] = reinterpret_cast<const Elements*>(bias)[column];
    }
  }
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const long long i = first + e * BLOCK;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float y = gelu_of<OP>(to_float(v[e].at[k]) + to_float(b[e].at[k]));
      v[e].at[k] = rounded<T>(y + to_float(r[e].at[k]));
    }
    if (i < vectors) reinterpret_cast<Elements*>(out)[i] = v[e];
  }
}
// --8<-- [end:fused]

// out = x + bias, and out = x + y.
template <class T, int N, int EACH, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    add_bias(const T* x, const T* __restrict__ bias, T* out, long long n,
             int columns) {
  using Elements = Vector<T, N>;
  const long long vectors = n / N;
  const int wide = columns / N;
  const long long first = (long long)blockIdx.x * (EACH * BLOCK) + threadIdx.x;
  Elements v[EACH], b[EACH];
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const long long i = first + e * BLOCK;
    if (i < vectors) {
      v[e] = reinterpret_cast<const Elements*>(x)[i];
      b[e] = reinterpret_cast<const Elements*>(bias)[i % wide];
    }
  }
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const long long i = first + e * BLOCK;
#pragma unroll
    for (int k = 0; k < N; ++k)
      v[e].at[k] = rounded<T>(to_float(v[e].at[k]) + to_float(b[e].at[k]));
    if (i < vectors) reinterpret_cast<Elements*>(out)[i] = v[e];
  }
}

template <class T, int N, int EACH, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    add(const T* x, const T* y, T* out, long long n) {
  using Elements = Vector<T, N>;
  const long long vectors = n / N;
  const long long first = (long long)blockIdx.x * (EACH * BLOCK) + threadIdx.x;
  Elements v[EACH], w[EACH];
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const long long i = first + e * BLOCK;
    if (i < vectors) {
      v[e] = reinterpret_cast<const Elements*>(x)[i];
      w[e] = reinterpret_cast<const Elements*>(y)[i];
    }
  }
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const long long i = first + e * BLOCK;
#pragma unroll
    for (int k = 0; k < N; ++k)
      v[e].at[k] = rounded<T>(to_float(v[e].at[k]) + to_float(w[e].at[k]));
    if (i < vectors) reinterpret_cast<Elements*>(out)[i] = v[e];
  }
}
