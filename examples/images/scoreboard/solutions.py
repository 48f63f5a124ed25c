# ---
# jupyter:
#   cudatut:
#     title: {en: "Scoreboard of convolutions: solutions", zh: "卷积排行榜：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# Two limits of a layer, the time of a network, and a window that slides.

# %% given-1
import numpy as np


# %% solution-1
def bound(
    images, channels, size, filters, window, groups, out, word, fma, rate
):
    """Microseconds of the operations and of the bytes. word: bytes of one;
    fma: TFLOP/s, rate: GB/s."""
    weights = filters * (channels // groups) * window[0] * window[1]
    pixels = images * out[0] * out[1]
    operations = 2 * weights * pixels  # each weight meets each pixel once
    given = images * channels * size[0] * size[1]
    words = given + weights + filters * pixels
    return operations / fma / 1e6, word * words / rate / 1e3


# %% check-1
import cudatut as ct

of = 2, 8, (5, 6), 4, (3, 2), 1, (4, 5)
found = bound(*of, 4, 1.0, 1.0)
ct.check([found[0]], [2 * 192 * 40 / 1e6], name="operations", rtol=1e-9)
words = 480 + 192 + 160
ct.check([found[1]], [4 * words / 1e3], name="bytes", rtol=1e-9)
of = 2, 8, (5, 6), 8, (3, 2), 8, (4, 5)
found = bound(*of, 2, 2.0, 4.0)
wanted = [2 * 48 * 40 / 2e6, 2 * (480 + 48 + 320) / 4e3]
ct.check(np.array(found), wanted, name="one channel in a group", rtol=1e-9)

# %% given-2
import numpy as np


# %% solution-2
def whole(layers):
    """layers: a list of (name, how often, our time, the rival's time)."""
    ours = sum(times * own for _, times, own, _ in layers)
    rival = sum(times * other for _, times, _, other in layers)
    # What is won counts as often as the layer occurs.
    most = max(layers, key=lambda one: one[1] * (one[2] - one[3]))
    return rival / ours, most[0]


# %% check-2
import cudatut as ct

layers = [
    ("first", 1, 100.0, 90.0),
    ("often", 12, 20.0, 18.0),
    ("small", 3, 2.0, 6.0),
]
ratio, most = whole(layers)
ct.check([ratio], [324 / 346], name="network", rtol=1e-9)
ct.check([int(most == "often")], [1], name="where most is won", rtol=0)
ratio, most = whole([("a", 1, 5.0, 4.0), ("b", 1, 9.0, 3.0)])
ct.check([ratio], [0.5], name="two layers", rtol=1e-9)
ct.check([int(most == "b")], [1], name="the slower of two", rtol=0)

# %% given-3
import numpy as np

import cudatut as ct

# %% solution-3
columns3 = ct.Kernel(
    """
__global__ void columns3(const float* image, const float* weights, float* out,
                         int channels, int height, int width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, plane = blockIdx.y;
  if (x >= width) return;
  const float* w = weights + plane % channels * 9;
  const float* from = image + (long long)plane * height * width;
  float* to = out + (long long)plane * height * width;
  float word[3][3] = {};  // three rows; zeros above the image
  for (int y = -1; y < height; ++y) {
    for (int j = 0; j < 3; ++j) {
      const int column = x + j - 1;
      const bool inside = y + 1 < height && column >= 0 && column < width;
      word[0][j] = word[1][j];
      word[1][j] = word[2][j];
      word[2][j] = inside ? from[(y + 1) * width + column] : 0.0f;
    }
    if (y < 0) continue;
    float sum = 0;
    for (int i = 0; i < 9; ++i) sum += word[i / 3][i % 3] * w[i];
    to[y * width + x] = sum;
  }
}
""",
    "columns3",
)

# %% check-3
import cudatut as ct
from cudatut.book.images.shapes import Shape, reference

for images, channels, height, width in (
    (1, 1, 1, 1),
    (2, 3, 7, 5),
    (1, 5, 33, 300),
):
    one = Shape(
        images, channels, height, width, channels, (3, 3), pad=(1, 1),
        groups=channels,
    )  # fmt: skip
    image = ct.rng(0).integers(-9, 9, (images, channels, height, width))
    weights = ct.rng(1).integers(-9, 9, (channels, 1, 3, 3))
    image, weights = image.astype("float32"), weights.astype("float32")
    out = ct.empty(image.shape, "float32")
    ct.poison(out)
    columns3(
        ct.to_device(image), ct.to_device(weights), out,
        channels, height, width,
        grid=(ct.cdiv(width, 128), images * channels), block=128,
    )  # fmt: skip
    wanted = reference(one, image, weights)
    ct.check(out, wanted, name=f"{height} x {width}", rtol=0)
