// Runs a kernel of examples/images/implicit_gemm on a CPU, block after block:
//   program grid_x grid_y grid_z block_x block_y seed < arguments > arrays
// An argument is its kind and its bytes: 'b', a count and that many bytes; 'a',
// the same of an array in memory; 'm', a tensor map: the number of its array
// (its argument's), bytes of an element, axes, then sizes, box, pitches, 1 if
// swizzled, the span, and the numbers of windows. All are int64 but the bytes.
// All arrays are written when the kernel has ended. It ends with 2 and the
// reason if a block does what it must not, or waits for ever.
#include <tuple>

#include "kernel.hpp"

static std::vector<std::vector<unsigned char>> arguments;
static std::vector<CUtensorMap> maps;

static int64_t number() {
  std::vector<int64_t> one;
  machine::read(one, 1);
  return one[0];
}

template <class T>
T argument(int i) {
  if constexpr (std::is_same_v<T, CUtensorMap>) {
    return maps[i];
  } else if constexpr (std::is_pointer_v<T>) {
    return (T)arguments[i].data();
  } else {
    T value;
    if (arguments[i].size() != sizeof value) machine::fail("another argument");
    std::memcpy(&value, arguments[i].data(), sizeof value);
    return value;
  }
}

template <class... Args, size_t... I>
void run(void (*kernel)(Args...), int x, int y, int z,
         std::index_sequence<I...>) {
  auto& at = machine::at_block;
  for (at.z = 0; at.z < z; ++at.z)
    for (at.y = 0; at.y < y; ++at.y)
      for (at.x = 0; at.x < x; ++at.x) {
        machine::first_block = at.x;
        machine::run_blocks(
            1, [&] { kernel(argument<std::remove_cvref_t<Args>>(I)...); });
      }
}
template <class... Args>
void run(void (*kernel)(Args...), int x, int y, int z) {
  run(kernel, x, y, z, std::index_sequence_for<Args...>());
}

int main(int, char** given) {
  int x, y, z, wide, high, seed;
  for (int* one : {&x, &y, &z, &wide, &high, &seed}) *one = std::atoi(*++given);
  machine::dice.seed(seed);
  std::vector<int> arrays;
  for (int count = number(); count--;) {
    const int kind = number();
    arguments.emplace_back(), maps.emplace_back();
    if (kind != 'm') {
      machine::read(arguments.back(), number());
      if (kind == 'a') arrays.push_back(arguments.size() - 1);
      continue;
    }
    CUtensorMap& map = maps.back();
    map.data = (void*)number();  // for now the number of the array
    map.element = number();
    const int axes = number();
    for (int i = 0; i < axes; ++i) map.sizes.push_back(number());
    for (int i = 0; i < axes; ++i) map.box.push_back(number());
    for (int i = 0; i < axes; ++i) map.pitches.push_back(number());
    map.swizzled = number(), map.span = number();
    for (int i = 0; i < 2; ++i) map.windows.lower[i] = number();
    for (int i = 0; i < 2; ++i) map.windows.upper[i] = number();
    for (int i = 0; i < 2; ++i) map.windows.steps[i] = number();
    map.windows.count = number();
  }
  for (CUtensorMap& map : maps)
    if (map.sizes.size()) map.data = arguments[(long)map.data].data();
  machine::grid_blocks = x, machine::wide = wide;
  machine::block_threads = wide * high;
  run(NAME, x, y, z);
  for (int i : arrays)
    std::fwrite(arguments[i].data(), 1, arguments[i].size(), stdout);
}
