#include "saxpy.cuh"
#include "saxpy.hpp"

// --8<-- [start:launch]
int saxpy_launch(float a, const float* x, float* y, int n, void* stream) {
  if (n < 1) return cudaSuccess;
  const int block = 256, grid = (n + block - 1) / block;
  saxpy<<<grid, block, 0, static_cast<cudaStream_t>(stream)>>>(a, x, y, n);
  return cudaGetLastError();  // of this launch, such as a wrong grid
}
// --8<-- [end:launch]

int saxpy_launches(float a, const float* x, float* y, int n, void* stream,
                   int count) {
  int error = cudaSuccess;
  for (int k = 0; k < count && error == cudaSuccess; ++k)
    error = saxpy_launch(a, x, y, n, stream);
  return error;
}

int saxpy_nothing(float, const float*, float*, int, void*) {
  return cudaSuccess;
}

// --8<-- [start:of-host]
int saxpy_of_host(float a, const float* x, float* y, int n) {
  const size_t bytes = n * sizeof(float);
  float *on_gpu = nullptr, *y_on_gpu = nullptr;
  int error = cudaMalloc(&on_gpu, 2 * bytes);
  if (!error) {
    y_on_gpu = on_gpu + n;
    error = cudaMemcpy(on_gpu, x, bytes, cudaMemcpyHostToDevice);
  }
  if (!error) error = cudaMemcpy(y_on_gpu, y, bytes, cudaMemcpyHostToDevice);
  if (!error) error = saxpy_launch(a, on_gpu, y_on_gpu, n, nullptr);
  if (!error) error = cudaMemcpy(y, y_on_gpu, bytes, cudaMemcpyDeviceToHost);
  cudaFree(on_gpu);
  return error;
}
// --8<-- [end:of-host]

int saxpy_wake(void) { return cudaFree(nullptr); }

const char* saxpy_error(int error) {
  return cudaGetErrorName(static_cast<cudaError_t>(error));
}
