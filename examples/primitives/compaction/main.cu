// Of an array, the elements above 0, in their order: by three launches and by
// one; and in any order, by atomic additions.
#include "cpp/host.cuh"
#define ELEMENT int
#define RESIDENT 3
#define LOOK 2
#include "primitives/compaction/compact.cu"
#include "primitives/compaction/steps.cu"
namespace scan {  // which has an `of_warp` of its own
#include "primitives/scan/passes.cu"
}

int main() {
  // All elements differ, so that each can be found again in any order.
  const int n = 50'000'003;
  std::mt19937 random(1);
  std::vector<int> host(n), wanted;
  for (int i = 0; i < n; ++i) {
    host[i] = random() % 2 ? i + 1 : -i;
    if (host[i] > 0) wanted.push_back(host[i]);
  }
  const int tiles = (n + TILE - 1) / TILE;
  Array<int> in(host), out(n), counts(tiles);
  Array<long long> count(1);
  Array<unsigned long long> found(1);
  // A word for each tile, and room for the prefixes of groups.
  Array<Word> state(HEADER + (tiles + 15) / 16 * 16 +
                    (size_t)(tiles / GROUP + 1) * COPIES * 16);
  state.zero();

  const auto run = [&](const char* name, auto& number, auto launch) {
    const double us = time_us(launch);
    // Once more: this launch finds what the others left.
    MUST(cudaMemset(out, 0xff, out.bytes()));
    MUST(cudaMemset(number, 0xff, number.bytes()));
    launch();
    MUST(cudaGetLastError());
    check("how many", std::vector<long long>{(long long)number.host()[0]},
          std::vector<long long>{(long long)wanted.size()});
    std::vector<int> got = out.host();
    got.resize(wanted.size());
    if (&found == (void*)&number) {  // in any order
      std::vector<int> places(n + 1);
      for (int x : got) places[std::max(x, 0)] = x;
      got.clear();
      for (int x : places)
        if (x > 0) got.push_back(x);
    }
    check(name, got, wanted);
    std::printf("%-14s %8.1f us, %5.0f GB/s\n", name, us,
                (in.bytes() + wanted.size() * sizeof(int)) / us / 1e3);
  };
  run("any order", found, [&] {
    MUST(cudaMemsetAsync(found, 0, found.bytes()));
    compact_atomic<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(in, out, found, n);
  });
  run("three launches", count, [&] {
    count_tiles<<<tiles, BLOCK>>>(in, counts, n);
    scan::scan_sums<<<1, BLOCK>>>(counts, tiles);
    place_tiles<<<tiles, BLOCK>>>(in, counts, out, count, n);
  });
  run("one launch", count, [&] {
    compact<<<tiles, BLOCK, TILE * sizeof(int)>>>(in, nullptr, out, count, n,
                                                  state);
  });
}
