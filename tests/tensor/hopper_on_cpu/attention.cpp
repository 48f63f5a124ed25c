// Runs flash_hopper<PLAN> on a CPU, block after block (or pair after pair):
//   attention sequences q_len k_len heads kv_heads blocks together seed < q,
//   keys, values > results, log-sum-exps
// It ends with 2 and the reason if blocks do what they must not, or wait for
// ever.
#include "machine.hpp"
inline unsigned char* dynamic_shared();
#include "flash_hopper.cu"

inline unsigned char* dynamic_shared() {
  return shared_memory[self->block] + 16;
}

template <int D_, int CONSUMERS_, int BN_, int STAGES, int Q_STAGES,
          bool CAUSAL, bool PINGPONG, bool OVERLAP, int CLUSTER_ = 1,
          bool TIMED = false, bool MAXIMA = false>
struct Plan {
  static constexpr int D = D_, CONSUMERS = CONSUMERS_, BN = BN_,
                       CLUSTER = CLUSTER_;
};
using Chosen = Plan<PLAN>;
constexpr int D = Chosen::D, CLUSTER = Chosen::CLUSTER,
              BM = 64 * Chosen::CONSUMERS * CLUSTER;

static int sequences, q_len, k_len, heads, kv_heads, blocks, together, tiles,
    items, drawn;
static std::vector<uint16_t> q, keys, values;
static std::vector<__nv_bfloat16> out;
static std::vector<float> lse;

static void thread() {
  const CUtensorMap of_q{q.data(), q_len, heads, D, 64, D / 64},
      of_k{keys.data(), k_len, kv_heads, D, Chosen::BN, D / 64 / CLUSTER},
      of_v{values.data(), k_len, kv_heads, D, Chosen::BN, D / 64 / CLUSTER};
  flash_hopper<PLAN>(of_q, of_k, of_v, out.data(), heads * D, lse.data(),
                     &drawn, heads, kv_heads, q_len, k_len, tiles, items,
                     together, 1.44269504f / std::sqrt((float)D), nullptr);
  self->ended = true, --running, ++progress;
  swapcontext(&self->context, &scheduler);
}

#include "run_blocks.hpp"

int main(int, char** arguments) {
  int* const numbers[] = {&sequences, &q_len,  &k_len,   &heads,
                          &kv_heads,  &blocks, &together};
  for (int* number : numbers) *number = std::atoi(*++arguments);
  dice.seed(std::atoi(*++arguments));
  read(q, (long)sequences * q_len * heads * D);
  read(keys, (long)sequences * k_len * kv_heads * D);
  read(values, (long)sequences * k_len * kv_heads * D);
  out.assign(q.size(), {0x7fff}), lse.assign(q.size() / D, NAN);
  tiles = (q_len + BM - 1) / BM, items = tiles * heads * sequences;
  grid_blocks = std::min(blocks, items) * CLUSTER,
  block_threads = 128 * (Chosen::CONSUMERS + 1);
  for (first_block = 0; first_block < grid_blocks; first_block += CLUSTER)
    run_blocks(CLUSTER);
  if (drawn) fail("the counter is not 0 again");
  std::fwrite(out.data(), 2, out.size(), stdout);
  std::fwrite(lse.data(), 4, lse.size(), stdout);
}
