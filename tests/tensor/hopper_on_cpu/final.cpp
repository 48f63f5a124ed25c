// Runs gemm<PLAN> of final.cu on a CPU, cluster after cluster:
//   final m n k group whole share workers boxes alpha beta seed
//     < A, B, C > C
// A is m x k or k x m, B k x n or n x k, all bf16 or, by the plan, fp16. It
// ends with 2 and the reason if blocks do what they must not, or wait for ever.
// A worker waits only for those that come after it, so the last runs first.
#define PER_LINE 64
#include "products.hpp"
inline unsigned char* dynamic_shared() { return shared_memory[self->block]; }

// Stores of boxes: they read shared memory at a random later time.
struct Store {
  const CUtensorMap* map;
  int row, column, block;
  unsigned at;
  Thread* asked_by;
  long group;
};
static std::vector<Store> stores;
static std::map<Thread*, long> groups;

static void store_box(const CUtensorMap& map, int row, int column,
                      const void* from) {
  stores.push_back({&map, row, column, self->block, shared_address(from), self,
                    groups[self]});
}
static void close_stores() { ++groups[self]; }
template <int GROUPS>
static void wait_for_reads() {
  const auto left = [] {
    for (const Store& store : stores)
      if (store.asked_by == self && store.group < groups[self] - GROUPS)
        return true;
    return false;
  };
  while (left()) yield("stores");
}
static void fence_for_tma() {}

// CUDA's words for the stores of results.
static unsigned __shfl_up_sync(unsigned, unsigned value, int lanes) {
  return from_lane(value, max(lane() - lanes, 0));
}
static unsigned __funnelshift_r(unsigned low, unsigned high, int bits) {
  return ((uint64_t)high << 32 | low) >> bits;
}
static unsigned char* row_of(unsigned row, int matrix) {
  return shared_memory[self->block] + from_lane(row, 8 * matrix + lane() / 4) +
         lane() % 4 * 4;
}
static void stmatrix(unsigned row, unsigned w0, unsigned w1, unsigned w2,
                     unsigned w3) {
  const unsigned words[4] = {w0, w1, w2, w3};
  for (int i = 0; i < 4; ++i) std::memcpy(row_of(row, i), words + i, 4);
}
struct __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
static float __bfloat162float(__nv_bfloat16 x) { return widened(x.bits); }
static __nv_bfloat16 __float2bfloat16_rn(float x) {
  return {(uint16_t)rounded(x)};
}
static __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}

static float reciprocal(float x) { return 1.0f / x; }
static float __uint_as_float(unsigned x) { return bits_as<float>(x); }

#include "final_text.hpp"

template <int BN_, int STAGES, int CLUSTER_, int BUFFERS, bool TA_, bool TB_,
          class Out_, bool PLAIN_ = false, class End_ = Linear>
struct Plan {
  using End = End_;
  using Out = Out_;
  static constexpr int BN = BN_, CLUSTER = CLUSTER_;
  static constexpr bool TA = TA_, TB = TB_;
};
using Chosen = Plan<PLAN>;
using Bits = std::vector<uint16_t>;

static int m, n, k;
static Work<Chosen::Out> work;
static CUtensorMap of_a, of_b, of_c;
static Bits a, b, c, bias;

static void land_store() {
  if (stores.empty() || dice() % 12) return;
  const int number = dice() % stores.size();
  const Store store = stores[number];
  stores.erase(stores.begin() + number), ++progress;
  if (ended[store.block]) fail("a store from a block that has ended");
  for (int i = 0; i < 64 * 64; ++i) {
    const int row = store.row + i / 64, column = store.column + i % 64;
    const unsigned at = swizzled(store.at + i * 2);
    if (row < m && column < n)
      std::memcpy(&c[(long)row * n + column], shared_memory[store.block] + at,
                  2);
  }
}

static void thread() {
  gemm<PLAN>(of_a, of_b, of_c, work);
  self->ended = true, --running, ++progress;
  swapcontext(&self->context, &scheduler);
}

#include "run_blocks.hpp"

int main(int, char** arguments) {
  int workers;
  int* const numbers[] = {&m,          &n,          &k,       &work.group,
                          &work.whole, &work.share, &workers, &work.boxes};
  for (int* number : numbers) *number = std::atoi(*++arguments);
  work.alpha = std::atof(*++arguments), work.beta = std::atof(*++arguments);
  dice.seed(std::atoi(*++arguments));
  read(a, (long)m * k), read(b, (long)k * n), read(c, (long)m * n);
  if (Chosen::End::FUSED)
    read(bias, n), work.extra.bias = (__nv_bfloat16*)bias.data();
  constexpr int CLUSTER = Chosen::CLUSTER, BN = Chosen::BN;
  const int slots = workers * CLUSTER * CONSUMERS;
  std::vector<float> parts((long)slots * 64 * BN, NAN);
  std::vector<unsigned> flags(slots, 0);
  work.m = m, work.n = work.ldc = n, work.k = k;
  work.steps = (k + BK - 1) / BK, work.C = (Chosen::Out*)c.data();
  work.extra.residual = work.C, work.extra.scale = 1.0f;
  work.parts = parts.data(), work.flags = flags.data();
  work.A = (__nv_bfloat16*)a.data(), work.B = (__nv_bfloat16*)b.data();
  const int a_rows = Chosen::TA ? k : m, a_columns = Chosen::TA ? m : k;
  const int b_rows = Chosen::TB ? n : k, b_columns = Chosen::TB ? k : n;
  of_a = {a.data(), a_rows, 1, a_columns, Chosen::TA ? 64 : BM, 1};
  of_b = {b.data(), b_rows, 1, b_columns, Chosen::TB ? BN / CLUSTER : 64, 1};
  grid_blocks = workers * CLUSTER, block_threads = 128 * (CONSUMERS + 1);
  each_turn = land_store;
  for (first_block = grid_blocks - CLUSTER; first_block >= 0;
       first_block -= CLUSTER) {
    run_blocks(CLUSTER);
    // What they have asked for may be read after they have ended: not here.
    if (!stores.empty()) fail("a block ends before its stores have read");
  }
  for (unsigned flag : flags)
    if (flag) fail("a flag is left raised");
  std::fwrite(c.data(), 2, c.size(), stdout);
}
