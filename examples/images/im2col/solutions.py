# ---
# jupyter:
#   cudatut:
#     title: {en: "im2col and GEMM: solutions", zh: "im2col 与 GEMM：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# How many images fit, im2col of images whose channels lie last, and the way
# back without atomics.

# %% given-1
import cudatut as ct


# %% solution-1
def fitting(shape, room):
    rows = shape.channels * shape.window[0] * shape.window[1]
    columns = room // (4 * rows) // 4 * 4  # that have room
    high, wide = shape.out
    return max(1, min(shape.images, columns // (high * wide)))


# %% check-1
import cudatut as ct
from cudatut.book.images.im2col import launch
from cudatut.book.images.shapes import LARGE, RAGGED, SMALL

found, expected = [], []
for shape in (SMALL, LARGE, *RAGGED):
    for room in (1, 1 << 16, 1 << 24, 1 << 28, 1 << 31):
        found.append(fitting(shape, room))
        expected.append(launch.fitting(shape, room))
ct.check(found, expected, name="images that fit", rtol=0)

# %% given-2
import numpy as np
import cudatut as ct

# %% solution-2
im2row = ct.Kernel(
    """
__global__ void im2row(const float* in, float* matrix, int images, int high,
                       int wide, int channels, int window, int stride, int pad,
                       int out_high, int out_wide) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const int c = i % channels, q = i / channels % window;
  const int r = i / channels / window % window;
  const int place = i / channels / window / window;  // of all images
  const int image = place / (out_high * out_wide);
  if (image >= images) return;
  const int y = place / out_wide % out_high * stride - pad + r;
  const int x = place % out_wide * stride - pad + q;
  const bool inside = y >= 0 && y < high && x >= 0 && x < wide;
  matrix[i] =
      inside ? in[((image * high + y) * wide + x) * channels + c] : 0.0f;
}
""",
    "im2row",
)

# %% check-2
import numpy as np
import cudatut as ct
from cudatut.book.images.im2col.reference import matrix as by_numpy
from cudatut.book.images.shapes import Shape

for shape in (
    Shape(1, 1, 1, 1, 1, (1, 1)),
    Shape(2, 5, 7, 9, 1, (3, 3), (1, 1), (1, 1)),
    Shape(3, 4, 12, 10, 1, (5, 5), (2, 2), (3, 3)),
):
    of_images = shape.images, shape.channels, shape.height, shape.width
    images = ct.rng(0).random(of_images, dtype="float32")
    last = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    window = shape.window[0]
    rows = shape.images * shape.out[0] * shape.out[1]
    # (channel, row, column)(place) to (place)(row, column, channel).
    expected = by_numpy(shape, images).reshape(-1, window * window, rows)
    expected = expected.transpose(2, 1, 0).reshape(rows, -1)
    out = ct.empty(expected.shape, "float32")
    ct.poison(out)
    im2row(
        ct.to_device(last), out, *last.shape, window, shape.stride[0],
        shape.pad[0], *shape.out, grid=ct.cdiv(out.size, 256), block=256,
    )  # fmt: skip
    ct.check(out, expected, name=f"{window} x {window}", rtol=0, atol=0)

# %% given-3
import numpy as np
import cudatut as ct

# %% solution-3
col2im = ct.Kernel(
    """
__global__ void col2im(const float* matrix, float* image, int high, int wide,
                       int window, int stride, int pad, int out_high,
                       int out_wide) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= high * wide) return;
  float sum = 0;
  for (int r = 0; r < window; ++r) {
    for (int q = 0; q < window; ++q) {
      // The window that has this pixel there begins at (top, left).
      const int top = i / wide + pad - r, left = i % wide + pad - q;
      if (top < 0 || left < 0 || top % stride || left % stride) continue;
      const int y = top / stride, x = left / stride;
      if (y < out_high && x < out_wide)
        sum += matrix[((r * window + q) * out_high + y) * out_wide + x];
    }
  }
  image[i] = sum;
}
""",
    "col2im",
)

# %% check-3
import numpy as np
import cudatut as ct
from cudatut.book.images.im2col.reference import matrix as by_numpy
from cudatut.book.images.shapes import Shape

for shape in (
    Shape(1, 1, 1, 1, 1, (1, 1)),
    Shape(1, 1, 9, 12, 1, (3, 3), (1, 1), (1, 1)),
    Shape(1, 1, 30, 21, 1, (3, 3), (2, 2), (1, 1)),
    Shape(1, 1, 8, 8, 1, (2, 2), (3, 3)),  # pixels that no window has
):
    high, wide = shape.height, shape.width
    # Where the words of the matrix are from: numbers of pixels, 0 for none.
    numbers = 1 + np.arange(high * wide).reshape(1, 1, high, wide)
    places = by_numpy(shape, numbers)
    words = ct.rng(1).integers(-4, 5, places.shape).astype("float32")
    expected = np.bincount(
        places.ravel(), words.ravel(), high * wide + 1
    )[1:].reshape(high, wide)  # fmt: skip
    out = ct.empty((high, wide), "float32")
    ct.poison(out)
    col2im(
        ct.to_device(words), out, high, wide, shape.window[0],
        shape.stride[0], shape.pad[0], *shape.out,
        grid=ct.cdiv(high * wide, 256), block=256,
    )  # fmt: skip
    ct.check(out, expected, name=f"stride {shape.stride[0]}", rtol=0)
