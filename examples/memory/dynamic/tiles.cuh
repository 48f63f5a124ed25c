// What every way to draw the Mandelbrot set has in common. Compile with
// --fmad=false: then the CPU gets the same numbers.
#pragma once

// --8<-- [start:dwell]
struct Picture {
  unsigned short* out;
  float left, top, step;
  int n, most;
};

// Steps until z = z * z + c leaves the circle of radius 2, or `most`.
__device__ int dwell(const Picture& p, int x, int y) {
  const float a = p.left + p.step * x, b = p.top + p.step * y;
  float u = 0, v = 0;
  int k = 0;
  while (k < p.most && u * u + v * v < 4) {
    const float next = u * u - v * v + a;
    v = 2 * u * v + b;
    u = next;
    ++k;
  }
  return k;
}
// --8<-- [end:dwell]

// --8<-- [start:tile]
// All threads of a block: is the border of this tile one dwell?
__device__ bool uniform(const Picture& p, int x0, int y0, int side,
                        int* value) {
  __shared__ int corner;
  int low = p.most, high = 0;
  for (int k = threadIdx.x; k < 4 * (side - 1); k += blockDim.x) {
    const int edge = k / (side - 1), i = k % (side - 1), last = side - 1;
    const int x = edge == 0 ? i : edge == 1 ? last : edge == 2 ? last - i : 0;
    const int y = edge == 0 ? 0 : edge == 1 ? i : edge == 2 ? last : last - i;
    const int found = dwell(p, x0 + x, y0 + y);
    if (k == 0) corner = found;
    low = min(low, found);
    high = max(high, found);
  }
  __syncthreads();
  *value = corner;
  return __syncthreads_and(low >= *value && high <= *value);
}

__device__ void fill(const Picture& p, int x0, int y0, int side, int value) {
  for (int k = threadIdx.x; k < side * side; k += blockDim.x)
    p.out[(y0 + k / side) * p.n + x0 + k % side] = value;
}

__device__ void compute(const Picture& p, int x0, int y0, int side) {
  for (int k = threadIdx.x; k < side * side; k += blockDim.x) {
    const int x = x0 + k % side, y = y0 + k / side;
    p.out[y * p.n + x] = dwell(p, x, y);
  }
}
// --8<-- [end:tile]
