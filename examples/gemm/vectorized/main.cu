// A product of matrices by loads and stores of one word, then of four; and once
// more with rows whose lengths do not allow four.
#include "cpp/rung.cuh"
#include "gemm/ladder/block_tile_2d.cu"
#include "gemm/ladder/vectorized.cu"

int main() {
  for (const int beyond : {0, 1}) {  // a multiple of four words, or one more
    Product p(4001, 4004 + beyond, 4100 + beyond);
    std::printf("%d x %d x %d\n", p.m, p.n, p.k);
    run_rung(p, "block_tile", sgemm_block_tile<128, 128, 8, 8, 8>);
    run_rung(p, "vectorized", sgemm_vectorized<128, 128, 8, 8, 8>);
  }
}
