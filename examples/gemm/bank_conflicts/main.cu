// A product of matrices whose tiles lie in shared memory in different ways:
// with conflicts, then without by padding and by other columns of a thread, or
// by words that change places.
#include "cpp/rung.cuh"
#include "gemm/bank_conflicts/bank_conflicts.cu"
#include "gemm/ladder/conflict_free.cu"
#include "gemm/ladder/vectorized.cu"

int main() {
  Product p(4001, 4004, 4100);
  run_rung(p, "vectorized", sgemm_vectorized<128, 128, 8, 8, 8>);
  run_rung(p, "conflict_free", sgemm_conflict_free<128, 128, 8, 8, 8>);
  run_rung(p, "padding", sgemm_layout<128, 128, 8, 8, 8, 132, 128, 0>);
  run_rung(p, "swizzle", sgemm_layout<128, 128, 8, 8, 8, 128, 128, 1>);
}
