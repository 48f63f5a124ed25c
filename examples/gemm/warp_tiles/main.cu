// A product of matrices whose warps compute tiles of 32 x 64, with two ways to
// number the lanes of a warp.
#include "cpp/rung.cuh"
#include "gemm/ladder/conflict_free.cu"
#include "gemm/ladder/warp_tile.cu"
#include "gemm/warp_tiles/warp_tiles.cu"

int main() {
  Product p(4001, 4004, 4100);
  run_rung(p, "conflict_free", sgemm_conflict_free<128, 128, 8, 8, 8>);
  run_rung(p, "warp_tile", sgemm_warp_tile<128, 128, 16, 32, 64, 8, 8>);
  // A lane's column by the lowest three bits of its number, or by bits 1 to 3.
  run_rung(p, "bits 0 to 2", sgemm_lanes<128, 128, 16, 32, 64, 8, 8, 7>);
  run_rung(p, "bits 1 to 3", sgemm_lanes<128, 128, 16, 32, 64, 8, 8, 14>);
}
