// A convolution with windows of 3 x 3 by Winograd's minimal filtering: tiles of
// 2 x 2 results with 16 multiplications, and of 4 x 4 with 36.
#include "images/convolution.cuh"
#include "images/winograd/products.cu"
#include "images/winograd/transforms.cu"

template <int M>
void winograd(Convolution<Shape>& c) {
  const Shape& s = c.s;
  constexpr int PLACES = (M + 2) * (M + 2);  // as many products
  constexpr int BM = 64, BN = 128, BK = 16, TM = 8, TN = 8, STAGES = 3;
  constexpr int THREADS = BM * BN / (TM * TN);
  const int down = blocks(s.out_height, M), across = blocks(s.out_width, M);
  const int tiles = (s.images * down * across + 3) / 4 * 4;
  const int filters = (s.filters + 3) / 4 * 4;
  Array<float> u((size_t)PLACES * s.channels * filters);
  Array<float> v((size_t)PLACES * s.channels * tiles);
  Array<float> products((size_t)PLACES * s.filters * tiles);

  // Rows of blocks for the words, then others for the weights.
  const unsigned wide = blocks(tiles, 128);
  const unsigned of_weights =
      blocks((long long)blocks(filters, 32) * blocks(s.channels, 4), wide);
  const unsigned each = blocks(s.filters, BM) * blocks(tiles, BN);
  const int shared = STAGES * BK * (BM + BN) * sizeof(float);
  c.run(M == 2 ? "tiles of 2 x 2" : "tiles of 4 x 4", [&] {
    winograd_inputs<M><<<dim3(wide, s.channels + of_weights), 128>>>(
        s, down, across, tiles, filters, s.channels, c.x, v, c.w, u);
    winograd_products<BM, BN, BK, TM, TN, STAGES, 3>
        <<<dim3(each, PLACES), THREADS, shared>>>(filters, tiles, s.channels,
                                                  s.filters, u, v, products);
    winograd_results<M, 1>
        <<<dim3(wide, s.filters), 128>>>(s, down, across, tiles, products, c.y);
  });
}

int main() {
  // Images, groups; channels, rows, columns; filters and their windows; rows
  // and columns of results; strides, padding, dilation.
  const Shape s = {33, 1, 133, 29, 27, 138, 3, 3, 29, 27, 1, 1, 1, 1, 1, 1};
  Convolution<Shape> c(s);
  winograd<2>(c);
  winograd<4>(c);
}
