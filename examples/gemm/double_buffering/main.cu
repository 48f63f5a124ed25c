// A product of matrices in which the next tiles are on their way while one is
// multiplied: none, one by way of registers, one or two by cp.async.
// requires: sm_80
#include "cpp/rung.cuh"
#include "gemm/ladder/double_buffer.cu"
#include "gemm/ladder/multi_stage.cu"
#include "gemm/ladder/warp_tile.cu"

int main() {
  Product p(4001, 4004, 4100);
  run_rung(p, "warp_tile", sgemm_warp_tile<128, 128, 16, 32, 64, 8, 8>);
  run_rung(p, "double_buffer", sgemm_double_buffer<128, 128, 8, 32, 64, 8, 8>);
  run_rung(p, "two stages", sgemm_multi_stage<128, 128, 16, 32, 64, 8, 8, 2>);
  run_rung(p, "three stages", sgemm_multi_stage<128, 128, 16, 32, 64, 8, 8, 3>);
}
