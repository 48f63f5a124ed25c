// Runs flash_hopper_paged<PLAN> on a CPU, block after block:
//   paged_attention tokens heads kv_heads slots sequences rows width blocks
//   seed < q, keys, values, starts, lengths, tables, work > results,
//   log-sum-exps
// It ends with 2 and the reason if a block does what it must not, or waits for
// ever.
#include "kernel.hpp"

template <int D_, int CONSUMERS_, int BN, int STAGES, int Q_STAGES, int BLOCK_,
          bool PINGPONG>
struct Plan {
  static constexpr int D = D_, CONSUMERS = CONSUMERS_, BLOCK = BLOCK_;
};
using Chosen = Plan<PLAN>;
using Bits = std::vector<uint16_t>;
constexpr int D = Chosen::D, BLOCK = Chosen::BLOCK;

// The axes of copy_box: in the cache, a block has the place of a sequence, and
// a part of 64 elements that of a head.
static CUtensorMap map_of_cache(Bits& data, int blocks, int parts) {
  return {data.data(),
          2,
          {64, BLOCK, 1, parts, blocks},
          {64, BLOCK, 1, 1, 1},
          {1, parts * 64L, 64, 64, BLOCK * parts * 64L}};
}

int main(int, char** arguments) {
  int tokens, heads, kv_heads, slots, sequences, rows, width, blocks;
  int* const numbers[] = {&tokens,    &heads, &kv_heads, &slots,
                          &sequences, &rows,  &width,    &blocks};
  for (int* number : numbers) *number = std::atoi(*++arguments);
  machine::dice.seed(std::atoi(*++arguments));
  Bits q, keys, values;
  std::vector<int> starts, lengths, tables, work;
  machine::read(q, (long)tokens * heads * D);
  machine::read(keys, (long)slots * kv_heads * D);
  machine::read(values, (long)slots * kv_heads * D);
  machine::read(starts, sequences + 1), machine::read(lengths, sequences);
  machine::read(tables, (long)sequences * width);
  machine::read(work, 2 * rows);
  unsigned drawn[2] = {};
  Bits out(q.size(), 0x7fff);
  std::vector<float> lse(q.size() / D, NAN);
  const CUtensorMap of_q{q.data(),
                         2,
                         {64, tokens, D / 64, heads, 1},
                         {64, 64, D / 64, 1, 1},
                         {1, (long)heads * D, 64, D, 0}};
  const auto of_k = map_of_cache(keys, slots / BLOCK, kv_heads * (D / 64)),
             of_v = map_of_cache(values, slots / BLOCK, kv_heads * (D / 64));
  machine::grid_blocks = blocks;
  machine::block_threads = 128 * (Chosen::CONSUMERS + 1);
  int& first = machine::first_block;
  for (int again = 0; again < 2; ++again)  // the counters are as they were
    for (first = 0; first < blocks; ++first)
      machine::run_blocks(1, [&] {
        flash_hopper_paged<PLAN>(
            of_q, of_k, of_v, (__nv_bfloat16*)out.data(), heads * D, lse.data(),
            drawn, heads, kv_heads, 1.44269504f / std::sqrt((float)D), rows,
            work.data(), starts.data(), lengths.data(), tables.data(), width);
      });
  if (drawn[0] || drawn[1]) machine::fail("the counters are not 0 again");
  std::fwrite(out.data(), 2, out.size(), stdout);
  std::fwrite(lse.data(), 4, lse.size(), stdout);
}
