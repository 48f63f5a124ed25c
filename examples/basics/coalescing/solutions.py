# ---
# jupyter:
#   cudatut:
#     title: {en: "Coalesced access: solutions", zh: "合并访问：参考答案"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [4194304, 65536]
#       side: [4096, 256]
# ---

# %% [markdown] about
# Points stored as structures and as arrays, and the two ways to transpose a matrix.

# %% given-1
import numpy as np

import cudatut as ct

source = """
__global__ void length_of_structures(const float* __restrict__ xyz,
                                     float* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const float *at = xyz + 3 * (size_t)i;
    float x = at[0], y = at[1], z = at[2];
    out[i] = sqrtf(x * x + y * y + z * z);
  }
}
"""
structures = ct.Kernel(source, "length_of_structures")

n = 4_194_304
points_host = ct.rng(0).random((n, 3), dtype="float32")
points = ct.to_device(points_host)
xs, ys, zs = (ct.to_device(points_host[:, part]) for part in range(3))

# %% solution-1
source = """
__global__ void length_of_arrays(const float* __restrict__ xs,
                                 const float* __restrict__ ys,
                                 const float* __restrict__ zs,
                                 float* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float x = xs[i], y = ys[i], z = zs[i];
    out[i] = sqrtf(x * x + y * y + z * z);
  }
}
"""
arrays = ct.Kernel(source, "length_of_arrays")

# %% check-1
expected = np.sqrt((points_host.astype("float64") ** 2).sum(axis=1))
for m in sorted({n, *(m for m in ct.RAGGED if m < n)}):
    out = ct.empty(m, "float32")
    launch = {"grid": ct.cdiv(m, 256), "block": 256}
    structures(points, out, m, **launch)
    ct.check(out, expected[:m], name=f"structures, n = {m}")
    ct.poison(out)
    arrays(xs, ys, zs, out, m, **launch)
    ct.check(out, expected[:m], name=f"arrays, n = {m}")

out = ct.empty(n, "float32")
launch = {"grid": ct.cdiv(n, 256), "block": 256}
ct.bench(
    {
        "structures": lambda: structures(points, out, n, **launch),
        "arrays": lambda: arrays(xs, ys, zs, out, n, **launch),
    },
    bytes=4 * 4 * n,
    name="lengths of 2^22 points",
)

# %% facts-1
lane = np.arange(32)


def sectors(words):
    """Sectors that a warp's request touches, from the word of each lane."""
    return len(np.unique(4 * words // 32))


ct.table(
    "Sectors of a warp",
    {
        "structures": {
            "load of x": sectors(3 * lane),
            "all three loads": sum(
                sectors(3 * lane + part) for part in range(3)
            ),
        },
        "arrays": {
            "load of x": sectors(lane),
            "all three loads": 3 * sectors(lane),
        },
    },
    corner="layout",
)

# %% given-2
import numpy as np

import cudatut as ct

source = """
__global__ void along_input(const float* __restrict__ in,
                            float* __restrict__ out,
                            int rows, int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && column < columns)
    out[(size_t)column * rows + row] = in[(size_t)row * columns + column];
}
"""
along_input = ct.Kernel(source, "along_input")


def transpose(kernel, matrix, out):
    """Launch: the grid's x runs along a row of `matrix`, or of `out`."""
    rows, columns = matrix.shape
    wide, high = (columns, rows) if kernel is along_input else (rows, columns)
    grid = ct.cdiv(wide, 32), ct.cdiv(high, 8)
    kernel(matrix, out, rows, columns, grid=grid, block=(32, 8))


# %% solution-2
source = """
__global__ void along_output(const float* __restrict__ in,
                             float* __restrict__ out,
                             int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int column = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && column < columns)
    out[(size_t)column * rows + row] = in[(size_t)row * columns + column];
}
"""
along_output = ct.Kernel(source, "along_output")

# %% check-2
side = 4096
for shape in ((1, 1), (33, 1), (31, 1000), (100, 70), (1024, 2048)):
    host = ct.rng(1).random(shape, dtype="float32")
    matrix, out = ct.to_device(host), ct.empty(shape[::-1], "float32")
    for kernel in (along_input, along_output):
        ct.poison(out)
        transpose(kernel, matrix, out)
        ct.check(out, host.T, name=f"{kernel.name}, {shape[0]} x {shape[1]}")

large = ct.to_device(ct.rng(1).random((side, side), dtype="float32"))
turned = ct.empty((side, side), "float32")
ct.bench(
    {
        "along the input": lambda: transpose(along_input, large, turned),
        "along the output": lambda: transpose(along_output, large, turned),
        "copy": ct.vendor.copy(turned, large),
    },
    bytes=2 * 4 * side**2,
    name="transpose, 4096 x 4096",
)
