// Hello from the GPU in CUDA C++: the same launch as hello.py, without Python.
//   nvcc -arch=native hello.cu -o hello && ./hello

// --8<-- [start:program]
#include <cstdio>

__global__ void hello() { printf("Hello from the GPU\n"); }

int main() {
  hello<<<1, 1>>>();  // one thread; the call returns at once
  cudaError_t error = cudaGetLastError();  // was the launch accepted?
  if (error == cudaSuccess) {
    error = cudaDeviceSynchronize();  // wait for the GPU
  }
  if (error != cudaSuccess) {
    fprintf(stderr, "%s\n", cudaGetErrorString(error));
    return 1;
  }
  return 0;
}
// --8<-- [end:program]
