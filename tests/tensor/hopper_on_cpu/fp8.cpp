// Runs fp8_product<PLAN> on a CPU, cluster after cluster:
//   fp8 m n k group clusters seed < A, B, scales of A, of B > C
// A is m x k, B n x k, both e4m3; scales of A [k / 128, m to a multiple of 4],
// of B [n / 128, k / 128], or one each; C fp32. It ends with 2 and the reason
// if blocks do what they must not, or wait for ever.
#define PER_LINE 128
#include "fp32_stores.hpp"
inline unsigned char* dynamic_shared() { return shared_memory[self->block]; }
template <int BUFFERS, int SIZE>
void store_boxes(const float (&)[SIZE], const CUtensorMap&, int, int, void*,
                 int) {
  fail("C is fp32 here");
}
#include "fp8.cu"

template <class Sums_, class Out, int STAGES, int CLUSTER_, int BUFFERS>
struct Plan {
  using Sums = Sums_;
  static constexpr int CLUSTER = CLUSTER_;
};
using Chosen = Plan<PLAN>;

static int m, n, k, group, clusters;
static std::vector<unsigned char> a, b;
static std::vector<float> scales_a, scales_b, c;

static void thread() {
  // Lines of bytes, told as 16-bit elements: a line has an even number of them.
  const CUtensorMap of_a{(const uint16_t*)a.data(), m, 1, k / 2, BM, 1},
      of_b{(const uint16_t*)b.data(),          n, 1, k / 2,
           Chosen::Sums::BN / Chosen::CLUSTER, 1},
      scales{(const uint16_t*)scales_a.data(),
             (k + 127) / 128,
             1,
             (m + 3) / 4 * 4,
             1,
             1,
             true};
  const Work<float> work{m,       n, k, group, scales_a.data(), scales_b.data(),
                         c.data()};
  fp8_product<PLAN>(of_a, of_b, of_a, scales, work);
  self->ended = true, --running, ++progress;
  swapcontext(&self->context, &scheduler);
}

#include "run_blocks.hpp"

int main(int, char** arguments) {
  int* const numbers[] = {&m, &n, &k, &group, &clusters};
  for (int* number : numbers) *number = std::atoi(*++arguments);
  dice.seed(std::atoi(*++arguments));
  constexpr bool BLOCKS = Chosen::Sums::BLOCKS;
  const long steps = (k + 127) / 128;
  read(a, (long)m * k), read(b, (long)n * k);
  read(scales_a, BLOCKS ? steps * ((m + 3) / 4 * 4) : 1);
  read(scales_b, BLOCKS ? steps * ((n + 127) / 128) : 1);
  c.assign((long)m * n, NAN);
  constexpr int CLUSTER = Chosen::CLUSTER;
  grid_blocks = clusters * CLUSTER, block_threads = 128 * (CONSUMERS + 1);
  for (first_block = 0; first_block < grid_blocks; first_block += CLUSTER)
    run_blocks(CLUSTER);
  std::fwrite(c.data(), 4, c.size(), stdout);
}
