// A sum by one thread, plain and compensated: how far each is from the sum in
// fp64.
#include "cpp/host.cuh"
#include "reduction/scoreboard/scoreboard.cu"

int main() {
  const long long n = 1'000'003;
  std::vector<float> host = uniform(n, 1);
  double wanted = 0, size = 0;
  for (float& x : host) wanted += x = std::abs(x), size += x;
  Array<float> in(host), out(1);
  const auto run = [&](const char* name, auto kernel, double tolerance) {
    const auto launch = [&] { kernel<<<1, 1>>>(in, out, n); };
    launch();
    MUST(cudaGetLastError());
    check(name, out.host(), std::vector<double>{wanted}, tolerance);
    std::printf("%-10s %8.1f us\n", name, time_us(launch, 3));
  };
  run("sum_serial", sum_serial, n * 0x1p-24 * size);  // an error each addition
  run("sum_kahan", sum_kahan, 4 * 0x1p-24 * size);    // a few in all
}
