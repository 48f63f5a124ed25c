# ---
# jupyter:
#   cudatut:
#     title: {en: "Direct convolution: solutions", zh: "直接卷积：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# An index map with dilation, a pitch without bank conflicts, and a blur in two
# passes.

# %% given-1
import cudatut as ct

# %% solution-1
filter_image = ct.Kernel(
    """
__global__ void filter_image(const float* image, const float* filter,
                             float* out, int high, int wide, int rows,
                             int columns, int out_high, int out_wide,
                             int stride, int pad, int dilation_y,
                             int dilation_x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= out_high * out_wide) return;
  float sum = 0;
  for (int r = 0; r < rows; ++r) {
    for (int q = 0; q < columns; ++q) {
      const int y = i / out_wide * stride - pad + r * dilation_y;
      const int x = i % out_wide * stride - pad + q * dilation_x;
      if (y >= 0 && y < high && x >= 0 && x < wide)
        sum += image[y * wide + x] * filter[r * columns + q];
    }
  }
  out[i] = sum;
}
""",
    "filter_image",
)

# %% check-1
import cudatut as ct
from cudatut.book.images.shapes import Shape, reference

for shape in (
    Shape(1, 1, 9, 11, 1, (3, 3), dilation=(2, 3)),
    Shape(1, 1, 33, 40, 1, (5, 3), (2, 2), (4, 4), (2, 1)),
    Shape(1, 1, 1, 1, 1, (3, 3), (1, 1), (9, 9), (9, 9)),
):
    rng = ct.rng(0)
    of_image = 1, 1, shape.height, shape.width
    image = rng.integers(-4, 5, of_image).astype("float32")
    window = rng.integers(1, 5, (1, 1, *shape.window)).astype("float32")
    out = ct.empty((1, 1, *shape.out), "float32")
    ct.poison(out)
    filter_image(
        ct.to_device(image), ct.to_device(window), out,
        *image.shape[2:], *shape.window, *shape.out,
        shape.stride[0], shape.pad[0], *shape.dilation,
        grid=ct.cdiv(out.size, 256), block=256,
    )  # fmt: skip
    expected = reference(shape, image, window)
    ct.check(out, expected, name=f"dilation {shape.dilation}", rtol=0)

# %% given-2
import cudatut as ct


# %% solution-2
def pitch(least, wide, down):
    while True:
        banks = {
            (lane // wide * down * least + lane % wide) % 32
            for lane in range(32)
        }
        if len(banks) == 32:
            return least
        least += 1


# %% check-2
import cudatut as ct
from cudatut.book.images.direct.launch import pitch_of

CASES = [(10, 8, 7), (12, 8, 1), (34, 32, 8), (18, 16, 7), (40, 8, 3)]
found = [pitch(*case) for case in CASES]
expected = [pitch_of(*case) for case in CASES]
ct.check(found, expected, name="pitches", rtol=0)

# %% given-3
import cudatut as ct

# %% solution-3
blur = ct.Kernel(
    """
__constant__ float weights[5] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};

extern "C" __global__ void blur(const float* in, float* out, int high, int wide,
                                int step_y, int step_x) {
  const int x = blockIdx.x * 32 + threadIdx.x;
  const int y = blockIdx.y * 8 + threadIdx.y;
  if (x >= wide || y >= high) return;
  float sum = 0;
  for (int i = 0; i < 5; ++i) {
    const int from_y = y + (i - 2) * step_y, from_x = x + (i - 2) * step_x;
    if (from_y >= 0 && from_y < high && from_x >= 0 && from_x < wide)
      sum += in[from_y * wide + from_x] * weights[i];
  }
  out[y * wide + x] = sum;
}
""",
    "blur",
)

# %% check-3
import numpy as np
import cudatut as ct
from cudatut.book.images.shapes import Shape, reference

row = np.array([1, 4, 6, 4, 1])
gauss = (np.outer(row, row) / 256).astype("float32").reshape(1, 1, 5, 5)
for high, wide in ((1, 1), (3, 70), (100, 33)):
    image = ct.rng(1).integers(0, 256, (1, 1, high, wide)).astype("float32")
    given, half = ct.to_device(image[0, 0]), ct.empty((high, wide), "float32")
    out = ct.empty((high, wide), "float32")
    ct.poison(half)
    ct.poison(out)
    grid = ct.cdiv(wide, 32), ct.cdiv(high, 8)
    blur(given, half, high, wide, 0, 1, grid=grid, block=(32, 8))
    blur(half, out, high, wide, 1, 0, grid=grid, block=(32, 8))
    shape = Shape(1, 1, high, wide, 1, (5, 5), pad=(2, 2))
    # Levels and weights are multiples of 1 / 256: nothing is rounded.
    expected = reference(shape, image, gauss)[0, 0]
    ct.check(out, expected, name=f"{high} x {wide}", rtol=0)
