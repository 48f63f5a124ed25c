# ---
# jupyter:
#   cudatut:
#     title: {en: "Shared memory and tiles", zh: "共享内存与分块"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       shape: [[1000, 700, 900], [100, 70, 90]]
#       side: [1024, 70, 1024]
#       large: [2048, 70]
# ---

# %% [markdown] about
# A matrix product in tiles: the threads of a block load each word once and share
# it. The program is the whole of it, for matrices of any size, and its time beside
# the kernel without tiles.

# %% program
import numpy as np

import cudatut as ct

source = """
#define TILE 32

__global__ void tiled(const float* __restrict__ A,
                      const float* __restrict__ B,
                      float* __restrict__ C, int m, int n, int k) {
  __shared__ float a[TILE][TILE], b[TILE][TILE];
  int x = threadIdx.x, y = threadIdx.y;
  int column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
  float sum = 0;
  for (int start = 0; start < k; start += TILE) {
    a[y][x] = row < m && start + x < k ? A[(size_t)row * k + start + x] : 0.0f;
    b[y][x] = start + y < k && column < n ? B[(size_t)(start + y) * n + column]
                                          : 0.0f;
    __syncthreads();  // no thread reads a tile before all have written it
    for (int i = 0; i < TILE; ++i) sum += a[y][i] * b[i][x];
    __syncthreads();  // no thread writes the next tile before all have read
  }
  if (row < m && column < n) C[(size_t)row * n + column] = sum;
}
"""
kernel = ct.Kernel(source, "tiled")

tile = 32
shape = (1000, 700, 900)
m, n, k = shape
A = ct.rng(0).random((m, k), dtype="float32")
B = ct.rng(1).random((k, n), dtype="float32")
a, b, c = ct.to_device(A), ct.to_device(B), ct.empty((m, n), "float32")
grid = ct.cdiv(n, tile), ct.cdiv(m, tile)
kernel(a, b, c, m, n, k, grid=grid, block=(tile, tile))

expected = A.astype("float64") @ B.astype("float64")
assert np.allclose(c.get(), expected, rtol=1e-4)
print(f"all {c.size} elements are right")

large = 2048
print(f"words from global memory for one result, K = {large}")
print(f"  naive_columns: {2 * large}")
print(f"  tiled:         {2 * ct.cdiv(large, tile)}")

naive = ct.Kernel("basics/ladder/naive_columns.cu", "matmul_naive_columns")
rng, square = ct.rng(2), (large, large)
X = ct.to_device(rng.random(square, dtype="float32"))
Y = ct.to_device(rng.random(square, dtype="float32"))
Z = ct.empty(square, "float32")


def launcher(kernel):
    grid, block = (ct.cdiv(large, tile), ct.cdiv(large, tile)), (tile, tile)
    return lambda: kernel(X, Y, Z, *square, large, grid=grid, block=block)


times = ct.bench(
    {"naive_columns": launcher(naive), "tiled": launcher(kernel)},
    flops=2 * large**3,
    name="2048 x 2048 x 2048",
)
gain = times["naive_columns"].median_us / times["tiled"].median_us
gains = {"tiled, times as fast as naive_columns": (gain, "x")}
ct.yours("basics/shared_memory#program", gains)

# %% [markdown] about-ladder
# From here on the kernels come from their files, as rungs of a ladder that
# launches, checks and times them. `tiled.cu` holds the kernel of the program.

# %% check
from cudatut.book.basics.ladder.ladder import LADDER

ct.check(c, expected, name="the program", rtol=1e-4)
side = 1024
COUNTED = ("naive_columns", "tiled")
for name in COUNTED:  # the profiler counts these launches
    LADDER.check(name, [{"m": side, "n": side, "k": side}])

# %% check-shapes
SHAPES = [
    (1, 1, 1),
    (31, 33, 7),
    (33, 31, 129),
    (100, 70, 50),
    (5, 3, 0),
    (0, 5, 3),
]
LADDER.check("tiled", [{"m": m, "n": n, "k": k} for m, n, k in SHAPES])

# %% [markdown] about-passes
# What the memory of an SM, L1 cache and shared memory in one, must hand out for
# one FMA of a warp: at most 128 bytes in one pass.

# %% predict
lane = np.arange(32)


def passes(words):
    """Rows of 128 bytes that the words of a warp's request lie in."""
    return len(np.unique(np.asarray(words) // 32))


of_a, of_b = passes(0 * lane), passes(lane)  # one word for all; neighbors
predicted = {
    "naive_columns": {
        "global words": 2 * side,
        "passes per FMA": of_a + of_b,
    },
    "tiled": {
        "global words": 2 * side / tile,
        "passes per FMA": of_a / 4 + of_b,  # four words of A at a time
    },
}
ct.table("Predicted per result, K = 1024", predicted, corner="kernel")
naive, in_tiles = predicted["naive_columns"], predicted["tiled"]
ratios = {what: naive[what] / in_tiles[what] for what in naive}
ct.facts(
    "Times as fast, predicted",
    {
        "by words from global memory": ratios["global words"],
        "by passes": ratios["passes per FMA"],
    },
)

# %% count

REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SHARED_LOADS = "smsp__inst_executed_op_shared_ld.sum"
PASSES = "l1tex__data_pipe_lsu_wavefronts.sum"
counted = ct.profile_launches(
    "basics/shared_memory",
    kernel="regex:^matmul_(naive_columns|tiled)$",
    metrics=[REQUESTS, SHARED_LOADS, PASSES],
    launches=len(COUNTED),
    skip=1,  # the program's launch of naive_columns
)
results, fmas = side**2, side**3 // 32  # the latter per warp
rows = {}
for name, of in zip(COUNTED, counted):
    rows[name] = {
        "global words": 32 * of[REQUESTS] / results,
        "shared loads": 32 * of[SHARED_LOADS] / results,
        "passes per FMA": of[PASSES] / fmas,
        # An SM starts one pass and four FMAs of a warp in a clock cycle.
        "most of the FMA limit": 25 * fmas / of[PASSES],
    }
if rows:
    units = {"most of the FMA limit": "%"}
    ct.table("Counted per result, K = 1024", rows, corner="kernel", units=units)
    ct.facts(
        "Passes per FMA of the tiled kernel",
        {
            "if a load of four words takes two": 1 + 2 / 4 + 4 / 32,
            "counted": rows["tiled"]["passes per FMA"],
        },
    )

# %% bench
large = 2048
LADDER.check("tiled", [{"m": large, "n": large, "k": large}])
times = LADDER.bench(
    LADDER.upto("tiled"),
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="2048 x 2048 x 2048",
)

# %% gain
RUNGS = ("naive_rows", "naive_columns", "tiled")
slow, fast, tiles = (times[name].median_us for name in RUNGS)
ct.facts(
    "Times as fast",
    {
        "coalescing: naive_rows / naive_columns": slow / fast,
        "tiles: naive_columns / tiled": fast / tiles,
        "both: naive_rows / tiled": slow / tiles,
    },
)
