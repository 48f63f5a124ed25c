// Runs tf32_product<PLAN> on a CPU, cluster after cluster:
//   product m n k group whole share workers seed < A, B > C
// A is m x k, B n x k. It ends with 2 and the reason if blocks do what they
// must not, or wait for ever. A worker waits only for those that come after it,
// so the last runs first.
#include "fp32_stores.hpp"
inline unsigned char* dynamic_shared() { return shared_memory[self->block]; }
#include "tf32.cu"

template <int BN_, int STAGES, int CLUSTER_, int BUFFERS>
struct Plan {
  static constexpr int BN = BN_, CLUSTER = CLUSTER_;
};
using Chosen = Plan<PLAN>;

static int m, n, k, group, whole, share, workers;
static std::vector<float> a, b, c, parts;
static std::vector<unsigned> flags;

static void thread() {
  const CUtensorMap of_a{(const uint16_t*)a.data(), m, 1, 2 * k, BM, 1},
      of_b{(const uint16_t*)b.data(),    n, 1, 2 * k,
           Chosen::BN / Chosen::CLUSTER, 1},
      of_c{(const uint16_t*)c.data(), m, 1, 2 * n, 64, 1};
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
  tf32_product<PLAN>(of_a, of_b, of_c, work);
  self->ended = true, --running, ++progress;
  swapcontext(&self->context, &scheduler);
}

#include "run_blocks.hpp"

int main(int, char** arguments) {
  int* const numbers[] = {&m, &n, &k, &group, &whole, &share, &workers};
  for (int* number : numbers) *number = std::atoi(*++arguments);
  dice.seed(std::atoi(*++arguments));
  read(a, (long)m * k), read(b, (long)n * k);
  c.assign((long)m * n, NAN);
  constexpr int CLUSTER = Chosen::CLUSTER;
  parts.assign((long)workers * CLUSTER * CONSUMERS * 64 * Chosen::BN, NAN);
  flags.assign(workers * CLUSTER * CONSUMERS, 0);
  grid_blocks = workers * CLUSTER, block_threads = 128 * (CONSUMERS + 1);
  for (first_block = grid_blocks - CLUSTER; first_block >= 0;
       first_block -= CLUSTER)
    run_blocks(CLUSTER);
  for (unsigned flag : flags)
    if (flag) fail("a flag is left raised");
  std::fwrite(c.data(), 4, c.size(), stdout);
}
