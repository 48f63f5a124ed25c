// What the error-checking macros of CUDA C++ know: where they stand, what the
// runtime remembers.
#include <cstdio>

// --8<-- [start:macro]
static void report(cudaError_t error, const char* call, const char* file,
                   int line) {
  printf("%s:%d  %-26s %s\n", file, line, call, cudaGetErrorName(error));
}
// A macro because __FILE__ and __LINE__ must expand where it is used; the call
// costs the same.
#define CUDA_REPORT(call) report((call), #call, __FILE__, __LINE__)
// --8<-- [end:macro]

extern "C" __global__ void fill(float* out, long long offset) {
  out[offset + blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
}

int main() {
  float* out = nullptr;
  const size_t bytes = 50000 * sizeof(float);
  CUDA_REPORT(cudaMalloc(&out, bytes));

  // --8<-- [start:rejected]
  fill<<<10, 5000>>>(out, 0);
  CUDA_REPORT(cudaPeekAtLastError());    // available right after the launch
  CUDA_REPORT(cudaPeekAtLastError());    // a peek does not clear it
  CUDA_REPORT(cudaGetLastError());       // this returns it and clears it
  CUDA_REPORT(cudaGetLastError());       // so now there is none
  CUDA_REPORT(cudaDeviceSynchronize());  // and there never was a kernel to fail
  // --8<-- [end:rejected]

  // --8<-- [start:sticky]
  fill<<<10, 500>>>(out, 1LL << 40);
  CUDA_REPORT(cudaGetLastError());       // the launch itself was legal
  CUDA_REPORT(cudaDeviceSynchronize());  // the error arrives here
  CUDA_REPORT(cudaGetLastError());       // the runtime's note of it,
  CUDA_REPORT(cudaGetLastError());       // which reading it has cleared
  CUDA_REPORT(cudaFree(out));            // but the context is still lost
  // --8<-- [end:sticky]
  return 0;
}
