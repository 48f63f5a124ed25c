// A photograph turned by 30 degrees: each pixel of the output asks where in the
// image it comes from, and mixes the four pixels there.
#include "cpp/host.cuh"
#include "images/warp/warp.cu"
#include "images/warp/words.cu"

int main() {
  const int height = 2001, width = 3003;
  std::vector<unsigned char> host(3 * height * width);
  std::generate(host.begin(), host.end(), std::mt19937(1));
  // Back from the output to the image, about the middle, in units of 2^-32.
  const double angle = std::acos(-1.0) / 6, sine = std::sin(angle),
               cosine = std::cos(angle);
  const double x = (width - 1) / 2.0, y = (height - 1) / 2.0;
  const auto fixed = [](double v) { return std::llround(v * 0x1p32); };
  const Fixed back = {
      fixed(cosine), fixed(-sine),  fixed(x - cosine * x + sine * y),
      fixed(sine),   fixed(cosine), fixed(y - sine * x - cosine * y)};

  std::vector<double> nearest, mixed;  // 0 beyond the image
  const auto pixel = [&](int row, int column, int c) -> double {
    const bool in = row >= 0 && row < height && column >= 0 && column < width;
    return in ? host[3 * (row * width + column) + c] : 0;
  };
  for (int i = 0; i < height; ++i)
    for (int j = 0; j < width; ++j)
      for (int c = 0; c < 3; ++c) {
        const long long right = back.a * j + back.b * i + back.c,
                        down = back.d * j + back.e * i + back.f;
        const int column = (int)(right >> 32), row = (int)(down >> 32);
        const double s = (unsigned)right * 0x1p-32,
                     t = (unsigned)down * 0x1p-32;
        nearest.push_back(pixel(row + (t >= 0.5), column + (s >= 0.5), c));
        mixed.push_back((1 - t) * ((1 - s) * pixel(row, column, c) +
                                   s * pixel(row, column + 1, c)) +
                        t * ((1 - s) * pixel(row + 1, column, c) +
                             s * pixel(row + 1, column + 1, c)));
      }

  static_assert(3 * width >= READ, "behind a pixel lie enough bytes");
  Array<unsigned char> image(host), out(host.size());
  // Rounded to a byte, of a value that fp32 has to within 2e-4.
  const auto run = [&](const char* name, const std::vector<double>& wanted,
                       double off, auto kernel, int pixels) {
    const dim3 block(32, 8);
    const dim3 grid((width + 32 * pixels - 1) / (32 * pixels),
                    (height + 7) / 8);
    const auto launch = [&] {
      kernel<<<grid, block>>>(out, image, back, height, width, height, width,
                              0.0f);
    };
    MUST(cudaMemset(out, 0xff, out.bytes()));
    launch();
    MUST(cudaGetLastError());
    check(name, out.host(), wanted, off);
    const double us = time_us(launch);
    std::printf("%-15s %7.1f us, %5.1f billion pixels a second\n", name, us,
                height * width / us / 1e3);
  };
  run("nearest", nearest, 0, warp<1, CONSTANT>, 1);
  run("bilinear", mixed, 0.5 + 2e-4, warp<2, CONSTANT>, 1);
  run("bilinear, words", mixed, 0.5 + 2e-4, warp_words<CONSTANT>, 4);
}
