// Eight sides of a switch, chosen by the data: lanes of a warp on different
// sides, then sorted so that a warp has one side, then one loop for all.
#include <numeric>

#include "basics/divergence/divergence.cu"
#include "cpp/host.cuh"

int main() {
  const int n = 1'000'003, steps = 64, block = 256;
  const std::vector<float> host = uniform(n, 1), chance = uniform(n, 2);
  std::vector<int> way(n), as_it_is(n);
  for (int i = 0; i < n; ++i)
    way[i] = std::min(WAYS - 1, (int)((chance[i] + 1) * WAYS / 2));
  std::iota(as_it_is.begin(), as_it_is.end(), 0);
  std::vector<int> by_side = as_it_is;
  std::stable_sort(by_side.begin(), by_side.end(),
                   [&](int i, int j) { return way[i] < way[j]; });
  std::vector<double> wanted(n);
  for (int i = 0; i < n; ++i) {
    const double a = (double)(0.991f + 0.001f * way[i]);
    wanted[i] = host[i];
    for (int step = 0; step < steps; ++step) wanted[i] = a * wanted[i] + 0.001;
  }

  Array<float> x(host), out(n);
  Array<int> side(way), plain(as_it_is), sorted(by_side);
  const int grid = (n + block - 1) / block;
  const auto run = [&](const char* name, auto launch) {
    MUST(cudaMemset(out, 0xff, out.bytes()));
    launch();
    MUST(cudaGetLastError());
    // A constant of seven digits and 64 roundings.
    check(name, out.host(), wanted, 1e-4);
    std::printf("%-12s %6.1f us\n", name, time_us(launch));
  };
  run("mixed", [&] { ways<<<grid, block>>>(x, side, plain, out, n, steps); });
  run("sorted", [&] { ways<<<grid, block>>>(x, side, sorted, out, n, steps); });
  run("one loop", [&] { hoisted<<<grid, block>>>(x, side, out, n, steps); });
}
