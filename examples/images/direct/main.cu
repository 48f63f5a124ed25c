// A convolution with windows of 3 x 3 as it is defined: a result for each
// thread; the weights in constant memory, or the image in shared memory; and
// many results for each thread.
// requires: sm_80
#include "images/convolution.cuh"
#include "images/direct/constant.cu"
#include "images/direct/naive.cu"
#include "images/direct/several.cu"
#include "images/direct/window.cu"
#define tile tile_of_image  // several.cu has a `tile` of another kind
#include "images/direct/tiled.cu"
#undef tile

int main() {
  // Images, groups; channels, rows, columns; filters and their windows; rows
  // and columns of results; strides, padding, dilation.
  const Shape s = {33, 1, 132, 29, 28, 136, 3, 3, 29, 28, 1, 1, 1, 1, 1, 1};
  Convolution<Shape> c(s);
  c.run("naive", [&] {
    direct_naive<<<blocks(c.y.size(), 256), 256>>>(s, c.x, c.w, c.y);
  });

  c.run("constant", [&] {
    const int fit = HELD / c.depth;
    for (int first = 0; first < s.filters; first += fit) {
      const int count = std::min(fit, s.filters - first);
      MUST(cudaMemcpyToSymbolAsync(held, c.w + first * c.depth,
                                   count * c.depth * sizeof(float), 0,
                                   cudaMemcpyDeviceToDevice));
      const dim3 grid(blocks((long long)s.images * c.places, 256), count);
      direct_constant<<<grid, 256>>>(s, first, c.x, c.y);
    }
  });

  c.run("tiled", [&] {
    const int down = blocks(s.out_height, HIGH),
              across = blocks(s.out_width, WIDE);
    const int high = HIGH + 2, wide = WIDE + 2;  // what the windows cover
    direct_tiled<<<s.images * s.filters * down * across, dim3(WIDE, HIGH),
                   high * wide * sizeof(float)>>>(s, high, wide, down, across,
                                                  c.x, c.w, c.y);
  });

  // A warp has 28 x 8 places: a thread 7 below each other, of 8 filters.
  const int down = blocks(s.out_height, 28), across = blocks(s.out_width, 8);
  const int grid = s.images * down * across * blocks(s.filters, 4 * 8);
  c.run("several", [&] {
    const int high = 28 + 2, wide = 8 + 2, pitch = pitch_of(wide, 8, 7, 1);
    const int area = high * pitch, weights = 9 * weights_pitch(4 * 8);
    const int channels = (32 << 10) / sizeof(float) / (area + weights);
    const int words = (channels * area + 3) / 4 * 4 + channels * weights;
    const Tile tile = {high, wide, pitch, down, across, channels};
    direct_several<7, 8, 8, 4>
        <<<grid, 128, words * sizeof(float)>>>(s, tile, c.x, c.w, c.y);
  });
  c.run("window", [&] {
    direct_window<7, 8, 8, 4, 8, 3, 3, 1, false>
        <<<grid, 128>>>(s, down, across, c.x, c.w, c.y);
  });
  c.run("window, ahead", [&] {
    direct_window<7, 8, 8, 4, 4, 3, 3, 1, true>
        <<<grid, 128>>>(s, down, across, c.x, c.w, c.y);
  });
}
