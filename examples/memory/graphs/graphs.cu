// Small kernels for CUDA graphs.
//
//   mix      one step of a chain whose result tells the order of its steps
//   chain    the same for as long as one likes: steps that wait for each other
//   note     writes down as how manyth kernel it began, and stays a while
//   spread   one step of the distances in a maze

// --8<-- [start:mix]
// x = 1664525 x + k, modulo 2^32: another order of the steps, or a step too
// few, gives another result.
extern "C" __global__ void mix(unsigned int* x, unsigned int k, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 1664525u * x[i] + k;
}
// --8<-- [end:mix]

// --8<-- [start:chain]
extern "C" __global__ void chain(unsigned int* x, unsigned int k, int n,
                                 int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned int value = x[i];
#pragma unroll 1
  for (int step = 0; step < steps; ++step) value = 1664525u * value + k;
  x[i] = value;
}
// --8<-- [end:chain]

// --8<-- [start:note]
extern "C" __global__ void note(int* count, int* place, int who, int steps) {
  place[who] = atomicAdd(count, 1);
  unsigned int value = who;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) value = 1664525u * value + 1u;
  if (value == 0u) count[1] = 1;  // so that the steps are not left out
}
// --8<-- [end:note]

// --8<-- [start:spread]
// One more step away from the start. far: where nobody has been yet.
extern "C" __global__ void spread(const int* __restrict__ before, int* after,
                                  const unsigned char* __restrict__ open,
                                  int* changed, int side, int far) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= side || y >= side) return;
  const int i = y * side + x, own = before[i];
  int best = own;
  if (open[i]) {
    if (x > 0) best = min(best, before[i - 1] + 1);
    if (x < side - 1) best = min(best, before[i + 1] + 1);
    if (y > 0) best = min(best, before[i - side] + 1);
    if (y < side - 1) best = min(best, before[i + side] + 1);
    best = min(best, far);
  }
  after[i] = best;
  if (best != own) *changed = 1;  // all of them write the same value
}
// --8<-- [end:spread]
