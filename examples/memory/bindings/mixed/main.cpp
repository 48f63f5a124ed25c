// Compiled by g++, which knows nothing of CUDA; it calls what nvcc compiled.
#include <omp.h>

#include <chrono>
#include <cstdio>
#include <vector>

#include "saxpy.hpp"

using Clock = std::chrono::steady_clock;

int main() {
  const int n = 1000003;
  std::vector<float> x(n), y(n), before(n);
  for (int i = 0; i < n; ++i) x[i] = i % 1000, before[i] = i % 77;

  int error = saxpy_wake();
  double took[2] = {};  // ms: the first call brings the kernel to the GPU
  for (int call = 0; call < 2 && !error; ++call) {
    y = before;
    const auto begin = Clock::now();
    error = saxpy_of_host(2.5f, x.data(), y.data(), n);
    const std::chrono::duration<double, std::milli> ms = Clock::now() - begin;
    took[call] = ms.count();
  }
  if (error) {
    std::printf("%s\n", saxpy_error(error));
    return 1;
  }
  int right = 0, threads = 1;
#pragma omp parallel reduction(+ : right)
  {
#pragma omp single
    threads = omp_get_num_threads();
#pragma omp for
    for (int i = 0; i < n; ++i) right += y[i] == 2.5f * x[i] + before[i];
  }
  std::printf("right: %d of %d, by %d threads of the host\n", right, n,
              threads);
  std::printf("first call %.2f ms, second call %.2f ms\n", took[0], took[1]);
  return right != n;
}
