// CUB, the vendor's library of block- and device-wide algorithms, behind C
// functions that Python can call. Each follows CUB's own two-call protocol:
// with temp = nullptr it only writes the bytes of scratch memory needed.
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_reduce.cuh>

#ifdef _WIN32
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C"
#endif

EXPORT int cub_sum_float32(void* temp, size_t* bytes, const float* in,
                           float* out, long long n) {
  return cub::DeviceReduce::Sum(temp, *bytes, in, out, n);
}

EXPORT int cub_sum_int32(void* temp, size_t* bytes, const int* in, int* out,
                         long long n) {
  return cub::DeviceReduce::Sum(temp, *bytes, in, out, n);
}

// 256 counters, one for each value of a byte.
EXPORT int cub_histogram_uint8(void* temp, size_t* bytes,
                               const unsigned char* in, unsigned int* counts,
                               long long n) {
  return cub::DeviceHistogram::HistogramEven(temp, *bytes, in, counts, 257, 0,
                                             256, n);
}
