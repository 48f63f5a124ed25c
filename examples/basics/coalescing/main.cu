// A copy by a warp whose lanes read neighboring words, or words that lie apart.
#include "basics/coalescing/coalescing.cu"
#include "cpp/host.cuh"

int main() {
  const int n = 1 << 22, block = 256;
  const std::vector<float> host = uniform((size_t)n * 32, 1);
  Array<float> in(host), out(n);
  for (int stride : {1, 2, 4, 8, 16, 32}) {
    const auto launch = [&] {
      read_pattern<<<n / block, block>>>(in, out, stride, 0, 1, 0);
    };
    launch();
    MUST(cudaGetLastError());
    std::vector<float> wanted(n);
    for (int i = 0; i < n; ++i) wanted[i] = host[(size_t)i * stride];
    check("read_pattern", out.host(), wanted);
    const double us = time_us(launch);
    std::printf("stride %2d: %6.1f us, %5.0f GB/s of words that are used\n",
                stride, us, 2.0 * out.bytes() / us / 1e3);
  }
}
