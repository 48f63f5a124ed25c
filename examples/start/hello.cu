// Hello from the GPU in CUDA C++: the same launch as hello.py, without Python.
//   nvcc -arch=native hello.cu -o hello && ./hello
#include <cstdio>

// --8<-- [start:kernel]
extern "C" __global__ void hello() {
  printf("hello from block %u, thread %u\n", blockIdx.x, threadIdx.x);
}
// --8<-- [end:kernel]

// --8<-- [start:main]
int main() {
  hello<<<2, 4>>>();                       // 2 blocks of 4 threads; the call returns at once
  cudaError_t error = cudaGetLastError();  // was the launch accepted?
  if (error == cudaSuccess) {
    error = cudaDeviceSynchronize();  // wait: only now is the output complete
  }
  if (error != cudaSuccess) {
    fprintf(stderr, "%s\n", cudaGetErrorString(error));
    return 1;
  }
  return 0;
}
// --8<-- [end:main]
