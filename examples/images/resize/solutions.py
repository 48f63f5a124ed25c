# ---
# jupyter:
#   cudatut:
#     title: {en: "Resize: solutions", zh: "缩放：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# The nearest pixel without a float; means of areas, which miss nothing; and the
# way back from a letterbox.

# %% given-1
import numpy as np
import cudatut as ct

# %% solution-1
nearest = ct.Kernel(
    """
__device__ int place(int x, int n, int to) {
  return (int)((2LL * x + 1) * n / (2LL * to));
}

__global__ void nearest(unsigned char* out, const unsigned char* image,
                        int rows, int columns, int height, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= columns || y >= rows) return;
  long long row = place(y, height, rows);
  out[(long long)y * columns + x] =
      image[row * width + place(x, width, columns)];
}
""",
    "nearest",
)

# %% check-1
import cudatut as ct
from cudatut.book.images.resize import reference

for size in ((1, 1), (7, 5), (100, 257), (3, 70_000)):
    image = ct.rng(size[1]).integers(0, 255, size, np.uint8)
    for rows, columns in ((1, 1), (9, 3), (33, 31), (2, 60_001)):
        out = ct.empty((rows, columns), "uint8")
        nearest(
            out, ct.to_device(image), rows, columns, *size,
            grid=(ct.cdiv(columns, 32), ct.cdiv(rows, 8)), block=(32, 8),
        )  # fmt: skip
        wanted = reference.resize_nearest(image, rows, columns)
        name = f"{size[0]} x {size[1]} to {rows} x {columns}"
        ct.check(out, wanted, name=name, rtol=0, atol=0)

# %% given-2
import numpy as np
import cudatut as ct

# %% solution-2
shrink = ct.Kernel(
    """
__global__ void shrink(unsigned char* out, const unsigned char* image,
                       int rows, int columns, int k) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= columns || y >= rows) return;
  unsigned sum = 0;
  for (int i = 0; i < k; i++)
    for (int j = 0; j < k; j++)
      sum += image[((long long)y * k + i) * columns * k + (long long)x * k + j];
  out[(long long)y * columns + x] = (2 * sum + k * k) / (2 * k * k);
}
""",
    "shrink",
)

# %% check-2
import cudatut as ct
from cudatut.book.images.resize import reference

for rows, columns, k in ((1, 1, 1), (5, 7, 2), (33, 31, 3), (8, 65, 10)):
    image = ct.rng(k).integers(0, 255, (rows * k, columns * k), np.uint8)
    blocks = image.astype(int).reshape(rows, k, columns, k)
    sums = blocks.sum(axis=(1, 3))
    wanted = (2 * sums + k * k) // (2 * k * k)
    out = ct.empty((rows, columns), "uint8")
    grid = (ct.cdiv(columns, 32), ct.cdiv(rows, 8))
    x = ct.to_device(image)
    shrink(out, x, rows, columns, k, grid=grid, block=(32, 8))
    ct.check(out, wanted, name=f"k = {k}", rtol=0, atol=0)
    if k == 2:  # then it is what the bilinear resize does
        three = image[:, :, None].repeat(3, axis=2)
        values = reference.resize_bilinear(three, rows, columns)[:, :, 0]
        ct.check(values, sums / 4, name="bilinear", rtol=0, atol=0)

# %% given-3
import numpy as np
import cudatut as ct

# %% solution-3
back = ct.Kernel(
    """
__device__ float moved(float at, int from, int n, int to) {
  float there = (at - from) * n / to;
  return fminf(fmaxf(there, 0), n);
}

__global__ void back(float4* out, const float4* boxes, int n, int height,
                     int width, int new_height, int new_width, int top,
                     int left) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 box = boxes[i];
  out[i] = {moved(box.x, left, width, new_width),
            moved(box.y, top, height, new_height),
            moved(box.z, left, width, new_width),
            moved(box.w, top, height, new_height)};
}
""",
    "back",
)

# %% check-3
import cudatut as ct
from cudatut.book.images.resize import reference

for height, width in ((480, 640), (1080, 1920), (50, 3)):
    placed = reference.placed(height, width, 640, 640)
    new_height, new_width, top, left = placed
    for n in (1, 33, 1_000):
        boxes = (700 * ct.rng(n).random((n, 4), "float32")) - 30
        out = ct.empty((n, 4), "float32")
        back(
            out, ct.to_device(boxes), n, height, width, *placed,
            grid=ct.cdiv(n, 256), block=256,
        )  # fmt: skip
        exact = boxes.astype("float64")
        scale = np.array([width / new_width, height / new_height] * 2)
        exact = (exact - [left, top, left, top]) * scale
        exact = np.clip(exact, 0, [width, height, width, height])
        ct.check(out, exact, name=f"{n} boxes", rtol=1e-5, atol=1e-3)
