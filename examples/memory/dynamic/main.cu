// The Mandelbrot set by a thread for each pixel, and by tiles: one whose border
// is of one value is filled, another one launches the kernel for its parts.
// flags: -rdc=true --fmad=false -arch=all-major
#include "cpp/host.cuh"
#include "memory/dynamic/dynamic.cu"
#include "memory/dynamic/plain.cu"

int main() {
  const int first = 128, split = 2, least = 16, block = 256;
  // Launches by the GPU that may wait at a time.
  MUST(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 16384));
  Array<int> failed(1);
  const auto draw = [&](int n, int most, auto by) {
    const float left = -2.25f, top = -1.5f, step = 3.0f / n;
    Array<unsigned short> out((size_t)n * n);
    failed.zero();
    const auto pixels = [&] {
      const dim3 threads(32, 8), grid((n + 31) / 32, (n + 7) / 8);
      flat<<<grid, threads>>>(out, left, top, step, n, most);
    };
    const auto tiles = [&] {
      const dim3 grid(n / first, n / first);
      subdivide<<<grid, block>>>(out, left, top, step, n, most, 0, 0, first,
                                 split, least, failed);
    };
    by(out, pixels, tiles);
    check("launches that failed", failed.host(), std::vector<int>{0});
  };

  // A small picture, against the CPU. Without fused multiply-adds, both have
  // the same numbers.
  draw(5 * first, 200, [&](auto& out, auto pixels, auto tiles) {
    const int n = 5 * first;
    std::vector<unsigned short> wanted;
    for (int i = 0; i < n * n; ++i) {
      const float step = 3.0f / n, a = -2.25f + step * (i % n),
                  b = -1.5f + step * (i / n);
      float u = 0, v = 0;
      int k = 0;
      for (; k < 200 && u * u + v * v < 4; ++k) {
        const float next = u * u - v * v + a;
        v = 2 * u * v + b;
        u = next;
      }
      wanted.push_back(k);
    }
    pixels();
    check("every pixel", out.host(), wanted);
    MUST(cudaMemset(out, 0xff, out.bytes()));
    tiles();
    // No border of one value in this picture encloses another value.
    check("by tiles", out.host(), wanted);
  });

  draw(32 * first, 16384, [&](auto&, auto pixels, auto tiles) {
    std::printf("every pixel %8.2f ms\n", time_us(pixels, 5) / 1e3);
    std::printf("by tiles    %8.2f ms\n", time_us(tiles, 5) / 1e3);
  });
}
