# ---
# jupyter:
#   cudatut:
#     title: {en: "Knowing your GPU: solutions", zh: "认识你的 GPU：参考答案"}
#     requires: sm_75
#     alone: false
#     timeout_s: 120
# ---
# %% [markdown]
# A rule that predicts which compiled code runs where, and a launch for more rows than a grid has.

# %% setup
import numpy as np
import pycuda.driver as cuda
from pycuda.compiler import compile as nvcc_compile

import cudatut as ct
from cudatut.nvcc import find_nvcc

gpu = ct.device()
archs = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_90a", "compute_75", "compute_90a", "compute_100"]


def loads(arch):
    target = "ptx" if arch.startswith("compute_") else "cubin"
    try:
        image = nvcc_compile(source, str(find_nvcc()), arch=arch, target=target, no_extern_c=True)
        cuda.module_from_buffer(image)
        return True
    except cuda.Error:
        return False


source = 'extern "C" __global__ void built_for(int *arch) { *arch = __CUDA_ARCH__; }'
found = np.array([loads(arch) for arch in archs])


# %% solution-1
def runs(arch, capability):
    """Does code that nvcc built for `arch` run on a GPU of this compute capability?"""
    kind, _, digits = arch.partition("_")
    exact = digits.endswith("a")
    digits = digits.rstrip("a")
    built = (int(digits[:-1]), int(digits[-1]))
    if exact:  # neither the machine code nor the PTX promises anything beyond its own target
        return built == capability
    if kind == "sm":  # machine code: the same major version, the same minor or a later one
        return built[0] == capability[0] and built[1] <= capability[1]
    return built <= capability  # PTX: compiled again by the driver, for anything newer


expected = np.array([runs(arch, gpu.compute_capability) for arch in archs])
ct.check(expected.astype("int32"), found.astype("int32"), name="prediction")

# %% solution-2
scale_rows = ct.Kernel(
    """
__global__ void scale_rows(const float *x, const float *factor, float *out, int rows, int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  // More rows than grid.y can number: each block takes every gridDim.y-th row.
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    if (column < columns) {
      long long i = (long long)row * columns + column;
      out[i] = factor[row] * x[i];
    }
  }
}
""",
    "scale_rows",
)
for rows, columns in ((1, 1), (31, 33), (ct.size(70_001, 701), 33)):
    x = ct.rng(rows).standard_normal((rows, columns), dtype="float32")
    factor = ct.rng(columns).standard_normal(rows, dtype="float32")
    out = ct.empty((rows, columns), "float32")
    grid = (ct.cdiv(columns, 64), min(rows, gpu.max_grid[1]))
    scale_rows(ct.to_device(x), ct.to_device(factor), out, rows, columns, grid=grid, block=(64, 1))
    ct.check(out, factor[:, None] * x, name=f"{rows} x {columns}")
