// A product of matrices by shapes of the final kernel that were tried: tiles,
// results of a thread, stages and blocks on an SM.
#include "cpp/product.cuh"
#include "gemm/attempts/attempts.cu"

template <int BM, int BN, int TM, int TN, int STAGES, int BLOCKS>
void run(Product& p, const char* name) {
  constexpr int BK = 16, THREADS = BM * BN / (TM * TN);
  const auto kernel = attempt<BM, BN, BK, TM, TN, STAGES, BLOCKS, 4,
                              EXCHANGED | LATE | APART, 1>;
  // Tiles of A and B; or at the end the results of each warp, padded.
  const int tiles_of_both = STAGES * BK * (BM + 4 + BN);
  const int results = THREADS / 32 * (LANE_COLUMNS * TN) * (LANE_ROWS * 4 + 4);
  const int shared = sizeof(float) * std::max(tiles_of_both, results);
  MUST(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                            shared));
  const int tiles = blocks(p.m, BM) * blocks(p.n, BN);
  p.run(name, [&] {
    // All tiles are whole, so nothing is left for other blocks.
    kernel<<<tiles, THREADS, shared>>>(p.m, p.n, p.k, 1.0f, p.A, p.k, p.B, p.n,
                                       0.0f, p.C, p.n, tiles, 1,
                                       blocks(p.k, BK) * BK, nullptr, nullptr);
  });
}

int main() {
  Product p(4001, 4004, 4100);
  run<64, 128, 8, 8, 3, 3>(p, "64 x 128");
  run<64, 128, 8, 8, 2, 4>(p, "four blocks");
  run<128, 128, 8, 16, 3, 2>(p, "128 x 128, 8 x 16");
  run<128, 256, 8, 16, 4, 1>(p, "128 x 256, 8 x 16");
}
