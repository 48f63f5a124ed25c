// A product of matrices with a thread for each result: threads of a warp down a
// column of C, then along a row.
#include "basics/ladder/naive_columns.cu"
#include "basics/ladder/naive_rows.cu"
#include "cpp/product.cuh"

int main() {
  Product p(1111, 1003, 1025);
  const dim3 block(32, 32);
  p.run("naive_rows", [&] {
    const dim3 grid(blocks(p.m, 32), blocks(p.n, 32));
    matmul_naive_rows<<<grid, block>>>(p.A, p.B, p.C, p.m, p.n, p.k);
  });
  p.run("naive_columns", [&] {
    const dim3 grid(blocks(p.n, 32), blocks(p.m, 32));
    matmul_naive_columns<<<grid, block>>>(p.A, p.B, p.C, p.m, p.n, p.k);
  });
}
