// An array in managed memory that a kernel negates: its pages move when they
// are touched, or by a prefetch before; beside it a copy from pinned memory.
#include <chrono>

#include "cpp/host.cuh"
#include "memory/unified/unified.cu"

void prefetch(float* x, size_t bytes) {
#if CUDART_VERSION >= 13000
  cudaMemLocation gpu = {};
  gpu.type = cudaMemLocationTypeDevice;
  MUST(cudaMemPrefetchAsync(x, bytes, gpu, 0));
#else
  MUST(cudaMemPrefetchAsync(x, bytes, 0));
#endif
}

int main() {
  const int n = 50'000'003;
  const std::vector<float> host = uniform(n, 1);
  const size_t bytes = n * sizeof(float);
  float *x = nullptr, *pinned = nullptr;
  MUST(cudaMallocManaged(&x, bytes));
  MUST(cudaMallocHost(&pinned, bytes));
  std::copy(host.begin(), host.end(), pinned);
  Array<float> copied(n);
  std::vector<float> wanted = host;
  for (float& word : wanted) word = -word;

  // The median time of work, by the host's clock; `before` is not timed.
  const auto show = [&](const char* name, auto before, auto work) {
    std::vector<double> times(9);
    for (double& ms : times) {
      before();
      MUST(cudaDeviceSynchronize());
      const auto begin = std::chrono::steady_clock::now();
      work();
      MUST(cudaDeviceSynchronize());
      const auto took = std::chrono::steady_clock::now() - begin;
      ms = std::chrono::duration<double, std::milli>(took).count();
    }
    std::sort(times.begin(), times.end());
    std::printf("%-22s %7.2f ms, %5.1f GB/s\n", name, times[4],
                bytes / times[4] / 1e6);
  };
  const auto from_host = [&] { std::copy(host.begin(), host.end(), x); };
  const auto launch = [&](float* words) {
    negate<<<1024, 256>>>(words, n);
    MUST(cudaGetLastError());
  };
  const auto managed = [&](const char* name, auto work) {
    from_host();
    work();
    MUST(cudaDeviceSynchronize());
    check(name, std::vector<float>(x, x + n), wanted);  // the pages come back
    show(name, from_host, work);
  };
  const auto by_copy = [&] {
    MUST(cudaMemcpy(copied, pinned, bytes, cudaMemcpyHostToDevice));
    launch(copied);
  };
  by_copy();
  check("copy, pinned", copied.host(), wanted);
  show("copy, pinned", [] {}, by_copy);
  managed("managed, page by page", [&] { launch(x); });
  int both = 0;  // whether host and GPU may use it at the same time
  MUST(cudaDeviceGetAttribute(&both, cudaDevAttrConcurrentManagedAccess, 0));
  if (both)
    managed("managed, prefetch", [&] {
      prefetch(x, bytes);
      launch(x);
    });
  else
    std::printf("no prefetch on this system\n");
  MUST(cudaFreeHost(pinned));
  MUST(cudaFree(x));
}
