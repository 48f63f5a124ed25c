// A product of matrices, C = A B in fp32, as the programs of the parts basics
// and gemm check and time it: row-major, A is m x k, B is k x n, C is m x n.
#pragma once
#include "cpp/host.cuh"

inline unsigned blocks(int length, int tile) {
  return (length + tile - 1) / tile;
}

struct Product {
  const int m, n, k;
  const std::vector<float> a, b;
  Array<float> A, B, C;

  Product(int m, int n, int k)
      : m(m),
        n(n),
        k(k),
        a(uniform((size_t)m * k, 1)),
        b(uniform((size_t)k * n, 2)),
        A(a),
        B(b),
        C((size_t)m * n) {}

  // launch() writes C. Some rows of it are compared with the product in fp64;
  // a sum of k products of numbers up to 1 may miss k roundings of up to k.
  // Returns the microseconds of a launch.
  template <typename Launch>
  double run(const char* name, Launch launch) {
    MUST(cudaMemset(C, 0xff, C.bytes()));
    launch();
    MUST(cudaGetLastError());
    const std::vector<float> c = C.host();
    std::vector<float> got;
    for (int row : rows())
      got.insert(got.end(), c.begin() + (size_t)row * n,
                 c.begin() + (size_t)(row + 1) * n);
    if (wanted.empty()) multiply();
    check(name, got, wanted, 0x1p-24 * k * std::sqrt((double)k));
    const double us = time_us(launch);
    std::printf("%-20s %8.1f us, %6.2f TFLOP/s\n", name, us,
                2.0 * m * n * k / us / 1e6);
    return us;
  }

 private:
  std::vector<double> wanted;  // these rows of the product

  // The first and the last, and some of all tiles between them.
  std::vector<int> rows() const {
    std::vector<int> some;
    for (int row = 0; row < m; row += m / 64 | 1) some.push_back(row);
    if (some.back() != m - 1) some.push_back(m - 1);
    return some;
  }

  void multiply() {
    for (int row : rows()) {
      std::vector<double> sums(n);
      for (int i = 0; i < k; ++i) {
        const double x = a[(size_t)row * k + i];
        for (int j = 0; j < n; ++j) sums[j] += x * b[(size_t)i * n + j];
      }
      wanted.insert(wanted.end(), sums.begin(), sums.end());
    }
  }
};
