// A convolution as a product whose second factor is never stored: its words are
// found by divisions, or by a table of offsets.
#include "images/convolution.cuh"
#include "images/implicit_gemm/maps.cu"
#include "images/implicit_gemm/offsets.cu"

int main() {
  // Images, groups; channels, rows, columns; filters and their windows; rows
  // and columns of results; strides, padding, dilation.
  const Shape s = {33, 1, 133, 29, 28, 136, 3, 3, 29, 28, 1, 1, 1, 1, 1, 1};
  Convolution<Shape> c(s);
  const int pixels = s.images * c.places;
  c.run("maps", [&] {
    const dim3 grid(blocks(pixels, EDGE), blocks(s.filters, EDGE));
    implicit_maps<<<grid, dim3(EDGE, EDGE)>>>(s, c.x, c.w, c.y);
  });

  constexpr int BM = 64, BN = 128, BK = 16, TM = 8, TN = 8, STAGES = 3;
  constexpr int THREADS = BM * BN / (TM * TN);
  // For each row of the factor, where its word is in an image and a bit for its
  // weight in the window. The first step has what BK leaves over.
  const int steps = blocks(c.depth, BK), first = c.depth - (steps - 1) * BK;
  std::vector<int2> rows(steps * BK);
  for (int k = 0; k < c.depth; ++k) {
    const int down = k % 9 / 3, right = k % 3;
    rows[k < first ? k : k - first + BK] = {
        (k / 9 * s.height + down) * s.width + right, 1 << k % 9};
  }
  Array<int2> table(rows);
  const auto kernel = convolution<BM, BN, BK, TM, TN, STAGES, 3, true>;
  // Tiles of both factors; at the end columns of results, of each warp.
  const int words = std::max(STAGES * BK * (BM + 4 + BN),
                             THREADS / 32 * 4 * TN * (8 * 4 + 4));
  const unsigned grid = blocks(s.filters, BM) * blocks(pixels, BN);
  c.run("offsets", [&] {
    kernel<<<grid, THREADS, words * sizeof(float)>>>(s, c.x, c.w, table, c.y);
  });
}
