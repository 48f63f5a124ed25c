// A product of matrices in which each thread computes a tile of results, from
// 4 x 4 to 16 x 8.
#include "cpp/product.cuh"
#include "gemm/ladder/block_tile_2d.cu"

template <int TM, int TN>
void run(Product& p, const char* name) {
  constexpr int BM = 128, BN = 128, THREADS = BM * BN / (TM * TN);
  const dim3 grid(blocks(p.n, BN), blocks(p.m, BM));
  p.run(name, [&] {
    sgemm_block_tile<BM, BN, 8, TM, TN>
        <<<grid, THREADS>>>(p.A, p.B, p.C, p.m, p.n, p.k, 1.0f, 0.0f);
  });
}

int main() {
  Product p(4001, 4003, 4101);
  run<4, 4>(p, "4 x 4");
  run<8, 4>(p, "8 x 4");
  run<8, 8>(p, "8 x 8");
  run<16, 8>(p, "16 x 8");
}
