// CUB's scans. Each function follows CUB's protocol of two calls: with temp =
// nullptr it only writes the bytes of scratch memory that it needs.
//
// CUB compiles another kernel for each type of the number of elements. Up to
// 2^31 - 1 it gets an int, which is its faster case.
#include <climits>
#include <cub/device/device_scan.cuh>

#define SCAN(name, which, T)                                                \
  extern "C" int name##_##which(void* temp, size_t* bytes, const T* in,     \
                                T* out, long long n, cudaStream_t stream) { \
    if (n <= INT_MAX)                                                       \
      return cub::DeviceScan::which(temp, *bytes, in, out, (int)n, stream); \
    return cub::DeviceScan::which(temp, *bytes, in, out, n, stream);        \
  }

SCAN(float32, InclusiveSum, float)
SCAN(float32, ExclusiveSum, float)
SCAN(int32, InclusiveSum, int)
SCAN(int32, ExclusiveSum, int)
SCAN(int64, InclusiveSum, long long)
SCAN(int64, ExclusiveSum, long long)
SCAN(float64, InclusiveSum, double)
SCAN(float64, ExclusiveSum, double)

#define BY_KEY(name, which, T)                                              \
  extern "C" int name##_##which(void* temp, size_t* bytes, const int* keys, \
                                const T* in, T* out, long long n,           \
                                cudaStream_t stream) {                      \
    if (n > INT_MAX) return cudaErrorInvalidValue;                          \
    return cub::DeviceScan::which(temp, *bytes, keys, in, out, (int)n,      \
                                  cuda::std::equal_to<>{}, stream);         \
  }

// Segmented: elements of equal neighboring keys belong together.
BY_KEY(float32, InclusiveSumByKey, float)
BY_KEY(int32, InclusiveSumByKey, int)
