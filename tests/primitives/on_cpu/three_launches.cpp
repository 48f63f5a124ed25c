// Sorts by the three launches of counting.cu for each digit.
// Numbers: n, seed. Input: keys. Output: the keys, and where they stood.
#include "kernel.hpp"
using namespace machine;

int main(int, char** numbers) {
  const long n = atol(numbers[1]);
  dice.seed(atoi(numbers[2]));
  std::vector<Key> in, there[2] = {std::vector<Key>(n), std::vector<Key>(n)};
  read(in, n);
  std::vector<Value> place(n),
      moved[2] = {std::vector<Value>(n), std::vector<Value>(n)};
  for (long i = 0; i < n; ++i) place[i] = i;
  const long tiles = (n + TILE - 1) / TILE;
  std::vector<Count> counts(DIGITS * tiles), totals(DIGITS);
  auto launch = [](int blocks, int threads, std::function<void()> kernel) {
    grid_blocks = blocks, block_threads = threads;
    for (first_block = 0; first_block < blocks; first_block += MOST_BLOCKS)
      run_blocks(std::min(MOST_BLOCKS, blocks - first_block), kernel);
  };
  const Key* from = in.data();
  const Value* with = place.data();
  for (int p = 0; p < PASSES; ++p) {
    Key* const to = there[p % 2].data();
    Value* const along = moved[p % 2].data();
    launch(tiles, THREADS,
           [&] { count_tiles(from, n, 8 * p, counts.data(), totals.data()); });
    launch(DIGITS, DIGITS,
           [&] { scan_tiles(counts.data(), totals.data(), tiles); });
    launch(tiles, THREADS, [&] {
      scatter(from, to, with, along, n, 8 * p, counts.data(), totals.data());
    });
    from = to, with = along;
  }
  fwrite(there[1].data(), sizeof(Key), n, stdout);
  fwrite(moved[1].data(), sizeof(Value), n, stdout);
}
