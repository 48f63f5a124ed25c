// The product's rows are filters, its columns the places of all images; results
// have the images first.
//
//   images_first  the kernel
//
// requires: sm_75

// --8<-- [start:kernel]
// to[image][filter][place] = from[filter][image][place]; `pitch` words from one
// row of from to the next. One thread for each result.
extern "C" __global__ void images_first(const int images, const int filters,
                                        const int plane, const long long pitch,
                                        const float* __restrict__ from,
                                        float* __restrict__ to) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)images * filters * plane) return;
  const int place = (int)(i % plane);
  const long long which = i / plane, image = which / filters;
  to[i] = from[which % filters * pitch + image * plane + place];
}
// --8<-- [end:kernel]
