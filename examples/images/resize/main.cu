// A photograph becomes smaller and larger: by the nearest pixel, between four
// of them, and in a frame, without a change of its shape.
#include "cpp/host.cuh"
#include "images/resize/resize.cu"
#include "images/resize/rows.cu"
constexpr int ROWS_APART = ROWS;
#undef ROWS
namespace growing {  // whose threads have more rows, that lie together
#include "images/resize/kept.cu"
}

// An image of height x width in a frame of high x wide.
void resize(int height, int width, int high, int wide) {
  std::printf("%d x %d to %d x %d\n", height, width, high, wide);
  std::vector<unsigned char> host((size_t)3 * height * width);
  std::generate(host.begin(), host.end(), std::mt19937(1));
  Array<unsigned char> image(host), out((size_t)3 * high * wide);

  // The centers of pixels lie at halves. Beyond the outermost ones the first
  // and the last pixel go on.
  const auto at = [&](double y, double x, int c) {
    y = std::min(std::max(y - 0.5, 0.0), height - 1.0);
    x = std::min(std::max(x - 0.5, 0.0), width - 1.0);
    const int i = (int)y, j = (int)x;
    const auto along = [&](int i) {
      const unsigned char* pixel = &host[3 * ((size_t)i * width + j) + c];
      return pixel[0] + (x - j) * (pixel[j < width - 1 ? 3 : 0] - pixel[0]);
    };
    return along(i) + (y - i) * (along(std::min(i + 1, height - 1)) - along(i));
  };
  const auto axis = [](int n, int to) {
    return Axis{n, to, (float)((double)n / to), (float)(0.5 / to)};
  };
  const auto run = [&](const char* name, const std::vector<double>& wanted,
                       double off, dim3 of_block, auto kernel, auto... sizes) {
    const dim3 grid((wide + of_block.x - 1) / of_block.x,
                    (high + of_block.y - 1) / of_block.y);
    const auto launch = [&] {
      kernel<<<grid, dim3(32, 8)>>>(out, image, sizes...);
    };
    MUST(cudaMemset(out, 0, out.bytes()));
    launch();
    MUST(cudaGetLastError());
    check(name, out.host(), wanted, off);
    const double us = time_us(launch);
    std::printf("%-15s %7.1f us, %5.1f billion pixels a second\n", name, us,
                high * wide / us / 1e3);
  };

  std::vector<double> nearest, whole, framed;
  const double scale = std::min((double)high / height, (double)wide / width);
  const int rows = std::lround(height * scale), top = (high - rows) / 2;
  const int columns = std::lround(width * scale), left = (wide - columns) / 2;
  const int border = 114;
  for (int i = 0; i < high; ++i)
    for (int j = 0; j < wide; ++j)
      for (int c = 0; c < 3; ++c) {
        const size_t y = (2LL * i + 1) * height / (2 * high),
                     x = (2LL * j + 1) * width / (2 * wide);
        nearest.push_back(host[3 * (y * width + x) + c]);
        whole.push_back(
            at((i + 0.5) * height / high, (j + 0.5) * width / wide, c));
        const int k = i - top, l = j - left;
        const bool in = k >= 0 && k < rows && l >= 0 && l < columns;
        framed.push_back(
            in ? at((k + 0.5) * height / rows, (l + 0.5) * width / columns, c)
               : border);
      }

  // Rounded to a byte, of a value that fp32 has to within 1e-4.
  const double off = 0.5 + 1e-4;
  const dim3 one(32, 8);
  const Axis down = axis(height, high), across = axis(width, wide);
  run("nearest", nearest, 0, one, resize_nearest, down, across);
  run("bilinear", whole, off, one, resize_bilinear, down, across);
  const Axis in_down = axis(height, rows), in_across = axis(width, columns);
  const auto frame = [&](const char* name, dim3 of_block, auto kernel) {
    run(name, framed, off, of_block, kernel, in_down, in_across, high, wide,
        top, left, border);
  };
  frame("frame", one, letterbox);
  frame("frame, rows", dim3(32 * PIXELS, 8 * ROWS_APART), letterbox_rows);
  frame("frame, kept", dim3(32 * PIXELS, 8 * ROWS), growing::letterbox_kept);
}

int main() {
  resize(2160, 3841, 1281, 1278);
  resize(721, 1279, 1301, 2558);
}
