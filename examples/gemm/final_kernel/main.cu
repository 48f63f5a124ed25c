// A product of matrices by the final kernel: a block for each tile, then with
// the tiles that would not fill the GPU once more shared by several blocks.
#include "cpp/rung.cuh"
#include "gemm/ladder/final.cu"
#include "gemm/ladder/register_prefetch.cu"

int main() {
  Product p(4001, 4004, 4100);
  run_rung(p, "register_prefetch",
           sgemm_register_prefetch<128, 128, 8, 32, 64, 8, 8>);

  constexpr int BM = 64, BN = 128, BK = 16, STAGES = 3, BLOCKS = 3;
  const auto kernel = sgemm<BM, BN, BK, 8, 8, STAGES, BLOCKS, 4, false, false>;
  const int threads = BM * BN / 64;
  const int shared = STAGES * BK * (BM + 4 + BN) * sizeof(float);
  int sms = 0;
  MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int tiles = blocks(p.m, BM) * blocks(p.n, BN);
  const int rest = tiles % (sms * BLOCKS);
  // So many blocks share a tile of the rest, each with two steps at least.
  int parts = 1;
  if (rest > 0)
    parts = std::min({sms * BLOCKS / rest, p.k / (2 * BK), TOGETHER});
  const int per_part = blocks(blocks(p.k, BK), parts) * BK;
  parts = blocks(p.k, per_part);
  Array<float> partials((size_t)rest * parts * BM * BN);
  Array<unsigned> tickets(rest);  // one each, for up to TOGETHER parts
  tickets.zero();
  const auto run = [&](const char* name, int whole, int parts) {
    const int grid = whole + (tiles - whole) * parts;
    p.run(name, [&] {
      kernel<<<grid, threads, shared>>>(p.m, p.n, p.k, 1.0f, p.A, p.k, p.B, p.n,
                                        0.0f, p.C, p.n, whole, parts, per_part,
                                        partials, tickets);
    });
  };
  run("whole tiles", tiles, 1);
  run("the rest shared", parts > 1 ? tiles - rest : tiles, parts);
}
