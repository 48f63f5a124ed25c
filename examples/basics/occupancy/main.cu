// Chains of dependent multiply-adds: with more blocks on an SM, more of the
// waiting is hidden.
#include "basics/occupancy/occupancy.cu"
#include "cpp/host.cuh"

int main() {
  const int block = 128, steps = 4000;
  int sms = 0, most = 0;
  MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&most, chains, block, 0));
  const std::vector<float> host = uniform(block, 1);
  std::vector<double> of_block(host.begin(), host.end());
  for (double& v : of_block)
    for (int step = 0; step < steps; ++step) v = v * v - 0.5;
  Array<float> x(host);
  for (int per_sm = 1; per_sm <= most; per_sm *= 2) {
    const int grid = sms * per_sm;
    Array<float> out((size_t)grid * block);
    Array<long long> begin(grid), end(grid);
    Array<int> sm(grid);
    const auto launch = [&] {
      chains<<<grid, block>>>(x, out, begin, end, sm, 0.5f, 0.25f, steps);
    };
    launch();
    MUST(cudaGetLastError());
    std::vector<double> wanted;
    for (int b = 0; b < grid; ++b)
      wanted.insert(wanted.end(), of_block.begin(), of_block.end());
    // Each step shrinks the error of the one before.
    check("chains", out.host(), wanted, 1e-6);
    const double us = time_us(launch);
    std::printf("%2d blocks per SM: %7.1f us, %6.2f TFLOP/s\n", per_sm, us,
                2.0 * grid * block * steps / us / 1e6);
  }
}
