// A sum as the programs of the part reduction check and time it: a kernel
// leaves a partial sum for each block, and is launched again on these.
#pragma once
#include "cpp/host.cuh"

struct Sum {
  const long long n;
  const std::vector<float> host;
  double wanted = 0, size = 0;
  Array<float> in, some, others;

  explicit Sum(long long n = 50'000'003)
      : n(n),
        host(uniform(n, 1)),
        in(host),
        some(n / 32 + 1),
        others(n / 32 + 1) {
    for (float x : host) wanted += x, size += std::abs(x);
  }

  // blocks(n): the blocks of a launch on n elements, each with BLOCK threads.
  template <typename Kernel, typename Blocks>
  void run(const char* name, Kernel kernel, int block, Blocks blocks) {
    float* result = nullptr;
    const auto launches = [&] {
      const float* from = in;
      float *to = some, *next = others;
      for (long long left = n; left > 1 || from == in;) {
        const long long grid = blocks(left);
        kernel<<<grid, block>>>(from, to, left);
        left = grid;
        from = result = to;
        std::swap(to, next);
      }
    };
    launches();
    MUST(cudaGetLastError());
    std::vector<float> got(1);
    MUST(cudaMemcpy(got.data(), result, sizeof(float), cudaMemcpyDeviceToHost));
    // An element passes fewer than 64 additions, unless few blocks walk far.
    const double depth = 64 + n / (blocks(n) * (double)block);
    check(name, got, std::vector<double>{wanted}, depth * 0x1p-24 * size);
    const double us = time_us(launches);
    std::printf("%-16s %8.1f us, %5.0f GB/s\n", name, us,
                in.bytes() / us / 1e3);
  }

  // A kernel each of whose threads loads `each` elements.
  template <typename Kernel>
  void run(const char* name, Kernel kernel, int block, int each = 1) {
    const long long of_block = (long long)block * each;
    run(name, kernel, block,
        [=](long long left) { return (left + of_block - 1) / of_block; });
  }
};
