// Runs linear_hopper<PLAN, END> on a CPU, block after block:
//   linear n outputs inputs group early grid seed < arrays > results
// It ends with 2 and the reason if a block does what it must not, or waits for
// ever. The kernel before still runs when a block begins: until it ends, arrays
// hold NaN, and what is written to them is lost. What END needs and gives: see
// `prepare` and `results` below.
#include "kernel.hpp"

template <int CONSUMERS_, int WIDTH_, int STAGES_, bool TURNED_>
struct Plan {
  static constexpr int CONSUMERS = CONSUMERS_, WIDTH = WIDTH_;
  static constexpr bool TURNED = TURNED_;
};
using Chosen = Plan<PLAN>;
using End = END;

static int n, outputs, inputs, group, early, grid;

// What the kernel before may still read and write.
struct Bytes {
  unsigned char* at;
  std::vector<unsigned char> kept;
};
static std::vector<Bytes> of_previous;
template <class T>
static T* shared_with_previous(std::vector<T>& some) {
  of_previous.push_back({(unsigned char*)some.data(),
                         std::vector<unsigned char>(some.size() * sizeof(T))});
  return some.data();
}
static void previous_begins() {
  for (Bytes& some : of_previous) {
    std::memcpy(some.kept.data(), some.at, some.kept.size());
    std::memset(some.at, 0xff, some.kept.size());
  }
}
static void previous_ends() {
  for (Bytes& some : of_previous)
    std::memcpy(some.at, some.kept.data(), some.kept.size());
}

template <class T>
static void write(const std::vector<T>& from) {
  std::fwrite(from.data(), sizeof(T), from.size(), stdout);
}

static std::vector<float> y, weight, squares, parts;
static std::vector<uint16_t> h, out;

static void prepare(Store& end) {
  y.assign((long)n * outputs, NAN);
  end = {shared_with_previous(y)};
}
static void results(Store&) { write(y); }
static void prepare(Add& end) {
  machine::read(y, (long)n * outputs), machine::read(weight, outputs);
  h.assign((long)n * outputs, 0x7fc0);
  squares.assign((long)n * ((outputs + Chosen::WIDTH - 1) / Chosen::WIDTH),
                 NAN);
  end = {shared_with_previous(y), weight.data(),
         (__nv_bfloat16*)shared_with_previous(h),
         shared_with_previous(squares)};
}
static void results(Add&) { write(y), write(h), write(squares); }
static void prepare(Gates& end) {
  machine::read(parts, n * 3L);  // of the squares, n x 3
  out.assign((long)n * outputs / 2, 0x7fc0);
  end = {(__nv_bfloat16*)shared_with_previous(out),
         {shared_with_previous(parts), 3, 1.0f / inputs, 1e-5f}};
}
static void results(Gates&) { write(out); }

int main(int, char** arguments) {
  int* const numbers[] = {&n, &outputs, &inputs, &group, &early, &grid};
  for (int* number : numbers) *number = std::atoi(*++arguments);
  machine::dice.seed(std::atoi(*++arguments));
  std::vector<uint16_t> x, w;
  machine::read(x, (long)n * inputs), machine::read(w, (long)outputs * inputs);
  shared_with_previous(x);
  End end;
  prepare(end);
  const int a = Chosen::CONSUMERS * 64, b = Chosen::WIDTH;
  const auto of_x = map_of(x, n, inputs, Chosen::TURNED ? b : a),
             of_w = map_of(w, outputs, inputs, Chosen::TURNED ? a : b);
  machine::grid_blocks = grid;
  machine::block_threads = 128 * Chosen::CONSUMERS + PRODUCERS<Chosen::WIDTH>;
  machine::previous_ends = previous_ends;
  int& first = machine::first_block;
  for (first = 0; first < grid; ++first) {
    previous_begins();
    machine::run_blocks(1, [&] {
      linear_hopper<PLAN, End>(of_x, of_w, end, n, outputs, inputs, group,
                               early);
      if (!machine::self->knows_previous)
        machine::fail("a thread that has not waited");
    });
  }
  results(end);
}
