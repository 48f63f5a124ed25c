// The kernels of nms.cu on boxes that are in order. Numbers: which way (0
// boxes, 1 tiles, 2 ahead, 3 together), n, those that take part, the seed; the
// limit in thousandths. Input: boxes, classes. Output: how many stay, and their
// indices.
#include "cuda.hpp"

using Word = unsigned long long;

inline int __popcll(Word x) { return __builtin_popcountll(x); }
inline float __fmul_rn(float x, float y) { return x * y; }
inline unsigned __funnelshift_l(unsigned low, unsigned high, int bits) {
  return ((uint64_t)high << 32 | low) << bits >> 32;
}
inline Word atomicOr(Word* at, Word bits) {
  return std::exchange(*at, *at | bits);
}
inline unsigned __reduce_or_sync(unsigned, unsigned bits) {
  unsigned all = 0;
  for (int i = 0; i < 32; ++i) all |= machine::from_lane(bits, i);
  return all;
}

#include "kernel.hpp"
using namespace machine;

int main(int, char** numbers) {
  const int which = atoi(numbers[1]), n = atoi(numbers[2]);
  const int part = atoi(numbers[3]);
  dice.seed(atoi(numbers[4]));
  const float limit = atoi(numbers[5]) / 1000.0f;
  std::vector<float4> boxes;
  std::vector<int> classes, kept(n, -1);
  read(boxes, n), read(classes, n);
  const int tiles = (n + TILE - 1) / TILE;
  std::vector<Word> mask((long)tiles * TILE * tiles, 0x5555555555555555),
      state(1 + 2 * tiles);
  std::vector<unsigned> order(n);
  for (int i = 0; i < n; ++i) order[i] = i;
  int kept_count = -1;
  auto launch = [](int blocks, int threads, std::function<void()> kernel) {
    grid_blocks = blocks, block_threads = threads;
    for (first_block = 0; first_block < blocks; first_block += MOST_BLOCKS)
      run_blocks(std::min(MOST_BLOCKS, blocks - first_block), kernel);
  };
  const int wide = (tiles + COLUMNS - 1) / COLUMNS;
  for (int row = 0; row < tiles; ++row)
    for (int column = 0; column < wide; ++column)
      launch(1, TILE, [&] {
        blocks_x = column, blocks_y = row;
        pair_mask(boxes.data(), classes.data(), &part, tiles, limit,
                  mask.data());
      });
  if (which < 3) {
    launch(1, THREADS, [&] {
      (which == 0   ? keep_boxes
       : which == 1 ? keep_tiles
                    : keep_ahead)(mask.data(), &part, tiles, order.data(),
                                  kept.data(), &kept_count);
    });
  } else {
    launch(tiles, EACH,
           [&] { keep_together(mask.data(), &part, tiles, state.data()); });
    launch(tiles, TILE, [&] {
      list_kept(state.data(), &part, tiles, order.data(), kept.data(),
                &kept_count);
    });
  }
  fwrite(&kept_count, 4, 1, stdout);
  fwrite(kept.data(), 4, n, stdout);
}
