// Runs softmax_cluster<PLAN> on a CPU, cluster after cluster:
//   softmax rows width x_stride out_stride scale queries lengths seed < x,
//   lengths, out > out
// lengths: whether there are any. It ends with 2 and the reason if blocks do
// what they must not, or wait for ever.
#include "kernel.hpp"

template <class T, class U, int VEC, int THREADS_, int PER, int BLOCKS_>
struct Plan {
  using X = T;
  using Out = U;
  static constexpr int THREADS = THREADS_, BLOCKS = BLOCKS_;
};
using Chosen = Plan<PLAN>;

int main(int, char** arguments) {
  int rows, width, x_stride, out_stride, queries, some_lengths;
  for (int* number : {&rows, &width, &x_stride, &out_stride})
    *number = std::atoi(*++arguments);
  const float scale = std::atof(*++arguments);
  for (int* number : {&queries, &some_lengths})
    *number = std::atoi(*++arguments);
  machine::dice.seed(std::atoi(*++arguments));
  std::vector<Chosen::X> x;
  std::vector<Chosen::Out> out;
  std::vector<int> lengths;
  machine::read(x, (long)rows * x_stride);
  machine::read(lengths, some_lengths ? rows : 0);
  machine::read(out, (long)rows * out_stride);
  machine::grid_blocks = rows * Chosen::BLOCKS;
  machine::block_threads = Chosen::THREADS;
  int& first = machine::first_block;
  for (first = 0; first < machine::grid_blocks; first += Chosen::BLOCKS)
    machine::run_blocks(Chosen::BLOCKS, [&] {
      softmax_cluster<PLAN>(x.data(), x_stride, out.data(), out_stride, width,
                            scale, queries,
                            some_lengths ? lengths.data() : nullptr);
    });
  std::fwrite(out.data(), sizeof(out[0]), out.size(), stdout);
}
