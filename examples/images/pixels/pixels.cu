// An image in memory: rows of pixels, and of each pixel three bytes.

// --8<-- [start:layouts]
// HWC: the three values of a pixel lie beside each other.
__device__ long long hwc(int y, int x, int c, int width) {
  return ((long long)y * width + x) * 3 + c;
}

// CHW: each channel is an image of its own.
__device__ long long chw(int y, int x, int c, int height, int width) {
  return ((long long)c * height + y) * width + x;
}
// --8<-- [end:layouts]

// --8<-- [start:swap]
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
// --8<-- [end:swap]

// --8<-- [start:turned]
// The same with the grid turned: x counts rows, as in image[x][y].
extern "C" __global__ void swap_turned(unsigned char* out,
                                       const unsigned char* image, int height,
                                       int width) {
  int y = blockIdx.x * blockDim.x + threadIdx.x;
  int x = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) {
    for (int c = 0; c < 3; c++)
      out[hwc(y, x, 2 - c, width)] = image[hwc(y, x, c, width)];
  }
}
// --8<-- [end:turned]

// --8<-- [start:chw]
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
// --8<-- [end:chw]

// --8<-- [start:words]
// Four pixels: 12 bytes are three words of four bytes.
struct Four {
  unsigned a, b, c;  // in memory: B0 G0 R0 B1, G1 R1 B2 G2, R2 B3 G3 R3
};

__device__ __forceinline__ Four swapped(Four p) {
  return {__byte_perm(p.a, p.b, 0x5012),
          __byte_perm(__byte_perm(p.a, p.b, 0x7034), p.c, 0x3410),
          __byte_perm(p.b, p.c, 0x5672)};
}
// --8<-- [end:words]

// --8<-- [start:four]
// A thread for four pixels. Both arrays begin at a multiple of four bytes.
extern "C" __global__ void swap_four(unsigned* out, const unsigned* image,
                                     long long pixels) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (4 * i + 3 < pixels) {
    Four s = swapped({image[3 * i], image[3 * i + 1], image[3 * i + 2]});
    out[3 * i] = s.a, out[3 * i + 1] = s.b, out[3 * i + 2] = s.c;
  } else if (4 * i < pixels) {  // the last one to three
    const unsigned char* from = (const unsigned char*)image;
    unsigned char* to = (unsigned char*)out;
    for (long long p = 4 * i; p < pixels; p++)
      for (int k = 0; k < 3; k++) to[3 * p + 2 - k] = from[3 * p + k];
  }
}
// --8<-- [end:four]

// --8<-- [start:planes]
// One channel of four pixels as a word.
__device__ __forceinline__ unsigned plane(Four p, int channel) {
  if (channel == 0)
    return __byte_perm(__byte_perm(p.a, p.b, 0x0630), p.c, 0x5210);
  if (channel == 1)
    return __byte_perm(__byte_perm(p.a, p.b, 0x0741), p.c, 0x6210);
  return __byte_perm(__byte_perm(p.a, p.b, 0x0052), p.c, 0x7410);
}

// As to_chw, a thread for four pixels. Both arrays begin at a multiple of four
// bytes; a channel does, too, if the number of pixels is a multiple of four.
extern "C" __global__ void to_chw_four(unsigned char* out,
                                       const unsigned* image,
                                       long long pixels) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (4 * i >= pixels) return;
  if (pixels % 4 == 0) {
    Four p = {image[3 * i], image[3 * i + 1], image[3 * i + 2]};
#pragma unroll
    for (int c = 0; c < 3; c++)
      ((unsigned*)(out + c * pixels))[i] = plane(p, c);
  } else {
    const unsigned char* from = (const unsigned char*)image;
    for (long long p = 4 * i; p < min(4 * i + 4, pixels); p++)
      for (int c = 0; c < 3; c++) out[c * pixels + p] = from[3 * p + c];
  }
}
// --8<-- [end:planes]

// --8<-- [start:sixteen]
// A thread for 16 pixels: three loads of 16 bytes, 48 bytes. Both arrays begin
// at a multiple of 16 bytes.
extern "C" __global__ void swap_sixteen(uint4* out, const uint4* image,
                                        long long pixels) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (16 * i + 15 < pixels) {
    uint4 a = image[3 * i], b = image[3 * i + 1], c = image[3 * i + 2];
    Four s = swapped({a.x, a.y, a.z}), t = swapped({a.w, b.x, b.y});
    Four u = swapped({b.z, b.w, c.x}), v = swapped({c.y, c.z, c.w});
    out[3 * i] = {s.a, s.b, s.c, t.a};
    out[3 * i + 1] = {t.b, t.c, u.a, u.b};
    out[3 * i + 2] = {u.c, v.a, v.b, v.c};
  } else if (16 * i < pixels) {  // the last one to 15
    const unsigned char* from = (const unsigned char*)image;
    unsigned char* to = (unsigned char*)out;
    for (long long p = 16 * i; p < pixels; p++)
      for (int k = 0; k < 3; k++) to[3 * p + 2 - k] = from[3 * p + k];
  }
}
// --8<-- [end:sixteen]

// --8<-- [start:brighter]
// More light: `add` on each byte. With `keep`, what is above 255 becomes 255.
extern "C" __global__ void brighter(unsigned char* out,
                                    const unsigned char* image, long long bytes,
                                    int add, int keep) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < bytes) {
    int light = image[i] + add;               // an int: up to 510
    out[i] = keep ? min(light, 255) : light;  // a byte: the last eight bits
  }
}
// --8<-- [end:brighter]
