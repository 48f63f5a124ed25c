// The sums of all elements up to each: by three launches, with a tree, with
// shuffles and with tiles; and by one launch, whose blocks look back.
#include "cpp/host.cuh"
#define ELEMENT int
#define RESIDENT 4
#include "primitives/scan/one_pass.cu"
#include "primitives/scan/tree.cu"
namespace three_passes {  // which has an `of_warp` of its own
#include "primitives/scan/passes.cu"
}

int main() {
  const long long n = 50'000'003;
  std::mt19937 random(1);
  std::vector<int> host(n), wanted(n);
  for (int& x : host) x = (int)(random() % 2001) - 1000;
  for (long long i = 0, sum = 0; i < n; ++i) wanted[i] = sum += host[i];
  Array<int> in(host), out(n), sums(n / BLOCK + 1);

  const auto run = [&](const char* name, auto launch) {
    const double us = time_us(launch);
    // Once more: this launch finds what the others left.
    MUST(cudaMemset(out, 0xff, out.bytes()));
    launch();
    MUST(cudaGetLastError());
    check(name, out.host(), wanted);
    std::printf("%-10s %8.1f us, %5.0f GB/s\n", name, us,
                2.0 * in.bytes() / us / 1e3);
  };
  const auto tiles_of = [&](int tile) { return (int)((n + tile - 1) / tile); };
  using three_passes::scan_sums;

  run("tree", [&] {
    const int tile = 2 * BLOCK, tiles = tiles_of(tile);
    scan_tree<<<tiles, BLOCK>>>(in, out, sums, n);
    scan_sums<<<1, BLOCK>>>(sums, tiles);
    add_sums<<<tiles, BLOCK>>>(out, sums, tile, n);
  });
  run("warps", [&] {
    const int tiles = tiles_of(BLOCK);
    scan_warps<<<tiles, BLOCK>>>(in, out, sums, n);
    scan_sums<<<1, BLOCK>>>(sums, tiles);
    add_sums<<<tiles, BLOCK>>>(out, sums, BLOCK, n);
  });
  const int tiles = tiles_of(TILE);
  run("passes", [&] {
    three_passes::sum_tiles<<<tiles, BLOCK>>>(in, sums, n);
    scan_sums<<<1, BLOCK>>>(sums, tiles);
    three_passes::scan_tiles<<<tiles, BLOCK>>>(in, sums, out, n);
  });
  // A word for each tile, and the prefixes of groups behind whole lines.
  Array<Word> state(HEADER + (tiles + 15) / 16 * 16 +
                    (size_t)(tiles / GROUP + 1) * COPIES * 16);
  state.zero();
  run("look back",
      [&] { scan_look_back<<<tiles, BLOCK>>>(in, out, n, state); });
  state.zero();
  run("in order", [&] { scan_in_order<<<tiles, BLOCK>>>(in, out, n, state); });
}
