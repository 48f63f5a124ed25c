# ---
# jupyter:
#   cudatut:
#     title: {en: "Nine index formulas: solutions", zh: "九个索引公式：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
#     sizes:
#       n: [2147483655, 4103]
# ---

# %% [markdown]
# Two images with rows of different lengths; an id turned into three indices; and more
# elements than an `int` can count.

# %% given-1
import cudatut as ct

image = ct.rng(0).random((123, 456), dtype="float32")
rectangles = [
    (0, 0, 123, 456),
    (100, 400, 23, 56),
    (7, 31, 1, 33),
    (5, 6, 40, 1),
]

# %% solution-1
source = """
__global__ void crop(const float *in, float *out, int columns,
                     int top, int left, int height, int width) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  const int r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= height || c >= width) return;
  const long long from = (long long)(top + r) * columns + left + c;
  out[(long long)r * width + c] = in[from];
}
"""
crop = ct.Kernel(source, "crop")

# %% check-1
d_image, columns = ct.to_device(image), image.shape[1]
for top, left, height, width in rectangles:
    out = ct.empty((height, width), "float32")
    grid = ct.cdiv(width, 32), ct.cdiv(height, 8)
    rectangle = top, left, height, width
    crop(d_image, out, columns, *rectangle, grid=grid, block=(32, 8))
    expected = image[top : top + height, left : left + width]
    ct.check(out, expected, name=f"{height} x {width}", rtol=0, atol=0)

# %% given-2
import cudatut as ct

shapes = [(1, 1, 1), (2, 3, 5), (31, 1, 33), (7, 64, 9), (101, 103, 107)]

# %% solution-2
source = """
__global__ void permute(const float *in, float *out, int Z, int Y, int X) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)Z * Y * X) return;
  const long long x = i % X;  // the index that changes fastest
  const long long y = i / X % Y;
  const long long z = i / X / Y;
  out[(x * Z + z) * Y + y] = in[i];
}
"""
permute = ct.Kernel(source, "permute")

# %% check-2
for shape in shapes:
    volume = ct.rng(0).standard_normal(shape, dtype="float32")
    expected = volume.transpose(2, 0, 1)
    d_volume, out = ct.to_device(volume), ct.empty(expected.shape, "float32")
    grid = ct.cdiv(volume.size, 256)
    permute(d_volume, out, *shape, grid=grid, block=256)
    ct.check(out, expected, name=" x ".join(map(str, shape)), rtol=0, atol=0)

# %% given-3
import cudatut as ct

n = 2**31 + 7
ends = slice(0, 2000), slice(n // 2 - 1000, n // 2 + 1000), slice(n - 2000, n)
x, out = ct.empty(n, "uint8"), ct.empty(n, "uint8")
for part in ends:
    x[part].set(ct.rng(part.start).integers(0, 256, 2000, dtype="uint8"))

# %% solution-3
source = """
__global__ void invert(const unsigned char *in, unsigned char *out,
                       long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 255 - in[i];
}
"""
invert = ct.Kernel(source, "invert")

# %% check-3
invert(x, out, n, grid=ct.cdiv(n, 256), block=256)
for part in ends:
    name = f"bytes {part.start} to {part.stop - 1}"
    ct.check(out[part], 255 - x[part].get(), name=name)
