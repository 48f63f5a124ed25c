# ---
# jupyter:
#   cudatut:
#     title: {en: "The programming model: solutions", zh: "编程模型：参考答案"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# A divergent branch made uniform by another assignment of threads, and three memory-bound kernels fused into one.

# %% setup
import numpy as np

import cudatut as ct

rng = ct.rng(0)
n = ct.size(4_000_037, 4_099)
x_host = rng.standard_normal(n, dtype="float32")
x = ct.to_device(x_host)
LENGTHS = (n, *(m for m in ct.RAGGED if m < n))

# %% solution-1
SIDES = """
__device__ float two_sides(float v, bool odd, int steps) {
  if (odd) {
    for (int j = 0; j < steps; ++j) v = fmaf(-0.999f, v, 0.001f);
  } else {
    for (int j = 0; j < steps; ++j) v = fmaf(0.999f, v, 0.001f);
  }
  return v;
}

__global__ void divergent(const float *x, float *out, int n, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = two_sides(x[i], i & 1, steps);
}

__global__ void uniform(const float *x, float *out, int n, int steps) {
  // The first half of the block takes its even elements, the second half the odd ones.
  const int half = blockDim.x / 2;
  const int odd = threadIdx.x / half;
  const int i = blockIdx.x * blockDim.x + 2 * (threadIdx.x % half) + odd;
  if (i < n) out[i] = two_sides(x[i], odd, steps);
}
"""
divergent, uniform = ct.Kernel(SIDES, "divergent"), ct.Kernel(SIDES, "uniform")
steps, out = 512, ct.empty(n, "float32")
a = np.where(np.arange(n) % 2, -1, 1) * np.float64(np.float32(0.999))
b = np.float64(np.float32(0.001))
expected = a**steps * x_host + b * (1 - a**steps) / (1 - a)


def launch(kernel, m=n):
    kernel(x, out, m, steps, grid=ct.cdiv(m, 256), block=256)


for kernel in (divergent, uniform):
    for m in LENGTHS:
        ct.poison(out)
        launch(kernel, m)
        ct.check(out[:m], expected[:m], name=f"{kernel.name}, n={m}", rtol=1e-4)
ct.bench(
    {"divergent": lambda: launch(divergent), "uniform": lambda: launch(uniform)},
    flops=2 * steps * n,
    name="even and odd elements",
)

# %% solution-2
STAGES = """
__global__ void scale(const float *x, float *t, float a, float b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) t[i] = fmaf(a, x[i], b);
}
__global__ void square(const float *t, float *u, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) u[i] = t[i] * t[i];
}
__global__ void add(const float *u, const float *x, float *z, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = u[i] + x[i];
}
__global__ void fused(const float *x, float *z, float a, float b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i];
  const float t = fmaf(a, v, b);  // t and u stay in registers
  z[i] = fmaf(t, t, v);
}
"""
scale, square = ct.Kernel(STAGES, "scale"), ct.Kernel(STAGES, "square")
add, fused = ct.Kernel(STAGES, "add"), ct.Kernel(STAGES, "fused")
length = ct.size(33_333_333, 4_099)
data_host = rng.standard_normal(length, dtype="float32")
data = ct.to_device(data_host)
t, u, z = (ct.empty(length, "float32") for _ in range(3))


def three_kernels(m=length):
    shape = {"grid": ct.cdiv(m, 256), "block": 256}
    scale(data, t, 1.5, -0.5, m, **shape)
    square(t, u, m, **shape)
    add(u, data, z, m, **shape)


def one_kernel(m=length):
    fused(data, z, 1.5, -0.5, m, grid=ct.cdiv(m, 256), block=256)


wanted = (1.5 * data_host.astype("float64") - 0.5) ** 2 + data_host
for calculate in (three_kernels, one_kernel):
    for m in (length, *(m for m in ct.RAGGED if m < length)):
        ct.poison(z)
        calculate(m)
        ct.check(z[:m], wanted[:m], name=f"{calculate.__name__}, n={m}")
three_bytes, one_bytes = (2 + 2 + 3) * 4 * length, 2 * 4 * length
ct.facts("prediction", {"three kernels / one kernel": three_bytes / one_bytes})
fusion = ct.bench(
    {"three kernels": three_kernels, "one kernel": one_kernel},
    bytes={"three kernels": three_bytes, "one kernel": one_bytes},
    name="fusion",
)
