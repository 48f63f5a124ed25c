// A depthwise convolution, a filter for each channel: with a result for each
// thread, and with seven rows of four results.
#include "images/convolution.cuh"
#include "images/depthwise/planes.cu"
#include "images/direct/naive.cu"

int main() {
  // Images, groups; channels, rows, columns; filters and their windows; rows
  // and columns of results; strides, padding, dilation.
  const Shape s = {33, 97, 1, 111, 112, 1, 3, 3, 111, 112, 1, 1, 1, 1, 1, 1};
  Convolution<Shape> c(s);
  c.run("naive", [&] {
    direct_naive<<<blocks(c.y.size(), 256), 256>>>(s, c.x, c.w, c.y);
  });
  const int across = s.out_width / 4, down = blocks(s.out_height, 7);
  const int threads = s.images * s.groups * down * across;
  const auto launch = [&] {
    planes<3, 1, 4, 7, 2, 4><<<blocks(threads, 128), 128>>>(
        s, across, down, threads, c.x, c.w, c.y);
  };
  c.run("planes", launch);
  std::printf("%.0f GB/s read and written\n",
              (c.x.bytes() + c.y.bytes()) / time_us(launch) / 1e3);
}
