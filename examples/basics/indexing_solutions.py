# ---
# jupyter:
#   cudatut:
#     title: {en: "Nine index formulas: solutions", zh: "九个索引公式：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# The rule run backwards, from an id to coordinates, and a map over more elements than an `int` can count.

# %% setup

import cudatut as ct

# %% solution-1
permute = ct.Kernel(
    """
__global__ void permute(const float *in, float *out, int Z, int Y, int X) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= Z * Y * X) return;
  // Horner's rule backwards: the fastest digit is the remainder, the rest goes on.
  const int x = i % X, y = i / X % Y, z = i / X / Y;
  out[(x * Z + z) * Y + y] = in[i];  // the same rule forwards, with the axes in their new order
}
""",
    "permute",
)
for shape in ((1, 1, 1), (2, 3, 5), (31, 1, 33), (7, 64, 9), (101, 103, 107)):
    host = ct.rng(0).standard_normal(shape, dtype="float32")
    Z, Y, X = shape
    out = ct.empty((X, Z, Y), "float32")
    permute(ct.to_device(host), out, *shape, grid=ct.cdiv(host.size, 256), block=256)
    ct.check(out, host.transpose(2, 0, 1), name=f"{Z} x {Y} x {X}", rtol=0, atol=0)

# %% solution-2
invert = ct.Kernel(
    """
__global__ void invert(const unsigned char *in, unsigned char *out, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 255 - in[i];
}
""",
    "invert",
)
n = 2**31 + 7 if ct.device().memory_bytes > 8e9 else 2**20 + 7
n = ct.size(n, 2**12 + 7)
x, out = ct.empty(n, "uint8"), ct.empty(n, "uint8")
ends = [slice(0, 2000), slice(n // 2 - 1000, n // 2 + 1000), slice(n - 2000, n)]
for part in ends:
    x[part].set(ct.rng(part.start).integers(0, 256, 2000, dtype="uint8"))
invert(x, out, n, grid=ct.cdiv(n, 256), block=256)
for part in ends:
    ct.check(out[part], 255 - x[part].get(), name=f"bytes {part.start} to {part.stop - 1}")
