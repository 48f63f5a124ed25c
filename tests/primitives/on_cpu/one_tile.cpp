// Sorts by the one block of one_tile.cu.
// Numbers: n, seed. Input: keys. Output: the keys, and where they stood.
#include "kernel.hpp"
using namespace machine;

int main(int, char** numbers) {
  const long n = atol(numbers[1]);
  dice.seed(atoi(numbers[2]));
  std::vector<Key> in, out(n);
  read(in, n);
  std::vector<Value> place(n), moved(n);
  for (long i = 0; i < n; ++i) place[i] = i;
  grid_blocks = 1, block_threads = THREADS, first_block = 0;
  run_blocks(1, [&] {
    sort_tile(in.data(), out.data(), place.data(), moved.data(), n);
  });
  fwrite(out.data(), sizeof(Key), n, stdout);
  fwrite(moved.data(), sizeof(Value), n, stdout);
}
