// A product with a few tiles more than the GPU holds at a time: by a block for
// each tile, and by stream-K.
#include "cpp/product.cuh"
#include "gemm/tile_quantization/stream_k.cu"

int main() {
  const auto kernel = sgemm_stream_k<64, 128, 8, 8, 8, 3>;
  const int threads = 128;
  int sms = 0, per_sm = 0;
  MUST(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, threads,
                                                     0));
  const int resident = sms * per_sm, tile_rows = 20;
  const int tile_columns = resident / tile_rows + 1;
  Product p(tile_rows * 64 - 3, tile_columns * 128 - 4, 2052);
  const int tiles = tile_rows * tile_columns;
  std::printf("%d tiles, %d at a time\n", tiles, resident);
  Array<float> partials((size_t)resident * 64 * 128);
  Array<unsigned> flags(resident);
  flags.zero();
  p.run("a block for each tile", [&] {
    kernel<<<tiles, threads>>>(p.A, p.B, p.C, p.m, p.n, p.k, partials, flags);
  });
  // No more blocks than run at the same time, for they wait for each other.
  p.run("stream-K", [&] {
    kernel<<<resident, threads>>>(p.A, p.B, p.C, p.m, p.n, p.k, partials,
                                  flags);
  });
}
