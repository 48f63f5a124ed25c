# ---
# jupyter:
#   cudatut:
#     title: {en: "Pixels: solutions", zh: "像素：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# A gray image in a grid over it; a quarter turn, whose threads lie over the
# output; and three channels put together, a word of each.

# %% given-1
import numpy as np
import cudatut as ct

# %% solution-1
gray = ct.Kernel(
    """
__global__ void gray(unsigned char* out, const unsigned char* image,
                     int height, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  long long pixel = (long long)y * width + x;
  const unsigned char* rgb = image + 3 * pixel;
  out[pixel] = (77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8;
}
""",
    "gray",
)


def over(height, width):
    return (ct.cdiv(width, 32), ct.cdiv(height, 8)), (32, 8)


# %% check-1
import cudatut as ct

for height, width in ((1, 1), (7, 5), (8, 32), (33, 31), (257, 1023)):
    image = ct.rng(height).integers(0, 255, (height, width, 3), np.uint8)
    light = (image.astype(int) @ (77, 150, 29) + 128) // 256
    out = ct.empty((height, width), "uint8")
    grid, block = over(height, width)
    gray(out, ct.to_device(image), height, width, grid=grid, block=block)
    ct.check(out, light, name=f"{height} x {width}", rtol=0, atol=0)

# %% given-2
import numpy as np
import cudatut as ct

# %% solution-2
turn = ct.Kernel(
    """
__global__ void turn(unsigned char* out, const unsigned char* image,
                     int height, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;  // of the output
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= height || y >= width) return;
  // Row y of the output is column y of the image, from below.
  long long from = (long long)(height - 1 - x) * width + y;
  long long to = (long long)y * height + x;
  for (int c = 0; c < 3; c++) out[3 * to + c] = image[3 * from + c];
}
""",
    "turn",
)

# %% check-2
import cudatut as ct

for height, width in ((1, 1), (1, 5), (7, 1), (33, 31), (100, 257)):
    image = ct.rng(height).integers(0, 255, (height, width, 3), np.uint8)
    out = ct.empty((width, height, 3), "uint8")
    grid = (ct.cdiv(height, 32), ct.cdiv(width, 8))
    turn(out, ct.to_device(image), height, width, grid=grid, block=(32, 8))
    turned = np.rot90(image, -1)
    ct.check(out, turned, name=f"{height} x {width}", rtol=0, atol=0)

# %% given-3
import numpy as np
import cudatut as ct

# %% solution-3
to_hwc_four = ct.Kernel(
    """
__global__ void to_hwc_four(unsigned* out, const unsigned* planes,
                            int pixels) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;  // four pixels
  int words = pixels / 4;
  if (i >= words) return;
  unsigned r = planes[i], g = planes[words + i], b = planes[2 * words + i];
  // In memory: R0 G0 B0 R1, G1 B1 R2 G2, B2 R3 G3 B3.
  out[3 * i] = __byte_perm(__byte_perm(r, g, 0x1040), b, 0x3410);
  out[3 * i + 1] = __byte_perm(__byte_perm(r, g, 0x6205), b, 0x3250);
  out[3 * i + 2] = __byte_perm(__byte_perm(r, g, 0x0730), b, 0x7216);
}
""",
    "to_hwc_four",
)

# %% check-3
import cudatut as ct

for pixels in (4, 12, 1_020, 1_024, 100_000):
    planes = ct.rng(pixels).integers(0, 255, (3, pixels), np.uint8)
    words = planes.view("uint32")  # of each channel pixels / 4
    out = ct.empty((pixels // 4, 3), "uint32")
    blocks = ct.cdiv(pixels // 4, 256)
    to_hwc_four(out, ct.to_device(words), pixels, grid=blocks, block=256)
    wanted = np.ascontiguousarray(planes.T).reshape(-1).view("uint32")
    ct.check(
        out, wanted.reshape(-1, 3), name=f"{pixels} pixels", rtol=0, atol=0
    )
