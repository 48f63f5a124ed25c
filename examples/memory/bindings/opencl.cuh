// OpenCL's functions for indices, in CUDA: an OpenCL kernel that uses them can
// stay as it is. An offset of the launch, which OpenCL may have, is 0 here.
#pragma once

// --8<-- [start:opencl]
__device__ inline unsigned int of(uint3 v, int d) {
  return d == 0 ? v.x : d == 1 ? v.y : v.z;
}
__device__ inline unsigned int of(dim3 v, int d) {
  return d == 0 ? v.x : d == 1 ? v.y : v.z;
}

__device__ inline unsigned int get_group_id(int d) { return of(blockIdx, d); }
__device__ inline unsigned int get_local_id(int d) { return of(threadIdx, d); }
__device__ inline unsigned int get_local_size(int d) { return of(blockDim, d); }
__device__ inline unsigned int get_num_groups(int d) { return of(gridDim, d); }
__device__ inline unsigned int get_global_id(int d) {
  return get_group_id(d) * get_local_size(d) + get_local_id(d);
}
__device__ inline unsigned int get_global_size(int d) {
  return get_num_groups(d) * get_local_size(d);
}
// --8<-- [end:opencl]
