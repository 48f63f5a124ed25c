// What a convolution is, as kernels get it: `struct` of Shape in shapes.py.
// channels and filters are those of one group.
//
//   Shape   the numbers
//   window  weights of a filter for one channel
//   plane   places of results in an image
#pragma once

struct Shape {
  int images, groups, channels, height, width, filters, rows, columns;
  int out_height, out_width, stride_y, stride_x, pad_y, pad_x, dilation_y,
      dilation_x;
};

__device__ __forceinline__ int window(const Shape& s) {
  return s.rows * s.columns;
}

__device__ __forceinline__ int plane(const Shape& s) {
  return s.out_height * s.out_width;
}
