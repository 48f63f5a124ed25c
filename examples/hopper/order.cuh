// The order in which tiles of C are computed.
#pragma once

// --8<-- [start:order]
// Where tile number `tile` of C lies (x: its column, y: its row, in tiles):
// `group` tiles downwards, then on to the right. Tiles that are computed at the
// same time so share rows of A and columns of B, and find them in the L2 cache.
__device__ __forceinline__ int2 place_of(int tile, int group, int tile_rows,
                                         int tile_columns) {
  const int first = tile / (group * tile_columns) * group;
  const int rows = min(group, tile_rows - first);
  const int i = tile - first * tile_columns;
  return make_int2(i / rows, first + i % rows);
}
// --8<-- [end:order]
