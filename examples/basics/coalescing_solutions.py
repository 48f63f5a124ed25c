# ---
# jupyter:
#   cudatut:
#     title: {en: "Coalesced access: solutions", zh: "合并访问：参考答案"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# Points stored as structures and as arrays, and the two ways to transpose a matrix.

# %% setup
import numpy as np

import cudatut as ct

lane = np.arange(32)


def sectors(words):
    """Sectors that a warp's request touches, from the index of the word that each lane wants."""
    return len(np.unique(4 * np.asarray(words) // 32))


# %% solution-1
POINTS = """
extern "C" __global__ void length_of_structures(const float* __restrict__ xyz,
                                                float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const float x = xyz[3 * i], y = xyz[3 * i + 1], z = xyz[3 * i + 2];
    out[i] = sqrtf(x * x + y * y + z * z);
  }
}

extern "C" __global__ void length_of_arrays(const float* __restrict__ xs,
                                            const float* __restrict__ ys,
                                            const float* __restrict__ zs,
                                            float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const float x = xs[i], y = ys[i], z = zs[i];
    out[i] = sqrtf(x * x + y * y + z * z);
  }
}
"""
of_structures = ct.Kernel(POINTS, "length_of_structures")
of_arrays = ct.Kernel(POINTS, "length_of_arrays")
structures = [sectors(3 * lane + part) for part in range(3)]
arrays = [sectors(lane) for _ in range(3)]
ct.facts(
    "sectors per request",
    {
        "x of structures": structures[0],
        "x, y and z of structures, three requests": sum(structures),
        "x, y and z of arrays, three requests": sum(arrays),
        "sectors that x, y and z fill": sectors(np.arange(3 * 32)),
    },
)

n = ct.size(1 << 22, 1 << 16)
points_host = ct.rng(0).random((n, 3), dtype="float32")
expected = np.sqrt((points_host.astype("float64") ** 2).sum(axis=1))
points = ct.to_device(points_host)
parts = [ct.to_device(points_host[:, part]) for part in range(3)]  # copied, so contiguous
for m in sorted({n, *(m for m in ct.RAGGED if m < n)}):
    out = ct.empty(m, "float32")
    shape = {"grid": ct.cdiv(m, 256), "block": 256}
    of_structures(points, out, m, **shape)
    ct.check(out, expected[:m], name=f"structures, n={m}")
    ct.poison(out)
    of_arrays(*parts, out, m, **shape)
    ct.check(out, expected[:m], name=f"arrays, n={m}")

# %% bench-1
out = ct.empty(n, "float32")
shape = {"grid": ct.cdiv(n, 256), "block": 256}
ct.bench(
    {
        "structures": lambda: of_structures(points, out, n, **shape),
        "arrays": lambda: of_arrays(*parts, out, n, **shape),
    },
    bytes=4 * 4 * n,
    name="lengths of 2^22 points",
)

# %% solution-2
TRANSPOSE = """
extern "C" __global__ void along_input(const float* __restrict__ in, float* __restrict__ out,
                                       int rows, int columns) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && column < columns)
    out[(size_t)column * rows + row] = in[(size_t)row * columns + column];
}

extern "C" __global__ void along_output(const float* __restrict__ in, float* __restrict__ out,
                                        int rows, int columns) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int column = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && column < columns)
    out[(size_t)column * rows + row] = in[(size_t)row * columns + column];
}
"""
along_input = ct.Kernel(TRANSPOSE, "along_input")
along_output = ct.Kernel(TRANSPOSE, "along_output")
rows = columns = ct.size(4096, 256)  # of the timed matrix; smaller ones are checked
ct.facts(
    "sectors per request",
    {
        "along the input, loads": sectors(lane),
        "along the input, stores": sectors(lane * rows),
        "along the output, loads": sectors(lane * columns),
        "along the output, stores": sectors(lane),
    },
)


def transpose(kernel, matrix, out, block=(32, 8)):
    high, wide = matrix.shape
    if kernel is along_output:
        wide, high = high, wide
    kernel(matrix, out, *matrix.shape, grid=(ct.cdiv(wide, block[0]), ct.cdiv(high, block[1])),
           block=block)  # fmt: skip


for shape in ((1024, 2048), (1, 1), (33, 1), (31, 1000), (100, 70)):
    host = ct.rng(1).random(shape, dtype="float32")
    matrix, out = ct.to_device(host), ct.empty(shape[::-1], "float32")
    for kernel in (along_input, along_output):
        ct.poison(out)
        transpose(kernel, matrix, out)
        ct.check(out, host.T, name=f"{kernel.name}, {shape[0]} x {shape[1]}")

# %% bench-2
matrix = ct.to_device(ct.rng(1).random((rows, columns), dtype="float32"))
out = ct.empty((columns, rows), "float32")
ct.bench(
    {
        "along the input": lambda: transpose(along_input, matrix, out),
        "along the output": lambda: transpose(along_output, matrix, out),
        "copy": ct.vendor.copy(out, matrix),
    },
    bytes=2 * 4 * rows * columns,
    name="transpose, 4096 x 4096",
)
