// How long a load takes and how many bytes come in a second, from working sets
// that L1 holds, that L2 holds, and that neither holds.
#include "cpp/host.cuh"
#include "memory/caches/caches.cu"

// Cycles and nanoseconds of a load on a ring through all lines, at random.
void latency(size_t kib) {
  const int lines = kib * 8, steps = 16384, words = 16;  // of a line
  std::vector<long long> places(lines);
  for (int i = 0; i < lines; ++i) places[i] = (long long)words * i;
  std::shuffle(places.begin(), places.end(), std::mt19937(1));
  Array<long long> room((size_t)lines * words), order(places), out(3);
  link_ring<<<(lines + 255) / 256, 256>>>(room, order, lines);
  chase<PLAIN><<<1, 1>>>(room + places[0], lines, steps, out);
  MUST(cudaGetLastError());
  const std::vector<long long> found = out.host();
  const long long *begin = room, *end = (const long long*)found[2];
  check("where it ended", std::vector<long long>{end - begin},
        std::vector<long long>{places[steps % lines]});
  std::printf("%7zu KiB: %6.1f cycles, %6.1f ns\n", kib,
              (double)found[0] / steps, (double)found[1] / steps);
}

// All SMs read, each a slice of its own, again and again.
template <int HINT>
void bandwidth(Array<unsigned>& data, const std::vector<unsigned>& host,
               int sms, int kib) {
  const int vectors = kib * 64, passes = std::max(1, (2 << 20) / (sms * kib));
  Array<unsigned> sums(sms * 1024);
  Array<long long> spent(sms);
  const uint4* room = reinterpret_cast<const uint4*>((unsigned*)data);
  const auto launch = [&] {
    read_slices<HINT><<<sms, 1024>>>(room, vectors, passes, sums, spent);
  };
  launch();
  MUST(cudaGetLastError());
  std::vector<unsigned> by_threads = sums.host(), got(sms), wanted(sms);
  for (int i = 0; i < sms * 1024; ++i) got[i / 1024] += by_threads[i];
  for (size_t i = 0; i < (size_t)sms * vectors * 4; ++i)
    wanted[i / (vectors * 4)] += host[i] * passes;
  check("sums", got, wanted);
  std::printf("%5d KiB of each SM, %s: %6.0f GB/s\n", kib,
              HINT == CG ? "past L1" : "through L1",
              1024.0 * kib * sms * passes / time_us(launch, 5) / 1e3);
}

int main() {
  for (size_t kib : {16, 128, 1024, 8192, 32768, 262144}) latency(kib);
  int sms = 0;
  MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  std::vector<unsigned> host((size_t)sms * 2048 * 256);
  std::generate(host.begin(), host.end(), std::mt19937(2));
  Array<unsigned> data(host);
  for (int kib : {64, 192, 2048}) {
    bandwidth<PLAIN>(data, host, sms, kib);
    bandwidth<CG>(data, host, sms, kib);
  }
}
