// The windows of images as a matrix, by which a convolution becomes a product:
// a row for each channel and place in the window, a column for each window.
#include "images/convolution.cuh"
#include "images/im2col/im2col.cu"

int main() {
  // Images, groups; channels, rows, columns; filters and their windows; rows
  // and columns of results; strides, padding, dilation.
  const Shape s = {33, 1, 129, 29, 27, 1, 3, 3, 29, 27, 1, 1, 1, 1, 1, 1};
  const std::vector<float> host =
      uniform((size_t)s.images * s.channels * s.height * s.width, 1);
  const int places = s.out_height * s.out_width, columns = s.images * places;
  const int rows = s.channels * s.rows * s.columns;
  const long long pitch = (columns + 3) / 4 * 4;  // words of a row
  std::vector<float> wanted;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < pitch; ++column) {
      const int image = column / places, place = column % places;
      const int channel = row / 9;
      const int y = place / s.out_width - 1 + row % 9 / 3;
      const int x = place % s.out_width - 1 + row % 3;
      const bool inside =
          image < s.images && y >= 0 && y < s.height && x >= 0 && x < s.width;
      wanted.push_back(
          inside
              ? host[((image * s.channels + channel) * s.height + y) * s.width +
                     x]
              : 0);
    }

  Array<float> images(host), matrix(wanted.size());
  const auto run = [&](const char* name, auto kernel, dim3 grid) {
    const auto launch = [&] {
      kernel<<<grid, 256>>>(s, pitch, images, matrix);
    };
    MUST(cudaMemset(matrix, 0xff, matrix.bytes()));
    launch();
    MUST(cudaGetLastError());
    check(name, matrix.host(), wanted);
    const double us = time_us(launch);
    std::printf("%-8s %8.1f us, %5.0f GB/s read and written\n", name, us,
                (images.bytes() + matrix.bytes()) / us / 1e3);
  };
  // With some 4,096 blocks, a thread has several channels.
  const auto grid = [&](int of_thread) {
    const unsigned across = blocks(pitch / of_thread, 256);
    const int each = std::max(1u, across * s.channels / 4096);
    return dim3(across, blocks(s.channels, each));
  };
  run("words", im2col_words, blocks(rows * pitch, 256));
  run("places", im2col_places, grid(1));
  run("four", im2col_four, grid(4));
  run("row", im2col_row<3, 1>, grid(4));
}
