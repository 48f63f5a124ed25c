// An image mirrored left to right: a grid and blocks of two dimensions.
#include "basics/indexing/indexing.cu"
#include "cpp/host.cuh"

int main() {
  const int rows = 2161, columns = 3843;
  const std::vector<float> image = uniform((size_t)rows * columns, 1);
  Array<float> in(image), out(image.size());
  const dim3 block(32, 8);
  const dim3 grid((columns + block.x - 1) / block.x,
                  (rows + block.y - 1) / block.y);
  const auto launch = [&] { flip<<<grid, block>>>(in, out, rows, columns); };

  launch();
  MUST(cudaGetLastError());
  std::vector<float> wanted(image.size());
  for (int row = 0; row < rows; ++row)
    std::reverse_copy(image.begin() + (size_t)row * columns,
                      image.begin() + (size_t)(row + 1) * columns,
                      wanted.begin() + (size_t)row * columns);
  check("flip", out.host(), wanted);
  const double us = time_us(launch);
  std::printf("%d x %d: %.1f us, %.0f GB/s\n", rows, columns, us,
              2.0 * in.bytes() / us / 1e3);
}
