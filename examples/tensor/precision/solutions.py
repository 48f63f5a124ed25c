# ---
# jupyter:
#   cudatut:
#     title: {en: "Precision: solutions", zh: "精度：参考答案"}
#     requires: sm_80
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# A number as the sum of two, and distances that ten bits of mantissa suffice
# for.

# %% given-1
import numpy as np


def to_bf16(x):
    """fp32 numbers rounded to those that bf16 has, to the nearest."""
    words = np.asarray(x, "float32").view("uint32")
    words = words + 0x7FFF + (words >> 16 & 1)
    return (words & 0xFFFF0000).astype("uint32").view("float32")


# %% solution-1
def split(x):
    high = to_bf16(x)
    return high, to_bf16(x - high)  # the subtraction is exact


# %% check-1
import numpy as np
import cudatut as ct

x = ct.rng(0).standard_normal(100_000).astype("float32")
x = np.concatenate([x, x * 1e20, x * 1e-20, np.float32([0, 1, -3, 1 / 3])])
high, low = split(x)
for name, part in (("high", high), ("low", low)):
    ct.check(part, to_bf16(part), name=f"{name} is bf16", rtol=0)
size = np.maximum(abs(x).astype("float64"), 1e-30)
rest = abs(x.astype("float64") - high - low) / size
ct.check(np.maximum(rest, 2.0**-16), 2.0**-16 + 0 * rest, name="left over")

# %% given-2
import numpy as np
import cudatut as ct


def multiply(a, b):
    """The product of two matrices with factors in TF32, as float64."""
    a, b = (np.ascontiguousarray(x, "float32") for x in (a, b))
    (m, k), n = a.shape, b.shape[1]
    c = ct.empty((m, n), "float32")
    kernel = ct.Kernel(
        "tensor/precision/typed_product.cu", "typed_product<Tf32, 1, false>"
    )
    grid = ct.cdiv(n, 128), ct.cdiv(m, 128)
    x, y = ct.to_device(a), ct.to_device(b)
    kernel(x, y, c, m, n, k, grid=grid, block=256)
    return c.get().astype("float64")


# %% solution-2
def squared_distances(points, multiply):
    # Around their mean, the points are as small as their distances.
    points = points - points.mean(axis=0)
    squares = (points**2).sum(axis=1)
    return squares[:, None] + squares - 2 * multiply(points, points.T)


# %% check-2
import numpy as np
import cudatut as ct

for center in (0, 100, 1000):
    points = center + ct.rng(7).random((200, 16)) * 2 - 1  # float64
    expected = ((points[:, None] - points) ** 2).sum(axis=2)
    got = squared_distances(points, multiply)
    name = f"points around {center}"
    ct.check(got, expected, rtol=0, atol=0.01, name=name)
