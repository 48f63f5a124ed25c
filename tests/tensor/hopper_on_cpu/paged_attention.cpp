// Runs flash_hopper_paged<PLAN> on a CPU, block after block:
//   paged_attention tokens heads kv_heads slots sequences rows width blocks
//   seed < q, keys, values, starts, lengths, tables, work > results,
//   log-sum-exps
// It ends with 2 and the reason if a block does what it must not, or waits for
// ever.
#include "machine.hpp"
inline unsigned char* dynamic_shared();
inline void begin_next() {}
inline void wait_for_previous() {}
inline void __threadfence() {}
inline unsigned atomicAdd(unsigned* at, int value) {
  return std::exchange(*at, *at + value);
}
#include "flash_hopper_paged.cu"

inline unsigned char* dynamic_shared() {
  return shared_memory[self->block] + 16;
}

template <int D_, int CONSUMERS_, int BN, int STAGES, int Q_STAGES, int BLOCK_,
          bool PINGPONG>
struct Plan {
  static constexpr int D = D_, CONSUMERS = CONSUMERS_, BLOCK = BLOCK_;
};
using Chosen = Plan<PLAN>;
constexpr int D = Chosen::D, BLOCK = Chosen::BLOCK;

static int tokens, heads, kv_heads, slots, sequences, rows, width, blocks;
static unsigned drawn[2];
static std::vector<uint16_t> q, keys, values;
static std::vector<int> starts, lengths, tables, work;
static std::vector<__nv_bfloat16> out;
static std::vector<float> lse;

static void thread() {
  const CUtensorMap of_q{q.data(), tokens, heads, D, 64, D / 64},
      of_k{keys.data(), BLOCK, kv_heads * (D / 64), 64, BLOCK, 1, false,
           slots / BLOCK},
      of_v{values.data(), BLOCK, kv_heads * (D / 64), 64, BLOCK, 1, false,
           slots / BLOCK};
  flash_hopper_paged<PLAN>(of_q, of_k, of_v, out.data(), heads * D, lse.data(),
                           drawn, heads, kv_heads,
                           1.44269504f / std::sqrt((float)D), rows, work.data(),
                           starts.data(), lengths.data(), tables.data(), width);
  self->ended = true, --running, ++progress;
  swapcontext(&self->context, &scheduler);
}

#include "run_blocks.hpp"

int main(int, char** arguments) {
  int* const numbers[] = {&tokens,    &heads, &kv_heads, &slots,
                          &sequences, &rows,  &width,    &blocks};
  for (int* number : numbers) *number = std::atoi(*++arguments);
  dice.seed(std::atoi(*++arguments));
  read(q, (long)tokens * heads * D);
  read(keys, (long)slots * kv_heads * D);
  read(values, (long)slots * kv_heads * D);
  read(starts, sequences + 1), read(lengths, sequences);
  read(tables, (long)sequences * width), read(work, 2 * rows);
  out.assign(q.size(), {0x7fff}), lse.assign(q.size() / D, NAN);
  grid_blocks = blocks, block_threads = 128 * (Chosen::CONSUMERS + 1);
  for (int again = 0; again < 2; ++again)  // the counters are as they were
    for (first_block = 0; first_block < grid_blocks; ++first_block)
      run_blocks(1);
  if (drawn[0] || drawn[1]) fail("the counters are not 0 again");
  std::fwrite(out.data(), 2, out.size(), stdout);
  std::fwrite(lse.data(), 4, lse.size(), stdout);
}
