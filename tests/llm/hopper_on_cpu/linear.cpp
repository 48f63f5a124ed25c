// Runs linear_hopper<PLAN, END> on a CPU, block after block:
//   linear n outputs inputs group early grid seed < arrays > results
// It ends with 2 and the reason if a block does what it must not, or waits for
// ever. What END needs and gives: see `read` below.
#include "instructions.hpp"

struct int2 {
  int x, y;
};
inline int2 make_int2(int x, int y) { return {x, y}; }
struct float2 {
  float x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline void fence_init() {}
template <int COUNT>
void give_registers_back() {}
static bool may_read[2048];  // threads: whether they have waited
inline void begin_next() {}
inline void wait_for_previous() { may_read[self->index] = true; }
inline void sync_consumer(int consumer) {
  meet(turns[0][consumer + 1], 128, "its consumer");
}
inline void fence_sums() { begin_products(); }
inline void close_products() { end_group(); }
template <int GROUPS>
void wait_for_products() {
  Meeting& warpgroup = turns[0][8 + self->index / 128];
  meet(warpgroup, 128, "its warpgroup");
  wait_for_groups<GROUPS>();
  meet(warpgroup, 128, "its warpgroup");
}
template <bool, bool, int COUNT>
void wgmma(float (&d)[COUNT], unsigned long long a, unsigned long long b,
           bool add) {
  start({d, COUNT, nullptr, {}, a, b, add, 0});
}
static const uint16_t* of_previous;  // what the kernel before has written
inline void copy_box(void* to, const CUtensorMap& map, int row, int column,
                     Barrier* barrier) {
  if (shared_address(to) % 1024) fail("a box that is not aligned");
  if (map.data == of_previous && !may_read[self->index])
    fail("read before the kernel before has ended");
  copies.push_back(
      {0, shared_address(to), map, row, column / 64, 0, 0, barrier});
}
template <int N>
void store(float* to, const float (&x)[N]) {
  if (!may_read[self->index]) fail("written too early");
  std::memcpy(to, x, sizeof x);
}
template <int N>
void store(__nv_bfloat16* to, const float (&x)[N]) {
  if (!may_read[self->index]) fail("written too early");
  for (int i = 0; i < N; ++i) to[i].bits = rounded(x[i]);
}
inline unsigned char* dynamic_shared() { return shared_memory[0]; }
#include "linear_text.hpp"

template <int CONSUMERS_, int WIDTH_, int STAGES_, bool TURNED_>
struct Plan {
  static constexpr int CONSUMERS = CONSUMERS_, WIDTH = WIDTH_;
  static constexpr bool TURNED = TURNED_;
};
using Chosen = Plan<PLAN>;
using End = END;

static int n, outputs, inputs, group, early, grid;
static std::vector<uint16_t> x, w;
static End end_of_product;

static void thread() {
  const int a = Chosen::CONSUMERS * 64, b = Chosen::WIDTH;
  const CUtensorMap of_x{x.data(), n, 1, inputs, Chosen::TURNED ? b : a, 1},
      of_w{w.data(), outputs, 1, inputs, Chosen::TURNED ? a : b, 1};
  linear_hopper<PLAN, End>(of_x, of_w, end_of_product, n, outputs, inputs,
                           group, early);
  if (!may_read[self->index]) fail("a thread that has not waited");
  self->ended = true, --running, ++progress;
  swapcontext(&self->context, &scheduler);
}

#include "run_blocks.hpp"

template <class T>
static void write(const std::vector<T>& from) {
  std::fwrite(from.data(), sizeof(T), from.size(), stdout);
}

static std::vector<float> y, weight, squares, parts;
static std::vector<uint16_t> h, out;

static RowScale scale(int columns) {  // squares: n x columns, each a part
  return {read(parts, (long)n * columns), columns, 1.0f / inputs, 1e-5f};
}
static void prepare(Store& end) {
  y.assign((long)n * outputs, NAN), end = {y.data()};
}
static void results(Store&) { write(y); }
static void prepare(Add& end) {
  read(y, (long)n * outputs), read(weight, outputs);
  h.assign((long)n * outputs, 0x7fc0);
  squares.assign((long)n * ((outputs + Chosen::WIDTH - 1) / Chosen::WIDTH),
                 NAN);
  end = {y.data(), weight.data(), (__nv_bfloat16*)h.data(), squares.data()};
}
static void results(Add&) { write(y), write(h), write(squares); }
static void prepare(Gates& end) {
  out.assign((long)n * outputs / 2, 0x7fc0);
  end = {(__nv_bfloat16*)out.data(), scale(3)};
}
static void results(Gates&) { write(out); }

int main(int, char** arguments) {
  int* const numbers[] = {&n, &outputs, &inputs, &group, &early, &grid};
  for (int* number : numbers) *number = std::atoi(*++arguments);
  dice.seed(std::atoi(*++arguments));
  of_previous = read(x, (long)n * inputs), read(w, (long)outputs * inputs);
  prepare(end_of_product);
  grid_blocks = grid;
  block_threads = 128 * Chosen::CONSUMERS + PRODUCERS<Chosen::WIDTH>;
  for (first_block = 0; first_block < grid; ++first_block) {
    std::memset(may_read, 0, sizeof may_read);
    run_blocks(1);
  }
  results(end_of_product);
}
