// Copies inside the GPU, by cp.async through shared memory and by the driver;
// and small data as an argument of a kernel, beside a copy of them.
// requires: sm_80
#include "cpp/host.cuh"
#include "memory/moving/moving.cu"
#include "memory/moving/small.cu"

int main() {
  const size_t n = 100'000'003;
  const int block = 512, shared = AHEAD * block * sizeof(uint4);
  int sms = 0, per_sm = 0;
  MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, copy_async, block,
                                                     shared));
  const std::vector<float> host = uniform(n, 1);
  Array<float> in(host), out(n);
  const auto run = [&](const char* name, auto launch) {
    MUST(cudaMemset(out, 0xff, out.bytes()));
    launch();
    MUST(cudaGetLastError());
    check(name, out.host(), host);
    const double us = time_us(launch);
    std::printf("%-10s %8.1f us, %5.0f GB/s read and written\n", name, us,
                2.0 * in.bytes() / us / 1e3);
  };
  run("cp.async",
      [&] { copy_async<<<sms * per_sm, block, shared>>>(in, out, n); });
  run("driver", [&] {
    MUST(cudaMemcpyAsync(out, in, in.bytes(), cudaMemcpyDeviceToDevice));
  });

  Small small;
  std::copy(host.begin(), host.begin() + COUNT, small.v);
  std::vector<float> twice(small.v, small.v + COUNT);
  for (float& word : twice) word *= 2;
  Array<float> data(COUNT), doubled(COUNT);
  const auto run_small = [&](const char* name, auto launch) {
    MUST(cudaMemset(doubled, 0xff, doubled.bytes()));
    launch();
    MUST(cudaGetLastError());
    check(name, doubled.host(), twice);
    std::printf("%-10s %8.1f us for %zu bytes\n", name, time_us(launch),
                doubled.bytes());
  };
  run_small("argument", [&] { from_argument<<<1, 256>>>(small, doubled); });
  run_small("constant", [&] {
    MUST(cudaMemcpyToSymbolAsync(table, small.v, sizeof small));
    from_constant<<<1, 256>>>(doubled);
  });
  run_small("copy", [&] {
    MUST(cudaMemcpyAsync(data, small.v, sizeof small, cudaMemcpyHostToDevice));
    from_pointer<<<1, 256>>>(data, doubled);
  });
}
