// A product of matrices by tiles in shared memory.
#include "basics/ladder/tiled.cu"
#include "cpp/product.cuh"

int main() {
  Product p(1111, 1003, 1025);
  p.run("tiled", [&] {
    const dim3 grid(blocks(p.n, TILE), blocks(p.m, TILE)), block(TILE, TILE);
    matmul_tiled<<<grid, block>>>(p.A, p.B, p.C, p.m, p.n, p.k);
  });
}
