// CUB's selections and partitions: elements above 0, or those with a flag. Each
// function follows CUB's protocol of two calls: with temp = nullptr it only
// writes the bytes of scratch memory that it needs. count: one element, how
// many are kept. A partition puts the others behind them, last one first.
//
// CUB's partition has other kernels for each type of the number of elements. Up
// to 2^31 - 1 it gets an int, which is its faster case; a selection counts in
// 32 bits inside in any case.
#include <climits>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_select.cuh>

struct Above {
  template <typename T>
  __host__ __device__ bool operator()(const T& x) const {
    return x > T();
  }
};

#define TYPE(name, T)                                                         \
  extern "C" int name##_SelectIf(void* temp, size_t* bytes, const T* in,      \
                                 T* out, long long* count, long long n,       \
                                 cudaStream_t stream) {                       \
    return cub::DeviceSelect::If(temp, *bytes, in, out, count, n, Above(),    \
                                 stream);                                     \
  }                                                                           \
  extern "C" int name##_SelectFlagged(                                        \
      void* temp, size_t* bytes, const T* in, const unsigned char* flags,     \
      T* out, long long* count, long long n, cudaStream_t stream) {           \
    return cub::DeviceSelect::Flagged(temp, *bytes, in, flags, out, count, n, \
                                      stream);                                \
  }                                                                           \
  extern "C" int name##_PartitionIf(void* temp, size_t* bytes, const T* in,   \
                                    T* out, long long* count, long long n,    \
                                    cudaStream_t stream) {                    \
    if (n <= INT_MAX)                                                         \
      return cub::DevicePartition::If(temp, *bytes, in, out, count, (int)n,   \
                                      Above(), stream);                       \
    return cub::DevicePartition::If(temp, *bytes, in, out, count, n, Above(), \
                                    stream);                                  \
  }                                                                           \
  extern "C" int name##_PartitionFlagged(                                     \
      void* temp, size_t* bytes, const T* in, const unsigned char* flags,     \
      T* out, long long* count, long long n, cudaStream_t stream) {           \
    if (n > INT_MAX) return cudaErrorInvalidValue;                            \
    return cub::DevicePartition::Flagged(temp, *bytes, in, flags, out, count, \
                                         (int)n, stream);                     \
  }

TYPE(float32, float)
TYPE(int32, int)
TYPE(int64, long long)
