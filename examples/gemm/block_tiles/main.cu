// A product of matrices in which each thread computes a tile of 8 x 8 results.
#include "cpp/rung.cuh"
#include "gemm/ladder/block_tile_2d.cu"

int main() {
  Product p(4001, 4003, 4101);
  run_rung(p, "block_tile", sgemm_block_tile<128, 128, 8, 8, 8>);
}
