# ---
# jupyter:
#   cudatut:
#     title: {en: "Errors: solutions", zh: "错误：参考答案"}
#     requires: sm_75
#     alone: false
#     timeout_s: 120
# ---
# %% [markdown]
# A launch that fits every length, and the guilty one of three launches.

# %% setup
import numpy as np

import cudatut as ct

add = ct.Kernel(
    """
__global__ void add(const float *x, const float *y, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
""",
    "add",
)
program = '''
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

add_one = SourceModule("""
__global__ void add_one(float *out, int stride) {
  out[(long long)threadIdx.x * stride] += 1.0f;
}
""").get_function("add_one")
arrays = [cuda.to_device(np.zeros(256, "float32")) for _ in range(3)]
launches = [
    lambda: add_one(arrays[0], np.int32(1), block=(256, 1, 1)),
    lambda: add_one(arrays[1], np.int32(-1 << 30), block=(256, 1, 1)),
    lambda: add_one(arrays[2], np.int32(1), block=(256, 1, 1)),
]
'''


# %% solution-1
def launch_shape(n, block=256):
    """grid and block for n elements, or None when there is nothing to launch."""
    return (ct.cdiv(n, block), block) if n else None


for n in (0, *ct.RAGGED, 50_000):
    x, y = (ct.rng(seed).standard_normal(n, dtype="float32") for seed in (1, 2))
    out = ct.empty(n, "float32")
    if shape := launch_shape(n):
        add(ct.to_device(x), ct.to_device(y), out, n, grid=shape[0], block=shape[1])
    if n:
        ct.check(out, x + y, name=f"n = {n}")

# %% solution-2
finder = """
for number, launch in enumerate(launches):
    launch()
    try:
        cuda.Context.synchronize()  # while debugging: after every launch, so nothing else is in doubt
    except cuda.Error:
        print(number)
        break
"""
child = ct.isolated(program + finder)
guilty = int(child.stdout.split()[0])
ct.check(np.array([guilty]), np.array([1]), name="guilty launch")
