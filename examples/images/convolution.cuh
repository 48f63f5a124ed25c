// A convolution in fp32, NCHW, as programs of this part check and time it: of
// random images with random weights.
#pragma once
#include "cpp/host.cuh"

inline unsigned blocks(long long count, int of_block) {
  return (unsigned)((count + of_block - 1) / of_block);
}

template <typename Shape>  // that of shape.cuh
struct Convolution {
  const Shape s;
  const int places, depth;  // results of a filter in an image; their products
  const std::vector<float> images, weights;
  Array<float> x, w, y;

  explicit Convolution(const Shape& s)
      : s(s),
        places(s.out_height * s.out_width),
        depth(s.channels * s.rows * s.columns),
        images(uniform(
            (size_t)s.images * s.groups * s.channels * s.height * s.width, 1)),
        weights(uniform((size_t)s.groups * s.filters * depth, 2)),
        x(images),
        w(weights),
        y((size_t)s.images * s.groups * s.filters * places) {}

  // launch() writes y. The first image and the last one are compared with the
  // convolution in fp64: a sum of `depth` products of numbers up to 1 hardly
  // exceeds 2 sqrt(depth), and may miss as many roundings as it has products.
  template <typename Launch>
  void run(const char* name, Launch launch) {
    MUST(cudaMemset(y, 0xff, y.bytes()));
    launch();
    MUST(cudaGetLastError());
    const size_t of_image = y.size() / s.images;
    std::vector<float> got = y.host();
    got.erase(got.begin() + of_image, got.end() - of_image);
    if (wanted.empty()) convolve(0), convolve(s.images - 1);
    check(name, got, wanted, 2 * std::sqrt((double)depth) * depth * 0x1p-24);
    const double us = time_us(launch);
    std::printf("%-16s %8.1f us, %6.2f TFLOP/s\n", name, us,
                2.0 * y.size() * depth / us / 1e6);
  }

 private:
  std::vector<double> wanted;

  void convolve(int image) {
    const float* weight = weights.data();
    for (int filter = 0; filter < s.groups * s.filters; ++filter) {
      std::vector<double> sums(places);
      const float* from =
          &images[((size_t)image * s.groups + filter / s.filters) * s.channels *
                  s.height * s.width];
      for (int c = 0; c < s.channels; ++c, from += s.height * s.width)
        for (int r = 0; r < s.rows; ++r)
          for (int q = 0; q < s.columns; ++q, ++weight)
            for (int i = 0; i < places; ++i) {
              const int row = i / s.out_width * s.stride_y - s.pad_y +
                              r * s.dilation_y,
                        column = i % s.out_width * s.stride_x - s.pad_x +
                                 q * s.dilation_x;
              if (row >= 0 && row < s.height && column >= 0 && column < s.width)
                sums[i] += (double)*weight * from[row * s.width + column];
            }
      wanted.insert(wanted.end(), sums.begin(), sums.end());
    }
  }
};
