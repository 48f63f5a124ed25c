// The kernels of topk.cu. Numbers: which, rows, n, k, size, seed. Input: rows.
// Output: values and indices.
#include "kernel.hpp"
using namespace machine;

int main(int, char** numbers) {
  const int which = atoi(numbers[1]), rows = atoi(numbers[2]);
  const int n = atoi(numbers[3]), k = atoi(numbers[4]), size = atoi(numbers[5]);
  dice.seed(atoi(numbers[6]));
  std::vector<float> x, values(rows * k);
  read(x, (long)rows * n);
  std::vector<int> indices(rows * k);
  std::vector<Word> lists((long)rows * BLOCKS * size);
  std::vector<unsigned> tickets(rows);
  auto launch = [](int blocks, std::function<void()> kernel) {
    grid_blocks = blocks, block_threads = THREADS;
    for (first_block = 0; first_block < blocks; first_block += MOST_BLOCKS)
      run_blocks(std::min(MOST_BLOCKS, blocks - first_block), kernel);
  };
  for (int twice = 0; twice < 2; ++twice) {
    if (which == 0)
      launch(rows, [&] {
        topk_select(x.data(), n, n, k, size, values.data(), indices.data());
      });
    if (which == 1)
      launch(rows, [&] {
        topk_lanes(x.data(), n, n, k, values.data(), indices.data());
      });
    if (which == 2)
      launch(rows * BLOCKS, [&] {
        topk_stream(x.data(), n, n, k, size, values.data(), indices.data(),
                    lists.data(), tickets.data());
      });
  }
  fwrite(values.data(), 4, values.size(), stdout);
  fwrite(indices.data(), 4, indices.size(), stdout);
}
