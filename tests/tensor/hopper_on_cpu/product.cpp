// Runs tf32_product<PLAN> on a CPU, cluster after cluster:
//   product m n k group whole share workers seed < A, B > C
// A is m x k, B n x k. It ends with 2 and the reason if blocks do what they
// must not, or wait for ever. A worker waits only for those that come after it,
// so the last runs first.
#include "kernel.hpp"

template <int BN_, int STAGES, int CLUSTER_, int BUFFERS>
struct Plan {
  static constexpr int BN = BN_, CLUSTER = CLUSTER_;
};
using Chosen = Plan<PLAN>;

int main(int, char** arguments) {
  int m, n, k, group, whole, share, workers;
  int* const numbers[] = {&m, &n, &k, &group, &whole, &share, &workers};
  for (int* number : numbers) *number = std::atoi(*++arguments);
  machine::dice.seed(std::atoi(*++arguments));
  constexpr int CLUSTER = Chosen::CLUSTER, BN = Chosen::BN;
  const int slots = workers * CLUSTER * CONSUMERS;
  std::vector<float> a, b, c((long)m * n, NAN);
  std::vector<float> parts((long)slots * 64 * BN, NAN);
  std::vector<unsigned> flags(slots, 0);
  machine::read(a, (long)m * k), machine::read(b, (long)n * k);
  const auto of_a = map_of(a, m, k, BM), of_b = map_of(b, n, k, BN / CLUSTER),
             of_c = map_of(c, m, n, 64);
  const Work work{m,
                  n,
                  group,
                  (k + DEPTH - 1) / DEPTH,
                  whole,
                  share,
                  n % 4 == 0,
                  c.data(),
                  parts.data(),
                  flags.data()};
  machine::grid_blocks = workers * CLUSTER;
  machine::block_threads = 128 * (CONSUMERS + 1);
  int& first = machine::first_block;
  for (first = (workers - 1) * CLUSTER; first >= 0; first -= CLUSTER)
    machine::run_blocks(CLUSTER,
                        [&] { tf32_product<PLAN>(of_a, of_b, of_c, work); });
  for (unsigned flag : flags)
    if (flag) machine::fail("a flag is left raised");
  std::fwrite(c.data(), 4, c.size(), stdout);
}
