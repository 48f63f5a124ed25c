// y = a x + y, through functions that the compiler of C++ could call without
// knowing CUDA: of arrays on the GPU, and of arrays of the host.
#include <chrono>

#include "cpp/host.cuh"
#include "memory/bindings/mixed/saxpy.cu"

int main() {
  const int n = 1'000'003;
  const float a = 2.5f;
  const std::vector<float> x = uniform(n, 1), before = uniform(n, 2);
  std::vector<double> wanted(n);
  for (int i = 0; i < n; ++i) wanted[i] = (double)a * x[i] + before[i];
  const auto must = [](int status) { MUST(static_cast<cudaError_t>(status)); };
  must(saxpy_wake());

  Array<float> on_gpu(x), y(before);
  must(saxpy_launch(a, on_gpu, y, n, nullptr));
  // One or two roundings of numbers up to 3.5.
  check("saxpy_launch", y.host(), wanted, 2 * 0x1p-24 * 3.5);
  std::vector<float> of_host = before;
  must(saxpy_of_host(a, x.data(), of_host.data(), n));
  check("saxpy_of_host", of_host, wanted, 2 * 0x1p-24 * 3.5);

  const double us =
      time_us([&] { must(saxpy_launch(a, on_gpu, y, n, nullptr)); });
  std::printf("saxpy_launch   %8.2f us, %5.0f GB/s\n", us,
              3.0 * y.bytes() / us / 1e3);
  const double copied =
      time_us([&] { must(saxpy_of_host(a, x.data(), of_host.data(), n)); });
  std::printf("saxpy_of_host  %8.2f us, %5.1f GB/s\n", copied,
              3.0 * y.bytes() / copied / 1e3);

  // What a call takes of the host's time.
  const int many = 240;
  const auto begin = std::chrono::steady_clock::now();
  must(saxpy_launches(a, on_gpu, y, 1000, nullptr, many));
  const std::chrono::duration<double, std::micro> took =
      std::chrono::steady_clock::now() - begin;
  MUST(cudaDeviceSynchronize());
  std::printf("saxpy_launches %8.2f us for each call\n", took.count() / many);
}
