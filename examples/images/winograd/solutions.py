# ---
# jupyter:
#   cudatut:
#     title: {en: "Winograd's convolution: solutions", zh: "Winograd 卷积：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# Two results by four multiplications; the last step of F(2 x 2) with bias and
# ReLU; and points whose matrices amplify less.

# %% given-1
import numpy as np
import cudatut as ct

# %% solution-1
pairs = ct.Kernel(
    """
__global__ void pairs(const float* in, const float* u, float* out, int n) {
  const int i = 2 * (blockIdx.x * 256 + threadIdx.x);
  if (i >= n) return;
  const float d0 = in[i], d1 = in[i + 1], d2 = in[i + 2];
  const float d3 = i + 1 < n ? in[i + 3] : 0.0f;
  const float m0 = (d0 - d2) * u[0], m1 = (d1 + d2) * u[1];
  const float m2 = (d2 - d1) * u[2], m3 = (d3 - d1) * u[3];
  out[i] = m0 + m1 + m2;
  if (i + 1 < n) out[i + 1] = m1 - m2 + m3;
}
""",
    "pairs",
)

# %% check-1
import cudatut as ct

for n in ct.RAGGED:
    rng = ct.rng(n)
    d, w = rng.integers(-9, 10, n + 2), rng.integers(-9, 10, 3)
    a, b, c = (float(one) for one in w)
    u = np.array([a, (a + b + c) / 2, (a - b + c) / 2, c], "float32")
    out = ct.empty(n, "float32")
    ct.poison(out)
    x = ct.to_device(d.astype("float32"))
    pairs(x, ct.to_device(u), out, n, grid=ct.cdiv(n, 512), block=256)
    expected = np.correlate(d, w, "valid")
    ct.check(out, expected, name=f"n={n}", rtol=0)

# %% given-2
import numpy as np
import cudatut as ct

# %% solution-2
results_relu = ct.Kernel(
    """
__global__ void results_relu(const float* m, const float* bias, float* out,
                             int tiles, int down, int across) {
  const int tile = blockIdx.x * 128 + threadIdx.x;
  const int filter = blockIdx.y, filters = gridDim.y;
  if (tile >= tiles) return;
  const int image = tile / (down * across), place = tile % (down * across);
  const float* from = m + (long long)filter * tiles + tile;
  const long long apart = (long long)filters * tiles;
  float half[2][4];
  for (int j = 0; j < 4; ++j) {
    const float a = from[j * apart], b = from[(4 + j) * apart],
                c = from[(8 + j) * apart], d = from[(12 + j) * apart];
    half[0][j] = a + b + c;
    half[1][j] = b - c + d;
  }
  const int y = place / across * 2, x = place % across * 2;
  float* to = out + ((long long)(image * filters + filter) * 2 * down + y) *
                        2 * across + x;
  for (int i = 0; i < 2; ++i) {
    const float* h = half[i];
    to[i * 2 * across] = fmaxf(h[0] + h[1] + h[2] + bias[filter], 0.0f);
    to[i * 2 * across + 1] = fmaxf(h[1] - h[2] + h[3] + bias[filter], 0.0f);
  }
}
""",
    "results_relu",
)

# %% check-2
import cudatut as ct
from cudatut.book.images.winograd.reference import minimal

for images, filters, down, across in ((1, 1, 1, 1), (3, 5, 4, 7), (2, 3, 9, 9)):
    rng = ct.rng(filters)
    tiles = images * down * across
    m = rng.integers(-9, 10, (16, filters, tiles)).astype("float32")
    bias = rng.integers(-9, 10, filters).astype("float32")
    out = ct.empty((images, filters, 2 * down, 2 * across), "float32")
    ct.poison(out)
    results_relu(
        ct.to_device(m), ct.to_device(bias), out, tiles, down, across,
        grid=(ct.cdiv(tiles, 128), filters), block=128,
    )  # fmt: skip
    a = minimal(2).results
    found = a @ m.reshape(4, 4, -1).transpose(2, 0, 1) @ a.T
    found = found.reshape(filters, images, down, across, 2, 2)
    found = found.transpose(1, 0, 2, 4, 3, 5).reshape(out.shape)
    expected = np.maximum(found + bias[:, None, None], 0)
    ct.check(out, expected, name=f"{images} images, {tiles} tiles", rtol=0)

# %% given-3
from fractions import Fraction

import numpy as np
import cudatut as ct


# %% solution-3
def points():
    # Each with its inverse: no power of a point is large, and none small.
    return [0] + [
        s * Fraction(n, d) for n, d in ((2, 3), (3, 2)) for s in (1, -1)
    ]


# %% check-3
import cudatut as ct
from cudatut.book.images.shapes import Shape, reference
from cudatut.book.images.winograd.reference import convolve, minimal

shape = Shape(1, 64, 16, 16, 32, (3, 3), pad=(1, 1))
rng = ct.rng(0)
images = rng.standard_normal((1, 64, 16, 16), "float32")
weights = rng.standard_normal((32, 64, 3, 3), "float32")
exact = reference(shape, images, weights)


def typical(*some):
    found = convolve(shape, images, weights, 4, minimal(4, *some), "float32")
    return float(np.sqrt(((found - exact) ** 2).mean()))


share = typical(tuple(points())) / typical()
print(f"typical error, of that of the simple points: {share:.2f}")
ct.check([share < 0.6], [True], name="typical error")
