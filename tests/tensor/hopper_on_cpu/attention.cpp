// Runs flash_hopper<PLAN> on a CPU, block after block (or pair after pair):
//   attention sequences q_len k_len heads kv_heads blocks together seed < q,
//   keys, values > results, log-sum-exps
// It ends with 2 and the reason if blocks do what they must not, or wait for
// ever.
#include "kernel.hpp"

template <int D_, int CONSUMERS_, int BN_, int STAGES, int Q_STAGES,
          bool CAUSAL, bool PINGPONG, bool OVERLAP, int CLUSTER_ = 1,
          bool TIMED = false, bool MAXIMA = false>
struct Plan {
  static constexpr int D = D_, CONSUMERS = CONSUMERS_, BN = BN_,
                       CLUSTER = CLUSTER_;
};
using Chosen = Plan<PLAN>;
using Bits = std::vector<uint16_t>;
constexpr int D = Chosen::D, CLUSTER = Chosen::CLUSTER,
              BM = 64 * Chosen::CONSUMERS * CLUSTER;

// The axes of copy_box, for sequences of `tokens` tokens.
static CUtensorMap map_of_heads(Bits& data, int tokens, int heads,
                                int sequences, int box, int parts) {
  return {data.data(),
          2,
          {64, tokens, D / 64, heads, sequences},
          {64, box, parts, 1, 1},
          {1, (long)heads * D, 64, D, (long)tokens * heads * D}};
}

int main(int, char** arguments) {
  int sequences, q_len, k_len, heads, kv_heads, blocks, together, drawn = 0;
  int* const numbers[] = {&sequences, &q_len,  &k_len,   &heads,
                          &kv_heads,  &blocks, &together};
  for (int* number : numbers) *number = std::atoi(*++arguments);
  machine::dice.seed(std::atoi(*++arguments));
  Bits q, keys, values;
  machine::read(q, (long)sequences * q_len * heads * D);
  machine::read(keys, (long)sequences * k_len * kv_heads * D);
  machine::read(values, (long)sequences * k_len * kv_heads * D);
  Bits out(q.size(), 0x7fff);
  std::vector<float> lse(q.size() / D, NAN);
  constexpr int PARTS = D / 64 / CLUSTER;
  const auto of_q = map_of_heads(q, q_len, heads, sequences, 64, D / 64),
             of_k = map_of_heads(keys, k_len, kv_heads, sequences, Chosen::BN,
                                 PARTS),
             of_v = map_of_heads(values, k_len, kv_heads, sequences, Chosen::BN,
                                 PARTS);
  const int tiles = (q_len + BM - 1) / BM, items = tiles * heads * sequences;
  machine::grid_blocks = std::min(blocks, items) * CLUSTER;
  machine::block_threads = 128 * (Chosen::CONSUMERS + 1);
  int& first = machine::first_block;
  for (first = 0; first < machine::grid_blocks; first += CLUSTER)
    machine::run_blocks(CLUSTER, [&] {
      flash_hopper<PLAN>(of_q, of_k, of_v, (__nv_bfloat16*)out.data(),
                         heads * D, lse.data(), &drawn, heads, kv_heads, q_len,
                         k_len, tiles, items, together,
                         1.44269504f / std::sqrt((float)D), nullptr);
    });
  if (drawn) machine::fail("the counter is not 0 again");
  std::fwrite(out.data(), 2, out.size(), stdout);
  std::fwrite(lse.data(), 4, lse.size(), stdout);
}
