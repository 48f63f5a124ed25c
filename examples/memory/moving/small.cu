// Small data that reach a kernel in three ways.

#ifndef COUNT
#define COUNT 1000  // floats of the small data
#endif

// --8<-- [start:small]
struct Small {
  float v[COUNT];
};

// The data are an argument: they come with the launch.
extern "C" __global__ void from_argument(const __grid_constant__ Small small,
                                         float* out) {
  for (int i = threadIdx.x; i < COUNT; i += blockDim.x) out[i] = 2 * small.v[i];
}

// The data lie in constant memory, where the host has copied them.
__constant__ float table[COUNT];

extern "C" __global__ void from_constant(float* out) {
  for (int i = threadIdx.x; i < COUNT; i += blockDim.x) out[i] = 2 * table[i];
}

// The data lie where the pointer says: in device memory or with the host.
extern "C" __global__ void from_pointer(const float* in, float* out) {
  for (int i = threadIdx.x; i < COUNT; i += blockDim.x) out[i] = 2 * in[i];
}
// --8<-- [end:small]
