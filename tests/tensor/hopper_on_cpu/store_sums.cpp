// Runs store_sums of products.cuh on a CPU, as the four warps of a consumer:
//   store_sums m n top left seed
// Of every place of C the sum has bits of its own. It ends with 2 and the
// reason if C is not what it must be, or if a warp's store fills a part of a
// sector of 32 bytes.
#include <set>

#include "run_blocks.hpp"

struct uint2 {
  unsigned x, y;
  uint2(unsigned x, unsigned y) : x(x), y(y) {}
  uint2& operator=(const uint2& from);  // a store
};
static uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static int stores[128];  // how many a thread has asked for

#include "kernel.hpp"

constexpr int BN = 64;
constexpr uint16_t UNTOUCHED = 0x7fff;  // a NaN
static int m, n, top, left;
static std::vector<uint16_t> c;
// By warp and by place among a thread's stores: bytes of C.
static std::map<std::pair<int, int>, std::set<long>> stored;

uint2& uint2::operator=(const uint2& from) {
  const long at = (char*)this - (char*)c.data();
  if (at % 8 || at < 0 || at + 8 > 2 * (long)c.size())
    machine::fail("a store beside C");
  const std::pair<int, int> key{machine::self->index / 32,
                                stores[machine::self->index]++};
  for (int i = 0; i < 8; ++i) stored[key].insert(at + i);
  x = from.x, y = from.y;
  return *this;
}

static uint16_t bits_of(int row, int column) {  // a finite number
  return (row * 163 + column * 7 + 1) & 0x7eff;
}

static void store() {
  float sum[BN / 2];
  const int t = threadIdx.x;
  for (int i = 0; i < BN / 2; ++i)
    sum[i] = widened(bits_of(top + t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8,
                             left + i / 4 * 8 + t % 4 * 2 + i % 2));
  store_sums(sum, (__nv_bfloat16*)c.data(), top, left, m, n);
}

int main(int, char** arguments) {
  for (int* number : {&m, &n, &top, &left}) *number = std::atoi(*++arguments);
  machine::dice.seed(std::atoi(*++arguments));
  c.assign((long)m * n, UNTOUCHED);
  machine::grid_blocks = 1, machine::block_threads = 128;
  machine::run_blocks(1, store);
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      const bool ours =
          row >= top && row < top + 64 && column >= left && column < left + BN;
      const uint16_t wanted = ours ? bits_of(row, column) : UNTOUCHED;
      if (c[(long)row * n + column] != wanted) machine::fail("results");
    }
  if (n % 16) return 0;  // rows begin in the middle of a sector
  for (const auto& [key, bytes] : stored)
    for (long byte : bytes)
      for (int i = 0; i < 32; ++i)
        if (!bytes.count(byte / 32 * 32 + i)) machine::fail("half a sector");
}
