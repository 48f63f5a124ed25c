// Kernels that only wait, in one stream and in three. Then a kernel that reads
// what one in another stream stores, behind an event.
#include <initializer_list>

#include "cpp/host.cuh"
#include "memory/streams/streams.cu"

int main() {
  cudaStream_t a, b, c;
  for (cudaStream_t* stream : {&a, &b, &c}) MUST(cudaStreamCreate(stream));
  const long long ns = 500'000;
  const auto run = [&](const char* name,
                       std::initializer_list<cudaStream_t> streams) {
    // The default stream, in which time_us records its events, waits for all
    // streams made by cudaStreamCreate, and they wait for it.
    const double us = time_us([&] {
      for (cudaStream_t stream : streams) spin<<<1, 1, 0, stream>>>(ns);
    });
    std::printf("%-13s %7.1f us\n", name, us);
  };
  run("one stream", {a, a, a});
  run("three streams", {a, b, c});

  const int n = 1003;
  Array<int> x(n), y(n);
  cudaEvent_t stored;
  MUST(cudaEventCreateWithFlags(&stored, cudaEventDisableTiming));
  store_late<<<1, 256, 0, a>>>(x, n, 7, ns);
  MUST(cudaGetLastError());
  MUST(cudaEventRecord(stored, a));
  MUST(cudaStreamWaitEvent(b, stored, 0));
  copy_late<<<1, 256, 0, b>>>(x, y, n, 0);
  MUST(cudaGetLastError());
  MUST(cudaStreamSynchronize(b));
  check("copy behind an event", y.host(), std::vector<int>(n, 7));
  MUST(cudaEventDestroy(stored));
  for (cudaStream_t stream : {a, b, c}) MUST(cudaStreamDestroy(stream));
}
