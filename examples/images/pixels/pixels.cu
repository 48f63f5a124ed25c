// An image in memory: rows of pixels, and of each pixel three bytes.

// HWC: the three values of a pixel lie beside each other.
__device__ long long hwc(int y, int x, int c, int width) {
  return ((long long)y * width + x) * 3 + c;
}

// CHW: each channel is an image of its own.
__device__ long long chw(int y, int x, int c, int height, int width) {
  return ((long long)c * height + y) * width + x;
}

// A thread for each pixel, in a grid over the image: x along a row, y down.
extern "C" __global__ void swap_channels(unsigned char* out,
                                         const unsigned char* image, int height,
                                         int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) {
    for (int c = 0; c < 3; c++)
      out[hwc(y, x, 2 - c, width)] = image[hwc(y, x, c, width)];
  }
}

// The same pixels, each channel by itself.
extern "C" __global__ void to_chw(unsigned char* out,
                                  const unsigned char* image, int height,
                                  int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) {
    for (int c = 0; c < 3; c++)
      out[chw(y, x, c, height, width)] = image[hwc(y, x, c, width)];
  }
}

// A thread for four pixels: 12 bytes are three words of four bytes.
// Both arrays begin at a multiple of four bytes.
extern "C" __global__ void swap_four(unsigned* out, const unsigned* image,
                                     long long pixels) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (4 * i + 3 < pixels) {
    unsigned a = image[3 * i], b = image[3 * i + 1], c = image[3 * i + 2];
    // In memory: a = B0 G0 R0 B1, b = G1 R1 B2 G2, c = R2 B3 G3 R3.
    out[3 * i] = __byte_perm(a, b, 0x5012);
    out[3 * i + 1] = __byte_perm(__byte_perm(a, b, 0x7034), c, 0x3410);
    out[3 * i + 2] = __byte_perm(b, c, 0x5672);
  } else if (4 * i < pixels) {
    const unsigned char* from = (const unsigned char*)image;
    unsigned char* to = (unsigned char*)out;
    for (long long p = 4 * i; p < pixels; p++)
      for (int k = 0; k < 3; k++) to[3 * p + 2 - k] = from[3 * p + k];
  }
}
