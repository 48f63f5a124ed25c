// A rung of the part gemm: C = alpha A B + beta C by 256 threads for each tile
// of 128 x 128, here with alpha = 1 and beta = 0.
#pragma once
#include "cpp/product.cuh"

template <typename Kernel>
void run_rung(Product& p, const char* name, Kernel kernel) {
  const dim3 grid(blocks(p.n, 128), blocks(p.m, 128));
  p.run(name, [&] {
    kernel<<<grid, 256>>>(p.A, p.B, p.C, p.m, p.n, p.k, 1.0f, 0.0f);
  });
}
