// Sixteen counters of a thread: as an array whose index comes from the data,
// which lies in local memory, and with constant indices, in registers.
#include "basics/registers/registers.cu"
#include "cpp/host.cuh"

int main() {
  const int n = 100'003, each = 256, block = 256;
  std::vector<int> bins((size_t)n * each);
  std::vector<int> wanted((size_t)n * BINS);
  std::mt19937 random(1);
  for (size_t i = 0; i < bins.size(); ++i) {
    bins[i] = random() % BINS;
    ++wanted[(size_t)bins[i] * n + i % n];
  }
  Array<int> x(bins), out(wanted.size());
  const int grid = (n + block - 1) / block;
  const auto run = [&](const char* name, auto kernel) {
    MUST(cudaMemset(out, 0xff, out.bytes()));
    const auto launch = [&] { kernel<<<grid, block>>>(x, out, n, each); };
    launch();
    MUST(cudaGetLastError());
    check(name, out.host(), wanted);
    cudaFuncAttributes of;
    MUST(cudaFuncGetAttributes(&of, kernel));
    std::printf("%-14s %2d registers, %2zu bytes of local memory, %6.1f us\n",
                name, of.numRegs, of.localSizeBytes, time_us(launch));
  };
  run("count_indexed", count_indexed);
  run("count_unrolled", count_unrolled);
}
