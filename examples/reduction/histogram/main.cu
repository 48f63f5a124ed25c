// How often does each of the 256 bytes occur? Counters in L2, one set for each
// block, one set for each lane.
#include "cpp/host.cuh"
#include "reduction/histogram/histogram.cu"

int main() {
  const long long n = 100'000'003;
  std::vector<uint8_t> bytes(n);
  std::vector<unsigned> wanted(BINS);
  std::mt19937 random(1);
  for (uint8_t& byte : bytes) ++wanted[byte = random() >> 24];
  Array<uint8_t> in(bytes);
  Array<unsigned> counts(BINS);
  int sms = 0;
  MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const auto run = [&](const char* name, auto kernel) {
    int per_sm = 0;
    MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, BLOCK,
                                                       0));
    counts.zero();
    kernel<<<sms * per_sm, BLOCK>>>(in, counts, n);
    MUST(cudaGetLastError());
    check(name, counts.host(), wanted);
    const double us =
        time_us([&] { kernel<<<sms * per_sm, BLOCK>>>(in, counts, n); });
    std::printf("%-18s %8.1f us, %5.0f GB/s\n", name, us,
                in.bytes() / us / 1e3);
  };
  run("histogram_global", histogram_global);
  run("histogram_shared", histogram_shared);
  run("histogram_private", histogram_private);
}
