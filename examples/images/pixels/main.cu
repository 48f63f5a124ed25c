// The first and the last channel of each pixel exchanged, and each channel as
// an image of its own: by a thread for each pixel, for 4 and for 16 of them.
#include "cpp/host.cuh"
#include "images/pixels/pixels.cu"

int main() {
  const int height = 4001, width = 6004;  // so a channel begins at a word
  const long long pixels = (long long)height * width;
  using Bytes = std::vector<unsigned char>;
  Bytes host(3 * pixels), swapped(3 * pixels), planes(3 * pixels);
  std::generate(host.begin(), host.end(), std::mt19937(1));
  for (long long i = 0; i < pixels; ++i)
    for (int c = 0; c < 3; ++c)
      swapped[3 * i + 2 - c] = planes[c * pixels + i] = host[3 * i + c];

  Array<unsigned char> image(host), out(host.size());
  const auto run = [&](const char* name, const Bytes& wanted, auto launch) {
    MUST(cudaMemset(out, 0, out.bytes()));
    launch();
    MUST(cudaGetLastError());
    check(name, out.host(), wanted);
    const double us = time_us(launch);
    std::printf("%-14s %7.1f us, %5.0f GB/s\n", name, us,
                2.0 * out.bytes() / us / 1e3);
  };
  const auto blocks = [&](int of_thread) {
    const int of_block = 256 * of_thread;
    return (unsigned)((pixels + of_block - 1) / of_block);
  };
  const auto by = [](auto type, Array<unsigned char>& array) {
    return reinterpret_cast<decltype(type)*>((unsigned char*)array);
  };
  const dim3 block(32, 8), grid((width + 31) / 32, (height + 7) / 8);
  run("swap", swapped,
      [&] { swap_channels<<<grid, block>>>(out, image, height, width); });
  run("swap, turned", swapped, [&] {
    const dim3 turned((height + 31) / 32, (width + 7) / 8);
    swap_turned<<<turned, block>>>(out, image, height, width);
  });
  run("swap, four", swapped, [&] {
    swap_four<<<blocks(4), 256>>>(by(0u, out), by(0u, image), pixels);
  });
  run("swap, sixteen", swapped, [&] {
    swap_sixteen<<<blocks(16), 256>>>(by(uint4(), out), by(uint4(), image),
                                      pixels);
  });
  run("planes", planes,
      [&] { to_chw<<<grid, block>>>(out, image, height, width); });
  run("planes, four", planes,
      [&] { to_chw_four<<<blocks(4), 256>>>(out, by(0u, image), pixels); });
}
