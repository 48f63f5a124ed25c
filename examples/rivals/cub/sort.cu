// CUB's radix sorts. Each function follows CUB's protocol of two calls: with
// temp = nullptr it only writes the bytes of scratch memory that it needs.
//
// CUB compiles other kernels for each type of the number of elements. Up to
// 2^31
// - 1 it gets an int, which is its faster case; more are refused.
//
//   T_SortKeys    out = the keys in order; in stays as it is
//   T_SortPairs   the same with values of 32 bits
//   T_SwapKeys    by a double buffer: a has the keys, and both are written. An
//   T_SwapPairs   even number of passes leaves the result in a.
#include <climits>
#include <cub/device/device_radix_sort.cuh>

using cub::DeviceRadixSort;
using Values = cub::DoubleBuffer<unsigned>;

#define SORT(name, T)                                                         \
  extern "C" int name##_SortKeys(void* temp, size_t* bytes, const T* in,      \
                                 T* out, long long n, cudaStream_t stream) {  \
    if (n > INT_MAX) return cudaErrorInvalidValue;                            \
    return DeviceRadixSort::SortKeys(temp, *bytes, in, out, (int)n, 0,        \
                                     (int)sizeof(T) * 8, stream);             \
  }                                                                           \
  extern "C" int name##_SortPairs(                                            \
      void* temp, size_t* bytes, const T* in, T* out, const unsigned* values, \
      unsigned* values_out, long long n, cudaStream_t stream) {               \
    if (n > INT_MAX) return cudaErrorInvalidValue;                            \
    return DeviceRadixSort::SortPairs(temp, *bytes, in, out, values,          \
                                      values_out, (int)n, 0,                  \
                                      (int)sizeof(T) * 8, stream);            \
  }                                                                           \
  extern "C" int name##_SwapKeys(void* temp, size_t* bytes, T* a, T* b,       \
                                 long long n, cudaStream_t stream) {          \
    if (n > INT_MAX) return cudaErrorInvalidValue;                            \
    cub::DoubleBuffer<T> keys(a, b);                                          \
    return DeviceRadixSort::SortKeys(temp, *bytes, keys, (int)n, 0,           \
                                     (int)sizeof(T) * 8, stream);             \
  }                                                                           \
  extern "C" int name##_SwapPairs(void* temp, size_t* bytes, T* a, T* b,      \
                                  unsigned* values, unsigned* other,          \
                                  long long n, cudaStream_t stream) {         \
    if (n > INT_MAX) return cudaErrorInvalidValue;                            \
    cub::DoubleBuffer<T> keys(a, b);                                          \
    Values both(values, other);                                               \
    return DeviceRadixSort::SortPairs(temp, *bytes, keys, both, (int)n, 0,    \
                                      (int)sizeof(T) * 8, stream);            \
  }

SORT(uint32, unsigned)
SORT(int32, int)
SORT(float32, float)
SORT(uint64, unsigned long long)
