// Divergence: what the compiler predicates, what branches, and what a warp
// runs.
//
//   short_if, long_if, nested_if, loop_if   four shapes of `if`
//   trips      a loop whose number of turns differs from lane to lane
//   ways       eight sides of equal length; the data choose the side, and
//              `order` which element a thread takes
//   hoisted    the same, with the side chosen by selects
//   locked     32 lanes of one warp take one lock, one after another
//
// The number of a thread stays unsigned, as CUDA gives it: in an int it could
// pass 2^31 - 1 in the last block although n does not.
#define WAYS 8

// --8<-- [start:ifs]
extern "C" __global__ void short_if(const float* __restrict__ x,
                                    float* __restrict__ out, int n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  if (v < 0.0f) v = 0.01f * v;  // one instruction to skip
  out[i] = v;
}

extern "C" __global__ void long_if(const float* __restrict__ x,
                                   float* __restrict__ out, int n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  if (v < 0.0f) {
#pragma unroll
    for (int j = 0; j < 32; ++j)
      v = fmaf(v, v, -0.5f);  // 32 instructions to skip
  }
  out[i] = v;
}

extern "C" __global__ void nested_if(const float* __restrict__ x,
                                     float* __restrict__ out, int n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  if (v < 0.0f) {
    if (v < -1.0f) v = -1.0f;
    v = 0.5f * v;
  } else if (v > 1.0f) {
    v = 1.0f;
  }
  out[i] = v;
}

extern "C" __global__ void loop_if(const float* __restrict__ x,
                                   float* __restrict__ out, int n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
#pragma unroll 1
  while (v < 1.0f) v = fmaf(v, 0.5f, 0.75f);  // how often depends on v
  out[i] = v;
}
// --8<-- [end:ifs]

// --8<-- [start:trips]
extern "C" __global__ void trips(const float* __restrict__ x,
                                 const int* __restrict__ count,
                                 float* __restrict__ out, int n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  int left = count[i];  // at least 1
#pragma unroll 1
  do {
    v = fmaf(0.999f, v, 0.001f);
  } while (--left > 0);
  out[i] = v;
}
// --8<-- [end:trips]

// --8<-- [start:ways]
__device__ __forceinline__ float side(float v, float a, int steps) {
#pragma unroll 4
  for (int j = 0; j < steps; ++j) v = fmaf(a, v, 0.001f);
  return v;
}

// order: the element that each thread takes; way: the side of an element.
extern "C" __global__ void ways(const float* __restrict__ x,
                                const int* __restrict__ way,
                                const int* __restrict__ order,
                                float* __restrict__ out, int n, int steps) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  int i = order[t];
  float v = x[i];
  switch (way[i]) {
    case 0:
      v = side(v, 0.991f, steps);
      break;
    case 1:
      v = side(v, 0.992f, steps);
      break;
    case 2:
      v = side(v, 0.993f, steps);
      break;
    case 3:
      v = side(v, 0.994f, steps);
      break;
    case 4:
      v = side(v, 0.995f, steps);
      break;
    case 5:
      v = side(v, 0.996f, steps);
      break;
    case 6:
      v = side(v, 0.997f, steps);
      break;
    default:
      v = side(v, 0.998f, steps);
      break;
  }
  out[i] = v;
}
// --8<-- [end:ways]

// --8<-- [start:hoisted]
// The sides differ in one number only: choose it, and share the loop.
extern "C" __global__ void hoisted(const float* __restrict__ x,
                                   const int* __restrict__ way,
                                   float* __restrict__ out, int n, int steps) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int chosen = way[i];
  const float factor[WAYS] = {0.991f, 0.992f, 0.993f, 0.994f,
                              0.995f, 0.996f, 0.997f, 0.998f};
  float a = factor[WAYS - 1];
#pragma unroll
  for (int w = 0; w < WAYS - 1; ++w)
    a = chosen == w ? factor[w] : a;  // selects, no branch
  out[i] = side(x[i], a, steps);
}
// --8<-- [end:hoisted]

// --8<-- [start:locked]
// 32 lanes, one lock. A lane without the lock spins, for `patience` cycles at
// most. Then every lane asks which lanes are here.
extern "C" __global__ void locked(int* lock, volatile int* sum,
                                  unsigned* __restrict__ happens,
                                  unsigned* __restrict__ joined,
                                  long long patience) {
  const long long begin = clock64();
  while (atomicCAS(lock, 0, 1) != 0) {
    if (clock64() - begin > patience) return;
  }
  __threadfence();
  *sum = *sum + 1;  // no atomic: the lock protects it
  __threadfence();
  atomicExch(lock, 0);
  happens[threadIdx.x] = __activemask();  // lanes that happen to be here
  __syncwarp();                           // all lanes of the warp come together
  joined[threadIdx.x] = __activemask();
}
// --8<-- [end:locked]
