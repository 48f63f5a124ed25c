# ---
# jupyter:
#   cudatut:
#     title: {en: "Implicit GEMM: solutions", zh: "隐式 GEMM：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# The index maps; a table for another layout; and the gradient of the images.

# %% given-1
import numpy as np
import cudatut as ct

# %% solution-1
source_of = ct.Kernel(
    """
__global__ void source_of(int* out, int images, int channels, int height,
                          int width, int out_height, int out_width,
                          int stride, int pad) {
  const int pixels = images * out_height * out_width;
  const int j = blockIdx.x * 128 + threadIdx.x, k = blockIdx.y;
  if (j >= pixels) return;
  const int image = j / (out_height * out_width);
  const int y = j / out_width % out_height * stride - pad + k % 9 / 3;
  const int x = j % out_width * stride - pad + k % 3;
  const bool inside = y >= 0 && y < height && x >= 0 && x < width;
  out[k * pixels + j] =
      inside ? ((image * channels + k / 9) * height + y) * width + x : -1;
}
""",
    "source_of",
)

# %% check-1
import cudatut as ct

for images, channels, height, width, stride, pad in (
    (1, 1, 1, 1, 1, 1),
    (2, 3, 5, 7, 1, 0),
    (3, 2, 8, 6, 2, 1),
    (1, 4, 13, 11, 3, 2),
):
    sizes = images, channels, height, width
    down = (height + 2 * pad - 3) // stride + 1
    right = (width + 2 * pad - 3) // stride + 1
    at = np.arange(np.prod(sizes)).reshape(sizes)
    around = (0, 0), (0, 0), (pad, pad), (pad, pad)
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(at, around, constant_values=-1), (3, 3), axis=(2, 3)
    )[:, :, ::stride, ::stride]
    wanted = windows.transpose(1, 4, 5, 0, 2, 3).reshape(channels * 9, -1)
    out = ct.empty(wanted.shape, "int32")
    ct.poison(out, 0x5A)  # -1 is what memory is filled with else
    source_of(
        out, *sizes, down, right, stride, pad,
        grid=(ct.cdiv(wanted.shape[1], 128), channels * 9), block=128,
    )  # fmt: skip
    ct.check(out, wanted, name=f"{height} x {width}", rtol=0)

# %% given-2
import numpy as np
import cudatut as ct

by_table = ct.Kernel(
    """
__global__ void by_table(const float* images, const float* weights,
                         const int2* table, float* results, int channels,
                         int height, int width, int filters, int rows,
                         int columns, int pad) {
  const int out_width = width + 2 * pad - columns + 1;
  const int out_height = height + 2 * pad - rows + 1;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= out_height * out_width * filters) return;
  const int y = i / filters / out_width - pad;
  const int x = i / filters % out_width - pad;
  unsigned mask = 0;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      if (y + r >= 0 && y + r < height && x + c >= 0 && x + c < width)
        mask |= 1u << (r * columns + c);
  const int depth = rows * columns * channels;
  const float* from = images + (y * width + x) * channels;
  float sum = 0;
  for (int k = 0; k < depth; ++k)
    if (mask & table[k].y)
      sum += weights[i % filters * depth + k] * from[table[k].x];
  results[i] = sum;
}
""",
    "by_table",
)


# %% solution-2
def table(channels, width, window):
    """Offset and bit of each row of B."""
    rows, columns = window
    r, c, channel = np.indices((rows, columns, channels)).reshape(3, -1)
    offset = (r * width + c) * channels + channel
    return np.stack([offset, 1 << (r * columns + c)], axis=1).astype("int32")


# %% check-2
import cudatut as ct

for channels, height, width, filters, window, pad in (
    (1, 1, 1, 1, (1, 1), 0),
    (3, 5, 6, 4, (3, 3), 1),
    (8, 7, 4, 5, (3, 5), 2),
    (5, 9, 9, 3, (5, 6), 0),
):
    rng = ct.rng(channels)
    x = rng.integers(-4, 5, (height, width, channels)).astype("float32")
    w = rng.integers(-4, 5, (filters, *window, channels)).astype("float32")
    padded = np.pad(x, ((pad, pad), (pad, pad), (0, 0)))
    views = np.lib.stride_tricks.sliding_window_view(padded, window, (0, 1))
    wanted = np.einsum("yxcrs,krsc->yxk", views, w)
    out = ct.empty(wanted.shape, "float32")
    ct.poison(out)
    rows = ct.to_device(np.ascontiguousarray(table(channels, width, window)))
    by_table(
        ct.to_device(x), ct.to_device(w), rows, out, channels, height, width,
        filters, *window, pad, grid=ct.cdiv(wanted.size, 128), block=128,
    )  # fmt: skip
    ct.check(out, wanted, name=f"{window}, {channels} channels", rtol=0, atol=0)

# %% given-3
import numpy as np
import cudatut as ct

# %% solution-3
backward = ct.Kernel(
    """
__global__ void backward(const float* results, const float* weights,
                         float* gradient, int images, int channels, int height,
                         int width, int filters, int window, int out_height,
                         int out_width, int stride, int pad) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= images * channels * height * width) return;
  const int x = i % width, y = i / width % height;
  const int channel = i / width / height % channels;
  const int image = i / width / height / channels;
  float sum = 0;
  for (int r = 0; r < window; ++r) {
    const int down = y + pad - r;  // stride times the row of the result
    if (down < 0 || down % stride || down / stride >= out_height) continue;
    for (int q = 0; q < window; ++q) {
      const int right = x + pad - q;
      if (right < 0 || right % stride || right / stride >= out_width) continue;
      for (int f = 0; f < filters; ++f)
        sum += results[((image * filters + f) * out_height + down / stride) *
                           out_width +
                       right / stride] *
               weights[((f * channels + channel) * window + r) * window + q];
    }
  }
  gradient[i] = sum;
}
""",
    "backward",
)

# %% check-3
import cudatut as ct

for images, channels, height, width, filters, window, stride, pad in (
    (1, 1, 1, 1, 1, 1, 1, 0),
    (2, 3, 6, 5, 4, 3, 1, 1),
    (2, 2, 9, 8, 3, 3, 2, 1),
    (1, 2, 11, 10, 2, 2, 3, 0),
):
    down = (height + 2 * pad - window) // stride + 1
    right = (width + 2 * pad - window) // stride + 1
    rng = ct.rng(height)
    y = rng.integers(-4, 5, (images, filters, down, right)).astype("float32")
    w = rng.integers(-4, 5, (filters, channels, window, window))
    w = w.astype("float32")
    sizes = images, channels, height, width
    # Each result adds to all words of its window.
    wanted = np.zeros((images, channels, height + 2 * pad, width + 2 * pad))
    for p in range(down):
        for t in range(right):
            part = np.einsum("nk,kcrs->ncrs", y[:, :, p, t], w)
            a, b = p * stride, t * stride
            wanted[:, :, a : a + window, b : b + window] += part
    wanted = wanted[:, :, pad : pad + height, pad : pad + width]
    out = ct.empty(sizes, "float32")
    ct.poison(out)
    backward(
        ct.to_device(y), ct.to_device(w), out, *sizes, filters, window, down,
        right, stride, pad, grid=ct.cdiv(wanted.size, 128), block=128,
    )  # fmt: skip
    ct.check(
        out, wanted, name=f"window {window}, stride {stride}", rtol=0, atol=0
    )
