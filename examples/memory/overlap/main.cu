// Numbers go to the GPU, are computed with, and come back: all at once, then in
// chunks on four streams, so that the three go on at the same time.
#include "cpp/host.cuh"
#include "memory/overlap/overlap.cu"

int main() {
  const int n = 50'000'003;
  const size_t bytes = n * sizeof(unsigned);
  const unsigned a = 1664525, c = 1013904223;
  unsigned *x = nullptr, *y = nullptr;
  MUST(cudaMallocHost(&x, bytes));
  MUST(cudaMallocHost(&y, bytes));
  std::mt19937 random(1);
  std::generate(x, x + n, random);
  Array<unsigned> on_gpu(n);
  unsigned* d = on_gpu;
  cudaStream_t streams[4];
  for (cudaStream_t& stream : streams) MUST(cudaStreamCreate(&stream));

  enum { IN = 1, KERNEL = 2, OUT = 4 };
  const auto enqueue = [&](int chunks, int steps, int stages) {
    for (int k = 0; k < chunks; ++k) {
      const int from = (long long)n * k / chunks;
      const int m = (long long)n * (k + 1) / chunks - from;
      cudaStream_t stream = streams[k % 4];
      if (stages & IN)
        MUST(cudaMemcpyAsync(d + from, x + from, m * sizeof(unsigned),
                             cudaMemcpyHostToDevice, stream));
      if (stages & KERNEL)
        forward<<<(m + 255) / 256, 256, 0, stream>>>(d + from, m, steps, a, c);
      if (stages & OUT)
        MUST(cudaMemcpyAsync(y + from, d + from, m * sizeof(unsigned),
                             cudaMemcpyDeviceToHost, stream));
    }
  };
  const auto ms = [&](int chunks, int steps, int stages) {
    return time_us([&] { enqueue(chunks, steps, stages); }, 5) / 1e3;
  };

  // As many steps as make the kernel take a fourth more than a copy.
  const double in = ms(1, 0, IN), out = ms(1, 0, OUT);
  const int steps =
      std::max(1.0, 1.25 * std::max(in, out) / ms(1, 1000, KERNEL) * 1000);
  std::printf("in %.2f ms, kernel %.2f ms, out %.2f ms\n", in,
              ms(1, steps, KERNEL), out);
  unsigned factor = 1, more = 0;  // of all steps at once
  for (int step = 0; step < steps; ++step) factor *= a, more = more * a + c;
  std::vector<unsigned> wanted(x, x + n);
  for (unsigned& v : wanted) v = v * factor + more;
  for (const int chunks : {1, 4, 16, 64, 256}) {
    std::fill(y, y + n, 0);
    enqueue(chunks, steps, IN | KERNEL | OUT);
    MUST(cudaDeviceSynchronize());
    check("forward", std::vector<unsigned>(y, y + n), wanted);
    const double took = ms(chunks, steps, IN | KERNEL | OUT);
    std::printf("%3d chunks: %.2f ms, %.1f GB/s each way\n", chunks, took,
                bytes / took / 1e6);
  }
  for (cudaStream_t stream : streams) MUST(cudaStreamDestroy(stream));
  MUST(cudaFreeHost(x));
  MUST(cudaFreeHost(y));
}
