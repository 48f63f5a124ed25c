// Copies between the host and the GPU, from ordinary and from pinned memory; a
// kernel that reads and writes the host's memory itself, and one that fetches
// rows of a table there.
#include "cpp/host.cuh"
#include "memory/pinned/pinned.cu"

int main() {
  const size_t n = 50'000'003, row = 128, rows = n / row;
  std::vector<float> pageable = uniform(n, 1);
  const size_t bytes = n * sizeof(float);
  float* pinned = nullptr;  // at the same address for host and GPU
  MUST(cudaMallocHost(&pinned, bytes));
  Array<float> x(n);
  const auto show = [&](const char* name, size_t moved, auto call) {
    const double us = time_us(call, 9);
    std::printf("%-22s %7.2f ms, %5.1f GB/s\n", name, us / 1e3,
                moved / us / 1e3);
  };
  const auto to_gpu = [&](const char* name, auto call) {
    std::copy(pageable.begin(), pageable.end(), pinned);
    MUST(cudaMemset(x, 0xff, bytes));
    call();
    check(name, x.host(), pageable);
    show(name, bytes, call);
  };
  const auto to_host = [&](const char* name, float* host, auto call) {
    std::fill(host, host + n, NAN);
    call();
    MUST(cudaDeviceSynchronize());
    check(name, std::vector<float>(host, host + n), x.host());
    show(name, bytes, call);
  };
  const auto copy_by_host = [](float* to, const float* from, size_t bytes) {
    MUST(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
  };
  const auto copy_by_kernel = [](float* to, const float* from, size_t n) {
    const size_t tile = 4 * VECTORS * 256;  // floats of a block
    copy<<<(n + tile - 1) / tile, 256>>>(from, to, n);
    MUST(cudaGetLastError());
  };
  float* usual = pageable.data();
  to_gpu("to the GPU, pageable", [&] { copy_by_host(x, usual, bytes); });
  to_gpu("to the GPU, pinned", [&] { copy_by_host(x, pinned, bytes); });
  to_gpu("to the GPU, kernel", [&] { copy_by_kernel(x, pinned, n); });
  to_host("to the host, pageable", usual,
          [&] { copy_by_host(usual, x, bytes); });
  to_host("to the host, pinned", pinned,
          [&] { copy_by_host(pinned, x, bytes); });
  to_host("to the host, kernel", pinned, [&] { copy_by_kernel(pinned, x, n); });

  const int count = 100'003;
  std::mt19937 random(2);
  std::vector<int> which(count);
  std::vector<float> wanted;
  for (int& one : which) {
    one = random() % rows;
    wanted.insert(wanted.end(), pinned + one * row, pinned + (one + 1) * row);
  }
  Array<int> these(which);
  Array<float> out(wanted.size());
  const auto fetch = [&] {
    fetch_rows<<<(count + 7) / 8, 256>>>(pinned, these, out, count);
  };
  fetch();
  check("rows fetched", out.host(), wanted);
  show("rows fetched", out.bytes(), fetch);
  MUST(cudaFreeHost(pinned));
}
