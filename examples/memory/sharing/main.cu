// Two kernels at a time, each on a quarter of the SMs: one counts steps, the
// other only waits for the clock. In one stream, then in two.
#include "cpp/host.cuh"
#include "memory/sharing/sharing.cu"

int main() {
  int sms = 0;
  MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int block = 1024, grid = std::max(1, sms / 4), n = grid * block - 3;
  Array<unsigned> first(n), second(n);
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) MUST(cudaStreamCreate(&stream));

  const int tried = 100'000, ms = 20;
  const double us =
      time_us([&] { count<<<grid, block>>>(first, n, tried); }, 5);
  const int steps = std::max(1.0, tried * ms * 1e3 / us);
  // All steps of a thread at once: v * factor + more.
  unsigned factor = 1, more = 0;
  for (int step = 0; step < steps; ++step) {
    factor *= 1664525u;
    more = more * 1664525u + 1013904223u;
  }
  std::vector<unsigned> wanted(n);
  for (int i = 0; i < n; ++i) wanted[i] = i * factor + more;

  const auto counts = [&](unsigned* out, cudaStream_t stream) {
    count<<<grid, block, 0, stream>>>(out, n, steps);
  };
  const auto waits = [&](unsigned*, cudaStream_t stream) {
    spin<<<grid, block, 0, stream>>>(ms * 1'000'000LL);
  };
  const auto run = [&](const char* name, auto launch) {
    const auto two = [&](cudaStream_t other) {
      launch(first, streams[0]);
      launch(second, other);
    };
    const double one = time_us([&] { launch(first, streams[0]); }, 5);
    const double in_one = time_us([&] { two(streams[0]); }, 5);
    const double in_two = time_us([&] { two(streams[1]); }, 5);
    std::printf("%s: %.1f ms; two in one stream %.1f, in two %.1f\n", name,
                one / 1e3, in_one / 1e3, in_two / 1e3);
  };
  run("count", counts);
  check("count, first", first.host(), wanted);
  check("count, second", second.host(), wanted);
  run("spin ", waits);
  for (cudaStream_t stream : streams) MUST(cudaStreamDestroy(stream));
}
