// What a convolution is, as all kernels of this chapter get it.
//
//   Shape  the numbers; `channels` and `filters` are those of one group
#pragma once

struct Shape {
  int images, groups, channels, height, width, filters, rows, columns;
  int out_height, out_width, stride_y, stride_x, pad_y, pad_x, dilation_y,
      dilation_x;
};
