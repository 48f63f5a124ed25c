// Runs fp8_product<PLAN> on a CPU, cluster after cluster:
//   fp8 m n k group clusters seed < A, B, scales of A, of B > C
// A is m x k, B n x k, both e4m3; scales of A [k / 128, m to a multiple of 4],
// of B [n / 128, k / 128], or one each; C fp32. It ends with 2 and the reason
// if blocks do what they must not, or wait for ever.
#include "kernel.hpp"

template <class Sums_, class Out, int STAGES, int CLUSTER_, int BUFFERS>
struct Plan {
  using Sums = Sums_;
  static constexpr int CLUSTER = CLUSTER_;
};
using Chosen = Plan<PLAN>;

int main(int, char** arguments) {
  int m, n, k, group, clusters;
  int* const numbers[] = {&m, &n, &k, &group, &clusters};
  for (int* number : numbers) *number = std::atoi(*++arguments);
  machine::dice.seed(std::atoi(*++arguments));
  constexpr bool BLOCKS = Chosen::Sums::BLOCKS;
  constexpr int CLUSTER = Chosen::CLUSTER, BN = Chosen::Sums::BN;
  const int steps = (k + 127) / 128, pitch = (m + 3) / 4 * 4;
  std::vector<unsigned char> a, b;
  std::vector<float> scales_a, scales_b, c((long)m * n, NAN);
  machine::read(a, (long)m * k), machine::read(b, (long)n * k);
  machine::read(scales_a, BLOCKS ? (long)steps * pitch : 1);
  machine::read(scales_b, BLOCKS ? (long)steps * ((n + 127) / 128) : 1);
  const auto of_a = map_of(a, m, k, BM), of_b = map_of(b, n, k, BN / CLUSTER);
  const CUtensorMap of_scales{scales_a.data(), 4,          {pitch, steps},
                              {128, 1},        {1, pitch}, false};
  const Work<float> work{m,       n, k, group, scales_a.data(), scales_b.data(),
                         c.data()};
  machine::grid_blocks = clusters * CLUSTER;
  machine::block_threads = 128 * (CONSUMERS + 1);
  int& first = machine::first_block;
  for (first = 0; first < clusters * CLUSTER; first += CLUSTER)
    machine::run_blocks(
        CLUSTER, [&] { fp8_product<PLAN>(of_a, of_b, of_a, of_scales, work); });
  std::fwrite(c.data(), 4, c.size(), stdout);
}
