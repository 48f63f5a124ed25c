// A matrix is turned: element by element from memory to memory, through tiles
// in shared memory, and by vectors of 16 bytes.
#include "cpp/host.cuh"
#include "primitives/transpose/naive.cu"
#include "primitives/transpose/several.cu"
#include "primitives/transpose/tiled.cu"
#include "primitives/transpose/vectors.cu"

int main() {
  const int rows = 6003, columns = 7001;
  // From one row to the next: multiples of 16 bytes, as vectors want them.
  const long long from_row = 7004, to_row = 6008;
  const std::vector<float> host = uniform(rows * from_row, 1);
  std::vector<float> wanted(columns * to_row);  // zeros between the rows
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      wanted[j * to_row + i] = host[i * from_row + j];
  Array<float> in(host), out(wanted.size());

  const auto tiles = [&](int high, int wide) {
    return (rows + high - 1) / high * ((columns + wide - 1) / wide);
  };
  const auto run = [&](const char* name, auto launch) {
    out.zero();
    launch();
    MUST(cudaGetLastError());
    check(name, out.host(), wanted);
    const double us = time_us(launch);
    std::printf("%-14s %8.1f us, %5.0f GB/s\n", name, us,
                2.0 * sizeof(float) * rows * columns / us / 1e3);
  };
  const dim3 flat(32, 8), square(32, 32);
  run("naive", [&] {
    transpose_naive<float>
        <<<tiles(8, 32), flat>>>(in, out, rows, columns, from_row, to_row);
  });
  run("naive, columns", [&] {
    transpose_naive_columns<float>
        <<<tiles(32, 8), flat>>>(in, out, rows, columns, from_row, to_row);
  });
  run("tiled", [&] {
    transpose_tiled<float>
        <<<tiles(32, 32), square>>>(in, out, rows, columns, from_row, to_row);
  });
  run("padded", [&] {
    transpose_padded<float>
        <<<tiles(32, 32), square>>>(in, out, rows, columns, from_row, to_row);
  });
  run("swizzled", [&] {
    transpose_swizzled<float>
        <<<tiles(32, 32), square>>>(in, out, rows, columns, from_row, to_row);
  });
  const int down = (rows + 63) / 64;  // tiles: blocks go down all of a column
  run("several", [&] {
    transpose_several<float, 64, 64, 512><<<tiles(64, 64), 512>>>(
        in, out, rows, columns, from_row, to_row, down);
  });
  run("vectors", [&] {
    transpose_vectors<float, 64, 64, 256, 0>
        <<<tiles(64, 64), 256, 64 * 64 * sizeof(float)>>>(
            in, out, rows, columns, from_row, to_row, down);
  });
  const double us = time_us([&] {
    MUST(cudaMemcpyAsync(out, in, in.bytes(), cudaMemcpyDeviceToDevice));
  });
  std::printf("%-14s %8.1f us, %5.0f GB/s\n", "copy", us,
              2.0 * in.bytes() / us / 1e3);
}
