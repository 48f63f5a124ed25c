// Runs grouped<PLAN> on a CPU, block after block:
//   grouped stacked order blocks by_demand launches seed count < sizes,
//   data > C, counter
// sizes: m, n, k of each group. data: the end of the rows of each group, if
// stacked, then A and B of each group, or the common A and all B. All C are one
// array, with 8 elements behind each of them that nobody may write. It ends
// with 2 and the reason if a block does what it must not, or waits for ever.
#define PER_LINE 64  // elements of bf16
#include "products.hpp"
inline unsigned char* dynamic_shared() { return shared_memory[self->block]; }

static unsigned char* row_of(unsigned row, int matrix) {
  return shared_memory[self->block] + from_lane(row, 8 * matrix + lane() / 4) +
         lane() % 4 * 4;
}
static void stmatrix(unsigned row, unsigned w0, unsigned w1, unsigned w2,
                     unsigned w3) {
  const unsigned words[4] = {w0, w1, w2, w3};
  for (int i = 0; i < 4; ++i) std::memcpy(row_of(row, i), words + i, 4);
}
#include "grouped_text.hpp"

static Work work;

static void thread() {
  grouped<PLAN>(work);
  self->ended = true, --running, ++progress;
  swapcontext(&self->context, &scheduler);
}

#include "run_blocks.hpp"

template <class T>
static std::vector<T> read(long count) {
  std::vector<T> into;
  read(into, count);
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
  dice.seed(seed);
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
    maps.push_back({factors.back().data(), rows, 1, k, box, 1});
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
  work = {maps.data(),
          groups.data(),
          stacked ? ends.data() : nullptr,
          by_demand ? &taken : nullptr,
          count,
          stacked ? ends.back() : 0,
          order};
  grid_blocks = blocks, block_threads = THREADS;
  for (int i = 0; i < launches; ++i)
    for (first_block = 0; first_block < blocks; ++first_block) run_blocks(1);
  if (taken) fail("the counter is not back at 0");
  std::fwrite(c.data(), 2, c.size(), stdout);
}
