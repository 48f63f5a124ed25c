# ---
# jupyter:
#   cudatut:
#     title: {en: "The programming model: solutions", zh: "编程模型：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [4000037, 4099]
#       length: [33333333, 4099]
#       tolerance: [0.4, 1000.0]
# ---
# %% [markdown]
# The first half of the block takes the even elements of the block, the second half takes the odd ones. Each warp lies in
# one half.

# %% given-1
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

# %% solution-1
sides = SourceModule("""
__global__ void sides(const float *x, float *out, int n) {
  int half = blockDim.x / 2;
  int odd = threadIdx.x / half;  // 0 in the first half, 1 in the second
  int i = blockIdx.x * blockDim.x + 2 * (threadIdx.x % half) + odd;
  if (i >= n) return;
  float v = x[i];
  if (i % 2 == 0)
    for (int k = 0; k < 512; ++k) v = 0.999f * v + 0.001f;
  else
    for (int k = 0; k < 512; ++k) v = -0.999f * v + 0.001f;
  out[i] = v;
}
""").get_function("sides")

# %% check-1
import cudatut as ct

one_side = ct.Kernel(
    "__global__ void one_side(const float *x, float *out, int n) {"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;"
    "  if (i >= n) return;"
    "  float v = x[i];"
    "  for (int k = 0; k < 512; ++k) v = 0.999f * v + 0.001f;"
    "  out[i] = v; }",
    "one_side",
)
n = 4_000_037
for m in (n, *ct.RAGGED):
    values = ct.rng(m).standard_normal(m, dtype="float32")
    x, out = ct.to_device(values), ct.empty(m, "float32")
    sides(x, out, np.int32(m), grid=(ct.cdiv(m, 256), 1), block=(256, 1, 1))
    a = np.where(np.arange(m) % 2, -1, 1) * np.float64(np.float32(0.999))
    b = np.float64(np.float32(0.001))
    expected = a**512 * values + b * (1 - a**512) / (1 - a)
    ct.check(out, expected, name=f"n = {m}", rtol=1e-4)

values = ct.rng(n).standard_normal(n, dtype="float32")
x, out = ct.to_device(values), ct.empty(n, "float32")
shape = {"grid": (ct.cdiv(n, 256), 1), "block": (256, 1, 1)}
timed = ct.bench(
    {
        "sides": lambda: sides(x, out, np.int32(n), **shape),
        "without a branch": lambda: one_side(x, out, n, **shape),
    },
    flops=2 * 512 * n,
    name="even and odd elements",
)
tolerance = 0.4
ratio = timed["sides"].median_us / timed["without a branch"].median_us
ct.check(
    np.array([ratio]),
    np.array([1.0]),
    rtol=tolerance,
    name="time / time without a branch",
)

# %% [markdown]
# The three kernels move 2 + 2 + 3 numbers for each element, the one kernel moves 2. t and u never leave the thread.

# %% given-2
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

# %% solution-2
fused = SourceModule("""
__global__ void fused(const float *x, float *z, float a, float b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float t = a * x[i] + b;
    z[i] = t * t + x[i];
  }
}
""").get_function("fused")
predicted = (2 + 2 + 3) / 2

# %% check-2
import cudatut as ct

scale = ct.Kernel(
    "__global__ void scale(const float *x, float *t, float a, float b, int n) {"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;"
    "  if (i < n) t[i] = a * x[i] + b; }",
    "scale",
)
square = ct.Kernel(
    "__global__ void square(const float *t, float *u, int n) {"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;"
    "  if (i < n) u[i] = t[i] * t[i]; }",
    "square",
)
add = ct.Kernel(
    "__global__ void add(const float *u, const float *x, float *z, int n) {"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;"
    "  if (i < n) z[i] = u[i] + x[i]; }",
    "add",
)
a, b = np.float32(1.5), np.float32(-0.5)
for m in ct.RAGGED:
    values = ct.rng(m).standard_normal(m, dtype="float32")
    x, z = ct.to_device(values), ct.empty(m, "float32")
    shape = {"grid": (ct.cdiv(m, 256), 1), "block": (256, 1, 1)}
    fused(x, z, a, b, np.int32(m), **shape)
    expected = (1.5 * values.astype("float64") - 0.5) ** 2 + values
    ct.check(z, expected, name=f"n = {m}")

length = 33_333_333
values = ct.rng(1).standard_normal(length, dtype="float32")
x = ct.to_device(values)
t, u, z = (ct.empty(length, "float32") for _ in range(3))
shape = {"grid": (ct.cdiv(length, 256), 1), "block": (256, 1, 1)}


def three_kernels():
    scale(x, t, a, b, length, **shape)
    square(t, u, length, **shape)
    add(u, x, z, length, **shape)


timed = ct.bench(
    {
        "three kernels": three_kernels,
        "one kernel": lambda: fused(x, z, a, b, np.int32(length), **shape),
    },
    bytes={"three kernels": 28 * length, "one kernel": 8 * length},
    name="three kernels or one",
)
ratio = timed["three kernels"].median_us / timed["one kernel"].median_us
print(f"predicted {predicted:.2f}, measured {ratio:.2f}")
ct.check(np.array([predicted]), np.array([28 / 8]), rtol=0.01, name="predicted")
