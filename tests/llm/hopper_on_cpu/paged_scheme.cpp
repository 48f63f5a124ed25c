// Runs the kernels of paged_scheme.cu on a CPU, block after block:
//   paged_scheme sequences heads kv_heads slots tokens width room parts scale
//   seed < q, keys, values, slots of the tokens, tables, lengths > out, lse
// PLAN: the arguments of the template `paged`. The cache begins as NaN and is
// filled by `store`. With parts, `join` follows. It ends with 2 and the reason
// if a block does what it must not, or waits for ever.
#include <cmath>

static int grid_y, grid_z, grid_parts, grid_kv_heads;
#include "kernel.hpp"

template <int D_, int BLOCK_, bool CHUNKS_, int GROUP_, bool COLUMNS_,
          int PART_>
struct Plan {
  static constexpr int D = D_, BLOCK = BLOCK_, PART = PART_;
  static constexpr bool CHUNKS = CHUNKS_, COLUMNS = COLUMNS_;
};
using Chosen = Plan<PLAN>;
using Bits = std::vector<bf16>;
constexpr int D = Chosen::D;

static void launch(int x, int y, int z, int count, std::function<void()> what) {
  machine::grid_blocks = x, machine::block_threads = count;
  for (grid_z = 0; grid_z < z; ++grid_z)
    for (grid_y = 0; grid_y < y; ++grid_y)
      for (int& i = machine::first_block = 0; i < x; ++i)
        machine::run_blocks(1, what);
}

int main(int, char** arguments) {
  int sequences, heads, tokens, slots, width, room;
  for (int* number : {&sequences, &heads, &grid_kv_heads, &slots, &tokens,
                      &width, &room, &grid_parts})
    *number = std::atoi(*++arguments);
  const float scale = std::atof(*++arguments);
  machine::dice.seed(std::atoi(*++arguments));
  Bits q, keys, values;
  std::vector<int> of_tokens, tables, lengths;
  machine::read(q, (long)sequences * heads * D);
  machine::read(keys, (long)tokens * grid_kv_heads * D);
  machine::read(values, (long)tokens * grid_kv_heads * D);
  machine::read(of_tokens, tokens);
  machine::read(tables, (long)sequences * width);
  machine::read(lengths, sequences);
  Bits cache[2];
  for (Bits& one : cache)
    one.resize((long)slots * grid_kv_heads * D, bf16(NAN));
  launch(tokens, grid_kv_heads, 1, D, [&] {
    store<D, Chosen::BLOCK, Chosen::CHUNKS, Chosen::COLUMNS>(
        keys.data(), values.data(), of_tokens.data(), cache[0].data(),
        cache[1].data());
  });
  const long rows = (long)sequences * heads;
  Bits out(rows * D, bf16(NAN));
  std::vector<float> lse(rows, NAN), results(rows * grid_parts * D, NAN),
      of_parts(rows * grid_parts, NAN);
  launch(heads, sequences, grid_parts, THREADS, [&] {
    const auto run = [&](auto* to, float* sums) {
      paged<PLAN>(q.data(), cache[0].data(), cache[1].data(), tables.data(),
                  width, lengths.data(), grid_kv_heads, room, scale, to, sums);
    };
    if constexpr (Chosen::PART > 0)
      run(results.data(), of_parts.data());
    else
      run(out.data(), lse.data());
  });
  if constexpr (Chosen::PART > 0)
    launch(heads, sequences, 1, D, [&] {
      join<D, Chosen::PART>(results.data(), of_parts.data(), lengths.data(),
                            grid_parts, out.data(), lse.data());
    });
  std::fwrite(out.data(), 2, out.size(), stdout);
  std::fwrite(lse.data(), 4, lse.size(), stdout);
}
