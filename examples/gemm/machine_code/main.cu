// A loop of 256 FMAs for 1 to 4 warps of each scheduler: how many cycles one of
// them takes. `cuobjdump -sass machine_code` shows its registers.
#include "cpp/host.cuh"
#include "gemm/machine_code/machine_code_banks.cu"

int main() {
  // Eight factors a and two factors b, so small that all sums are exact.
  const std::vector<float> factors = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2};
  const int turns = 1000;
  Array<float> in(factors);
  for (int warps = 1; warps <= 4; ++warps) {
    const int threads = warps * 4 * 32;  // an SM has four schedulers
    Array<float> sums(64 * threads);
    Array<unsigned> cycles(threads / 32);
    const auto launch = [&] {
      chains<<<1, threads>>>(in, reinterpret_cast<float4*>((float*)sums),
                             cycles, turns);
    };
    launch();
    MUST(cudaGetLastError());
    // Four products for each sum in a turn, two with each b.
    std::vector<float> wanted(64 * threads);
    for (size_t i = 0; i < wanted.size(); ++i)
      wanted[i] = turns * factors[i % 8] * 2 * (factors[8] + factors[9]);
    check("sums", sums.host(), wanted);
    const std::vector<unsigned> took = cycles.host();
    const double each = *std::max_element(took.begin(), took.end());
    std::printf("%d warps: %.2f cycles for each FMA of a scheduler, %.1f us\n",
                warps, each / (256.0 * turns * warps), time_us(launch));
  }
}
