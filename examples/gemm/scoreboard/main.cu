// Products with one column and with four rows, in which the long matrix is read
// once: rates are of its bytes.
#include "cpp/product.cuh"
#include "gemm/kernels/skinny.cu"

int main() {
  int sms = 0;
  MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  {  // A is long, and its rows lie along the depth
    Product p(4099, 1, 4100);
    constexpr int ROWS = 16, WARPS = 8;
    const int groups = blocks(p.m, ROWS);
    int parts = std::max(1, std::min(2 * sms / groups, p.k / 512));
    const int per_part = blocks(blocks(p.k, parts), 4) * 4;
    parts = blocks(p.k, per_part);
    Array<float> partials((size_t)groups * parts * ROWS);
    Array<unsigned> tickets(groups);
    tickets.zero();
    const double us = p.run("matrix times vector", [&] {
      skinny<1, true, 4, ROWS, WARPS><<<groups * parts, 32 * WARPS>>>(
          p.m, p.n, p.k, 1.0f, p.A, p.k, p.B, p.n, 1, 0.0f, p.C, p.n, 1, parts,
          per_part, partials, tickets);
    });
    std::printf("%26.0f GB/s\n", p.A.bytes() / us / 1e3);
  }
  {  // B is long, and its rows lie across the depth
    Product p(4, 4100, 4099);
    constexpr int FEW = 4, ROWS = 32, WARPS = 16;
    const int groups = blocks(p.n, ROWS);
    int parts = std::max(1, std::min(sms / groups, p.k / 512));
    const int per_part = blocks(blocks(p.k, parts), 4) * 4;
    parts = blocks(p.k, per_part);
    Array<float> partials((size_t)groups * parts * ROWS * FEW);
    Array<unsigned> tickets(groups);
    tickets.zero();
    const double us = p.run("four rows", [&] {
      skinny<FEW, false, 4, ROWS, WARPS><<<groups * parts, 32 * WARPS>>>(
          p.n, p.m, p.k, 1.0f, p.B, p.n, p.A, 1, p.k, 0.0f, p.C, 1, p.n, parts,
          per_part, partials, tickets);
    });
    std::printf("%26.0f GB/s\n", p.B.bytes() / us / 1e3);
  }
}
