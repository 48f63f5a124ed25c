// GELU of an array; and gelu(x + bias) + residual of a matrix, by three kernels
// and by one.
#include "cpp/host.cuh"
#include "primitives/fusion/gelu.cu"

double exact(double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }

int main() {
  const int rows = 8003, columns = 2052;
  const long long count = (long long)rows * columns;
  std::vector<float> host = uniform(count, 1);
  for (float& x : host) x *= 4;
  const std::vector<float> row = uniform(columns, 2), more = uniform(count, 3);
  Array<float> x(host), bias(row), residual(more), out(count);

  const auto run = [&](const char* name, const std::vector<double>& wanted,
                       int arrays, auto launch) {
    MUST(cudaMemset(out, 0xff, out.bytes()));
    launch();
    MUST(cudaGetLastError());
    std::vector<float> got = out.host();
    got.resize(wanted.size());
    // A dozen roundings of numbers up to 6, those of the error function among
    // them.
    check(name, got, wanted, 12 * 0x1p-24 * 6);
    const double us = time_us(launch);
    std::printf("%-14s %8.1f us, %5.0f GB/s that have to be moved\n", name, us,
                arrays * sizeof(float) * wanted.size() / us / 1e3);
  };
  const auto blocks = [](long long n, int of_block) {
    return (unsigned)((n + of_block - 1) / of_block);
  };
  constexpr int ERF = 0, BLOCK = 256;

  const long long n = count - 3;  // less than a vector is left
  std::vector<double> wanted(n);
  for (long long i = 0; i < n; ++i) wanted[i] = exact(host[i]);
  run("one per thread", wanted, 2,
      [&] { gelu_one<float, ERF><<<blocks(n, BLOCK), BLOCK>>>(x, out, n); });
  run("vectors", wanted, 2, [&] {
    gelu<float, 4, 2, BLOCK, ERF>
        <<<blocks(n, 4 * 2 * BLOCK), BLOCK>>>(x, out, n);
  });

  wanted.resize(count);
  for (long long i = 0; i < count; ++i)
    wanted[i] = exact((double)host[i] + row[i % columns]) + more[i];
  run("three kernels", wanted, 3, [&] {
    const unsigned grid = blocks(count, 4 * 2 * BLOCK);
    add_bias<float, 4, 2, BLOCK><<<grid, BLOCK>>>(x, bias, out, count, columns);
    gelu<float, 4, 2, BLOCK, ERF><<<grid, BLOCK>>>(out, out, count);
    add<float, 4, 2, BLOCK><<<grid, BLOCK>>>(out, residual, out, count);
  });
  run("one kernel", wanted, 3, [&] {
    bias_gelu_residual<float, 4, 1, BLOCK, ERF>
        <<<blocks(count, 4 * BLOCK), BLOCK>>>(x, bias, residual, out, count,
                                              columns);
  });
}
