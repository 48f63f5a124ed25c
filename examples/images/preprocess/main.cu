// Photographs of different sizes become the input of a network, planes of
// one size in bf16: in four launches, in one, and by dot products of bytes.
#include "cpp/host.cuh"
#include "images/preprocess/dots.cu"
#include "images/preprocess/pixel.cu"
namespace in_steps {  // which has a `between` of its own
#include "images/preprocess/steps.cu"
}

int main() {
  const int sizes[][2] = {{1080, 1920}, {1281, 721},  {3000, 4001},
                          {333, 500},   {2048, 2048}, {640, 480},
                          {1, 1},       {1200, 1601}};
  const int count = sizeof sizes / sizeof sizes[0], height = 637, width = 644;
  const double mean[] = {0.485, 0.456, 0.406},
               deviation[] = {0.229, 0.224, 0.225};
  const int border = 114;
  std::vector<Image> table;
  long long bytes = 0;
  for (auto [h, w] : sizes) {
    const double scale = std::min((double)height / h, (double)width / w);
    const int high = std::max(1L, std::lround(h * scale)),
              wide = std::max(1L, std::lround(w * scale));
    table.push_back({bytes, h, w, (height - high) / 2, (width - wide) / 2, high,
                     wide, (double)h / high, (double)w / wide});
    bytes += (3LL * h * w + 15) / 16 * 16;
  }
  std::vector<unsigned char> host(bytes + 12);  // the last words reach beyond
  std::generate(host.begin(), host.end(), std::mt19937(1));

  // Blue is the first channel of a photograph, and the last plane.
  std::vector<double> wanted;
  for (const Image& image : table)
    for (int c = 0; c < 3; ++c)
      for (int i = 0; i < height * width; ++i) {
        const int row = i / width - image.top, column = i % width - image.left;
        double v = border;
        if (row >= 0 && row < image.new_height && column >= 0 &&
            column < image.new_width) {
          const auto kept = [](double at, int n) {
            return std::min(std::max(at - 0.5, 0.0), n - 1.0);
          };
          const double y = kept((row + 0.5) * image.down, image.height),
                       x = kept((column + 0.5) * image.across, image.width);
          const int right = x < image.width - 1 ? 3 : 0;
          const unsigned char* up =
              &host[image.first +
                    3 * ((long long)y * image.width + (long long)x) + 2 - c];
          const unsigned char* low =
              up + (y < image.height - 1 ? 3 * image.width : 0);
          const double s = x - (int)x, t = y - (int)y;
          v = (1 - t) * ((1 - s) * up[0] + s * up[right]) +
              t * ((1 - s) * low[0] + s * low[right]);
        }
        wanted.push_back((v / 255 - mean[c]) / deviation[c]);
      }

  Array<unsigned char> pixels(host), first(wanted.size()), second(first.size());
  Array<Image> images(table);
  Array<float> third(wanted.size());
  Array<__nv_bfloat16> out(wanted.size());
  const auto run = [&](const char* name, double off, auto launch) {
    MUST(cudaMemset(out, 0xff, out.bytes()));
    launch();
    MUST(cudaGetLastError());
    std::vector<float> got;
    for (__nv_bfloat16 x : out.host()) got.push_back(__bfloat162float(x));
    check(name, got, wanted, off, 0x1p-8);  // bf16 has 8 bits
    const double us = time_us(launch);
    std::printf("%-13s %8.1f us, %4.1f us for an image\n", name, us,
                us / count);
  };
  Normalize normalize;
  Scale scale;
  for (int c = 0; c < 3; ++c) {
    const double by = 1 / (255 * deviation[c]), plus = -mean[c] / deviation[c];
    normalize.by[c] = by, normalize.plus[c] = plus;
    // A sum is ONE for each level, and 2^23 more.
    scale.by[c] = by / ONE, scale.plus[c] = plus - 0x1p23 / ONE * by;
    scale.border[c] = border * by + plus;
  }
  normalize.border = border, scale.outside = ZERO + border * ONE;

  const dim3 block(ACROSS, DOWN);
  const auto grid = [&](int high, int wide) {
    return dim3((width + wide - 1) / wide, (height + high - 1) / high, count);
  };
  // Positions in fp32 are off by some 2^-12 of a pixel. Between the launches
  // values are rounded to bytes: half of one is a hundredth.
  run("four launches", 0.012, [&] {
    using namespace in_steps;
    const int plane = height * width, all = (count * plane + 255) / 256;
    step_resize<<<grid(DOWN, ACROSS), block>>>(pixels, images, border, height,
                                               width, first);
    step_swap<<<all, 256>>>(first, second, count * plane);
    step_normalize<<<all, 256>>>(second, third, normalize, count * plane);
    step_planes<<<dim3((plane + 255) / 256, count), 256>>>(third, out, plane);
  });
  run("one", 4e-3, [&] {
    letterbox_pixel<<<grid(DOWN, ACROSS), block>>>(pixels, images, normalize,
                                                   height, width, out);
  });
  run("one, by dots", 1e-3, [&] {
    letterbox_dots<<<grid(HIGH, WIDE), block>>>(pixels, images, scale, height,
                                                width, out);
  });
}
