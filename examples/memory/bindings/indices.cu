#include "opencl.cuh"

// What each thread is told by six functions in three dimensions, in the order
// of OpenCL's global numbers: told[(function * 3 + dimension) * threads + own].
extern "C" __global__ void told_by(unsigned int* told) {
  const unsigned int own =
      (get_global_id(2) * get_global_size(1) + get_global_id(1)) *
          get_global_size(0) +
      get_global_id(0);
  const unsigned int threads =
      get_global_size(0) * get_global_size(1) * get_global_size(2);
  for (int d = 0; d < 3; ++d) {
    const unsigned int values[6] = {get_group_id(d),   get_local_id(d),
                                    get_local_size(d), get_num_groups(d),
                                    get_global_id(d),  get_global_size(d)};
    for (int f = 0; f < 6; ++f) told[(f * 3 + d) * threads + own] = values[f];
  }
}
