// The Mandelbrot set by subdivision; a tile that has to be divided launches
// the kernel for its parts. Needs -rdc=true and the library cudadevrt.
#include "tiles.cuh"

// --8<-- [start:subdivide]
// A block for each tile of `side` pixels, from (x0, y0) on.
extern "C" __global__ void subdivide(unsigned short* out, float left, float top,
                                     float step, int n, int most, int x0,
                                     int y0, int side, int split, int least,
                                     int* failed) {
  const Picture p{out, left, top, step, n, most};
  const int x = x0 + side * blockIdx.x, y = y0 + side * blockIdx.y;
  int value;
  if (side <= least) return compute(p, x, y, side);
  if (uniform(p, x, y, side, &value)) return fill(p, x, y, side, value);
  __shared__ bool launched;
  if (threadIdx.x == 0) {
    subdivide<<<dim3(split, split), blockDim.x, 0, cudaStreamFireAndForget>>>(
        out, left, top, step, n, most, x, y, side / split, split, least,
        failed);
    launched = cudaGetLastError() == cudaSuccess;
    if (!launched) atomicAdd(failed, 1);
  }
  __syncthreads();
  if (!launched) compute(p, x, y, side);  // nobody else will
}
// --8<-- [end:subdivide]
