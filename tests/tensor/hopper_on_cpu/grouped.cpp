// Runs grouped<PLAN> on a CPU, block after block:
//   grouped stacked order blocks by_demand launches seed count < sizes,
//   data > C, counter
// sizes: m, n, k of each group. data: the end of the rows of each group, if
// stacked, then A and B of each group, or the common A and all B. All C are one
// array, with 8 elements behind each of them that nobody may write. It ends
// with 2 and the reason if a block does what it must not, or waits for ever.
#include "kernel.hpp"

template <class T>
static std::vector<T> read(long count) {
  std::vector<T> into;
  machine::read(into, count);
  return into;
}

template <int BN, int STAGES>
constexpr int columns_of_tile() {
  return BN;
}

int main(int, char** arguments) {
  int stacked, order, blocks, by_demand, launches, seed, count;
  int* const numbers[] = {&stacked,  &order, &blocks, &by_demand,
                          &launches, &seed,  &count};
  for (int* number : numbers) *number = std::atoi(*++arguments);
  machine::dice.seed(seed);
  if (count == 0) {
    std::printf("%zu", sizeof(Shared<PLAN>));
    return 0;
  }
  constexpr int BN = columns_of_tile<PLAN>();
  const auto sizes = read<int>(3 * count);
  std::vector<int> ends;
  std::vector<std::vector<uint16_t>> factors;
  std::vector<CUtensorMap> maps;
  std::vector<Group> groups;
  long out = 0;
  const auto map_of = [&](int rows, int k, int box) {
    factors.push_back(read<uint16_t>((long)rows * k));
    maps.push_back(::map_of(factors.back(), rows, k, box));
  };
  const int n = sizes[1], k = sizes[2];
  if (stacked) {
    ends = read<int>(count);
    map_of(ends.back(), k, 64), map_of(count * n, k, BN);
    out = (long)ends.back() * n;
  }
  for (int g = 0; g < count; ++g) {
    const int m = sizes[3 * g], n = sizes[3 * g + 1], k = sizes[3 * g + 2];
    groups.push_back({(__nv_bfloat16*)(stacked ? 0 : out), m, n, k,
                      stacked ? 0 : 2 * g, stacked ? g * n : 0});
    if (!stacked) map_of(m, k, 64), map_of(n, k, BN), out += (long)m * n + 8;
  }
  std::vector<uint16_t> c(out + 8, 0x7fc1);
  for (Group& group : groups)
    group.C = (__nv_bfloat16*)c.data() + (long)group.C;
  unsigned taken = 0;
  const Work work = {maps.data(),
                     groups.data(),
                     stacked ? ends.data() : nullptr,
                     by_demand ? &taken : nullptr,
                     count,
                     stacked ? ends.back() : 0,
                     order};
  machine::grid_blocks = blocks, machine::block_threads = THREADS;
  int& first = machine::first_block;
  for (int i = 0; i < launches; ++i)
    for (first = 0; first < blocks; ++first)
      machine::run_blocks(1, [&] { grouped<PLAN>(work); });
  if (taken) machine::fail("the counter is not back at 0");
  std::fwrite(c.data(), 2, c.size(), stdout);
}
