// A copy timed with its data in the L2 cache, and with the cache full of other
// data.
#include "basics/timing/timing.cu"
#include "cpp/host.cuh"

int main() {
  const int n = 1'000'003, block = 256;
  const std::vector<float> host = uniform(n, 1);
  Array<float> in(host), out(n);
  const int grid = ((n + 3) / 4 + block - 1) / block;  // four words a thread
  const auto launch = [&] { copy<<<grid, block>>>(in, out, n); };
  launch();
  MUST(cudaGetLastError());
  check("copy", out.host(), host);

  int l2 = 0;
  MUST(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0));
  Array<char> other(4 * (size_t)l2);
  const double hot = time_us(launch);
  // The time of both, less that of emptying the cache.
  const auto empty = [&] { other.zero(); };
  const double both = time_us([&] {
    empty();
    launch();
  });
  std::printf("hot  %6.1f us, %5.0f GB/s\n", hot, 2.0 * in.bytes() / hot / 1e3);
  const double cold = both - time_us(empty);
  std::printf("cold %6.1f us, %5.0f GB/s\n", cold,
              2.0 * in.bytes() / cold / 1e3);
}
