// What goes wrong in a bilinear resize, one mistake at a time.
//
// Without any, the kernel writes what resize_bilinear writes, in fp32 and not
// rounded. Mistakes, bits of `wrong`:
//   1  an output pixel's corner is looked up instead of its center
//   2  the first pixel is the nearest one, not the one before
//   4  the weights of the pixel to the right and of the one below are exchanged
// A pixel beyond the image is replaced by its last one, whose weight then is
// not 0: memory behind an image is never read.

// --8<-- [start:formula]
constexpr int CORNER = 1, NEAREST = 2, EXCHANGED = 4;

__device__ int kept(int i, int n) { return min(max(i, 0), n - 1); }

extern "C" __global__ void resize_wrong(float* __restrict__ out,
                                        const unsigned char* __restrict__ image,
                                        int out_height, int out_width,
                                        int height, int width, int wrong) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= out_width || y >= out_height) return;
  const float half = wrong & CORNER ? 0.0f : 0.5f;
  // Rounded after each step, as NumPy does, so that both see the same pixels.
  const float at_y = __fmul_rn(y + half, (float)height / out_height) - half;
  const float at_x = __fmul_rn(x + half, (float)width / out_width) - half;
  const float y1 = wrong & NEAREST ? roundf(at_y) : floorf(at_y);
  const float x1 = wrong & NEAREST ? roundf(at_x) : floorf(at_x);
  const float down = at_y - y1, across = at_x - x1;  // 0 to 1, if by floorf
  float right = across * (1 - down), below = (1 - across) * down;
  if (wrong & EXCHANGED) {
    const float t = right;
    right = below, below = t;
  }
  const float weights[4] = {(1 - across) * (1 - down), right, below,
                            across * down};
  for (int c = 0; c < 3; ++c) {
    float sum = 0;
    for (int i = 0; i < 4; ++i) {
      const long long row = kept((int)y1 + i / 2, height);
      const int column = kept((int)x1 + i % 2, width);
      sum += weights[i] * image[(row * width + column) * 3 + c];
    }
    out[((long long)y * out_width + x) * 3 + c] = sum;
  }
}
// --8<-- [end:formula]
