// A product of matrices in which each thread computes eight results.
#include "basics/ladder/thread_tile.cu"
#include "cpp/product.cuh"

int main() {
  Product p(2111, 2003, 2049);
  p.run("thread_tile", [&] {
    const dim3 grid(blocks(p.n, 64), blocks(p.m, 64));
    matmul_thread_tile<<<grid, 512>>>(p.A, p.B, p.C, p.m, p.n, p.k);
  });
}
