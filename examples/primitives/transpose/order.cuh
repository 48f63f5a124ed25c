// In which order blocks take the tiles of a matrix.
//
//   Tile     a tile by its row and column among the tiles
//   tile_at  the tile of a block
#pragma once

struct Tile {
  int row, column;
};

// --8<-- [start:order]
// Tile `block` of rows x columns tiles. Bands of `group` rows of tiles follow
// each other; within a band the order is down a column of tiles, then the next
// column. So group = 1 goes along the rows of the input, and a group of all
// rows along the rows of the output.
__device__ __forceinline__ Tile tile_at(unsigned block, int rows, int columns,
                                        int group) {
  const unsigned of_band = (unsigned)group * columns;  // tiles, as many as fit
  const unsigned band = block / of_band, within = block - band * of_band;
  const int first = band * group;
  const unsigned height = min(group, rows - first);
  const unsigned column = within / height;
  return {first + (int)(within - column * height), (int)column};
}
// --8<-- [end:order]
