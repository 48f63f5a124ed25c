// Sorts by the sweeps of onesweep.cu, twice with the same states.
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
  std::vector<Count> counts(PASSES * DIGITS), places(PASSES * DIGITS);
  std::vector<Count> states[2] = {std::vector<Count>(tiles * DIGITS),
                                  std::vector<Count>(tiles * DIGITS)};
  unsigned tickets[2] = {0, 0};
  auto launch = [](int blocks, int threads, std::function<void()> kernel) {
    grid_blocks = blocks, block_threads = threads;
    for (first_block = 0; first_block < blocks; first_block += MOST_BLOCKS)
      run_blocks(std::min(MOST_BLOCKS, blocks - first_block), kernel);
  };
  for (int twice = 0; twice < 2; ++twice) {
    launch(3, COUNT_THREADS,
           [&] { count_digits(in.data(), n, counts.data()); });
    launch(PASSES, THREADS,
           [&] { first_places(counts.data(), places.data()); });
    const Key* from = in.data();
    const Value* with = place.data();
    for (int p = 0; p < PASSES; ++p) {
      Key* const to = there[p % 2].data();
      Value* const along = moved[p % 2].data();
      launch(tiles, THREADS, [&] {
        sweep(from, to, with, along, n, 8 * p, places.data() + DIGITS * p,
              states[p % 2].data(), states[1 - p % 2].data(), tickets + p % 2,
              tickets + 1 - p % 2);
      });
      from = to, with = along;
    }
  }
  fwrite(there[1].data(), sizeof(Key), n, stdout);
  fwrite(moved[1].data(), sizeof(Value), n, stdout);
}
