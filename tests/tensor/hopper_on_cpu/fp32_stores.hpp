// Stores of boxes of fp32 by the TMA, which are done at once.
#pragma once
#include "products.hpp"

// A box of C in fp32, stored at once; the lines that wait for that are in
// epilogue.cpp.
inline void store_box(const CUtensorMap& map, int row, int column,
                      const void* from) {
  for (int r = 0; r < 64; ++r)
    for (int i = 0; i < 32 && row + r < map.tokens; ++i)
      if (2 * (column + i) < map.d)
        std::memcpy(
            (float*)map.data + (long)(row + r) * (map.d / 2) + column + i,
            shared_memory[self->block] +
                swizzled(shared_address(from) + r * 128 + i * 4),
            4);
}
inline void close_stores() {}
template <int GROUPS>
void wait_for_reads() {}
inline void fence_for_tma() {}
