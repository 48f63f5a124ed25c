// A product of matrices whose tiles are copied by all threads, then by the TMA
// for a single thread that asks.
#include "cpp/rung.cuh"
#include "cpp/tensor_map.cuh"
#include "gemm/ladder/multi_stage.cu"
#include "gemm/ladder/tma.cu"

int main() {
  Product p(4001, 4004, 4100);  // the TMA wants rows of whole 16 bytes
  run_rung(p, "multi_stage", sgemm_multi_stage<128, 128, 16, 32, 64, 8, 8, 3>);

  const CUtensorMap a = tensor_map(p.A, p.m, p.k, 128, 8);
  const CUtensorMap b = tensor_map(p.B, p.k, p.n, 8, 128);
  const dim3 grid(blocks(p.n, 128), blocks(p.m, 128));
  p.run("tma", [&] {
    sgemm_tma<128, 128, 8, 32, 64, 8, 8, 4>
        <<<grid, 256>>>(a, b, p.C, p.m, p.n, p.k, 1.0f, 0.0f);
  });
}
