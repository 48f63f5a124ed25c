# ---
# jupyter:
#   cudatut:
#     title: {en: "Affine warp: solutions", zh: "仿射变换：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# A warp to the nearest pixel; a border that mirrors the edge, too; and the
# matrix of a letterbox.

# %% given-1
import numpy as np
import cudatut as ct

# %% solution-1
place = ct.Kernel(
    """
__global__ void place(unsigned char* out, const unsigned char* image,
                      float a, float b, float c, float d, float e, float f,
                      int out_height, int out_width, int height, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= out_width || y >= out_height) return;
  int column = (int)floorf(a * x + b * y + c + 0.5f);
  int row = (int)floorf(d * x + e * y + f + 0.5f);
  bool on = column >= 0 && column < width && row >= 0 && row < height;
  out[y * out_width + x] = on ? image[row * width + column] : 0;
}
""",
    "place",
)

# %% check-1
import cudatut as ct

# Maps whose positions are exact in fp32: a shift, a quarter turn, a stretch.
MAPS = (
    (1, 0, 3, 0, 1, -2),
    (0, 1, 0, -1, 0, 40),
    (0.5, 0, 0.25, 0, 2, 0.25),
    (1, 0.5, -10, 0.25, 1, 100),
)
for height, width in ((1, 1), (7, 50), (41, 33)):
    image = ct.rng(height).integers(1, 200, (height, width), "uint8")
    for a, b, c, d, e, f in MAPS:
        y, x = np.mgrid[:45, :70]
        column = np.floor(a * x + b * y + c + 0.5).astype(int)
        row = np.floor(d * x + e * y + f + 0.5).astype(int)
        on = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        wanted = np.where(on, image[row * on, column * on], 0).astype("uint8")
        out = ct.empty((45, 70), "uint8")
        ct.poison(out, 201)
        six = [np.float32(v) for v in (a, b, c, d, e, f)]
        place(
            out, ct.to_device(image), *six, 45, 70, height, width,
            grid=(ct.cdiv(70, 16), ct.cdiv(45, 16)), block=(16, 16),
        )  # fmt: skip
        ct.check(out, wanted, name=f"{height} x {width}", rtol=0)

# %% given-2
import numpy as np
import cudatut as ct

# %% solution-2
around = ct.Kernel(
    """
__device__ int inside(int i, int n) {
  int r = i % (2 * n);    // the pattern repeats after 2 n pixels
  if (r < 0) r += 2 * n;  // % keeps the sign of i
  return r < n ? r : 2 * n - 1 - r;
}

__global__ void around(int* out, int from, int count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = inside(from + i, n);
}
""",
    "around",
)

# %% check-2
import cudatut as ct

for n in (1, 2, 3, 4, 17):
    count = 9 * n
    out = ct.empty(count, "int32")
    around(out, -4 * n, count, n, grid=ct.cdiv(count, 64), block=64)
    wanted = np.pad(np.arange(n), 4 * n, "symmetric")
    ct.check(out, wanted.astype("int32"), name=f"n = {n}", rtol=0)

# %% given-3
import numpy as np
import cudatut as ct
from cudatut.book.images.resize.reference import placed
from cudatut.book.images.resize.reference import letterbox as by_resize
from cudatut.book.images.warp import reference, warp


# %% solution-3
def letterbox(height, width, side):
    high, wide, top, left = placed(height, width, side, side)
    across, down = wide / width, high / height
    # The edge at -0.5 goes to across * -0.5 + shift, which is left - 0.5.
    return [
        [across, 0, left - 0.5 + 0.5 * across],
        [0, down, top - 0.5 + 0.5 * down],
    ]


# %% check-3
import cudatut as ct

for height, width in ((50, 33), (33, 50), (200, 90), (20, 90)):
    image = ct.rng(height).integers(0, 200, (height, width, 3), "uint8")
    side = 64
    high, wide, top, left = placed(height, width, side, side)
    out = ct.empty((side, side, 3), "uint8")
    ct.poison(out, 201)
    warp.warp(ct.to_device(image), out, letterbox(height, width, side))()
    # Where the picture is enlarged, its border is mixed into the rim.
    rim = ct.cdiv(max(high, wide), 2 * min(height, width))
    rows = np.s_[top + rim : top + high - rim]
    columns = np.s_[left + rim : left + wide - rim]
    got = out.get()[rows, columns]
    values = by_resize(image, side, side, border=0)[rows, columns]
    wanted = reference.rounded(values, got, 1e-3)
    ct.check(got, wanted, name=f"{height} x {width} pixels", rtol=0)
