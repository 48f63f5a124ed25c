// The sum of an array in one launch: the block that finishes last adds up what
// the others left.
#include "cpp/host.cuh"
#include "reduction/ladder/one_launch.cu"

int main() {
  const long long n = 100'000'007;
  const std::vector<float> host = uniform(n, 1);
  double wanted = 0, size = 0;
  for (float x : host) wanted += x, size += std::abs(x);

  int sms = 0, per_sm = 0;
  MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, reduce_one_launch,
                                                     BLOCK, 0));
  const int blocks = sms * per_sm;
  Array<float> in(host), out(1), partials(blocks);
  Array<unsigned> ticket(1);
  ticket.zero();
  const auto launch = [&] {
    reduce_one_launch<<<blocks, BLOCK>>>(in, out, n, partials, ticket);
  };

  launch();
  MUST(cudaGetLastError());
  // Each word is rounded some 30 times on its way into the sum.
  check("sum", out.host(), std::vector<double>{wanted}, 30 * 0x1p-24 * size);
  const double us = time_us(launch);
  std::printf("%lld floats: %.1f us, %.0f GB/s\n", n, us,
              in.bytes() / us / 1e3);
}
