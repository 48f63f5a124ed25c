// Keys of 32 bits in their order: by three launches for each digit, by one
// sweep for each digit, and few of them in one block.
#include "cpp/host.cuh"
#define STAGED 1
#include "primitives/sort/counting.cu"
#include "primitives/sort/one_tile.cu"
#include "primitives/sort/onesweep.cu"

// On the host, by 16 bits at a time.
std::vector<unsigned> sorted(std::vector<unsigned> keys) {
  std::vector<unsigned> other(keys.size());
  for (int shift : {0, 16}) {
    std::vector<unsigned> places((1 << 16) + 1);
    for (unsigned key : keys) ++places[(key >> shift & 65535) + 1];
    for (int i = 0; i < 1 << 16; ++i) places[i + 1] += places[i];
    for (unsigned key : keys) other[places[key >> shift & 65535]++] = key;
    keys.swap(other);
  }
  return keys;
}

int main() {
  const unsigned n = 40'000'003, few = 8001;  // at most TILE
  std::vector<unsigned> host(n);
  std::generate(host.begin(), host.end(), std::mt19937(1));
  const int tiles = (n + TILE - 1) / TILE;
  Array<unsigned> keys(host), out(n), other(n);
  const auto run = [&](const char* name, unsigned n, auto launch) {
    const double us = time_us(launch);
    // Once more: this launch finds what the others left.
    MUST(cudaMemset(out, 0xff, out.bytes()));
    launch();
    MUST(cudaGetLastError());
    std::vector<unsigned> got = out.host();
    got.resize(n);
    check(name, got, sorted({host.begin(), host.begin() + n}));
    std::printf("%-14s %8.1f us, %6.3f billion keys a second\n", name, us,
                n / us / 1e3);
  };
  // From where to where each digit moves the keys.
  unsigned* const ways[] = {keys, other, out, other, out};
  const int shared =
      TILE * sizeof(Key) + (DIGITS + COUNTERS) * sizeof(unsigned);

  Array<unsigned> of_tiles((size_t)DIGITS * tiles), totals(DIGITS);
  totals.zero();
  run("three launches", n, [&] {
    for (int pass = 0; pass < PASSES; ++pass) {
      const unsigned* from = ways[pass];
      count_tiles<<<tiles, THREADS>>>(from, n, 8 * pass, of_tiles, totals);
      scan_tiles<<<DIGITS, DIGITS>>>(of_tiles, totals, tiles);
      scatter<<<tiles, THREADS, shared>>>(from, ways[pass + 1], nullptr,
                                          nullptr, n, 8 * pass, of_tiles,
                                          totals);
    }
  });

  // What counts has so much shared memory that it asks for it.
  const int room = ROWS * 32 * sizeof(unsigned);
  MUST(cudaFuncSetAttribute(count_digits,
                            cudaFuncAttributeMaxDynamicSharedMemorySize, room));
  int sms = 0, per_sm = 0;
  MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, count_digits,
                                                     COUNT_THREADS, room));
  Array<unsigned> counts(PASSES * DIGITS), places(PASSES * DIGITS), tickets(2);
  Array<unsigned> even((size_t)DIGITS * tiles), odd((size_t)DIGITS * tiles);
  for (Array<unsigned>* zeros : {&counts, &tickets, &even, &odd}) zeros->zero();
  unsigned* const states[] = {even, odd};
  run("sweeps", n, [&] {
    count_digits<<<sms * per_sm, COUNT_THREADS, room>>>(keys, n, counts);
    first_places<<<PASSES, THREADS>>>(counts, places);
    for (int pass = 0; pass < PASSES; ++pass) {
      const int now = pass % 2, then = 1 - now;
      sweep<<<tiles, THREADS, shared>>>(
          ways[pass], ways[pass + 1], nullptr, nullptr, n, 8 * pass,
          places + pass * DIGITS, states[now], states[then], tickets + now,
          tickets + then);
    }
  });
  run("one block", few, [&] {
    sort_tile<<<1, THREADS, shared>>>(keys, out, nullptr, nullptr, few);
  });
}
