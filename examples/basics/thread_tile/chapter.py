# ---
# jupyter:
#   cudatut:
#     title: {en: "One thread, many results", zh: "一个线程算多个结果"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       shape: [[1000, 700, 900], [100, 70, 90]]
#       side: [1024, 70, 1024]
#       large: [2048, 70]
# ---

# %% [markdown] about
# A matrix product in which each thread computes eight results, one below the
# other. The program is the whole of it, for matrices of any size, and its time
# beside the tiled kernel.

# %% program
import numpy as np

import cudatut as ct

source = """
#define BM 64  // rows and columns of C that a block computes
#define BN 64
#define BK 8   // depth of a tile
#define TM 8   // results per thread: 64 * 64 / 8 = 512 threads

__global__ void thread_tile(const float* __restrict__ A,
                            const float* __restrict__ B,
                            float* __restrict__ C, int m, int n, int k) {
  __shared__ float a[BM][BK], b[BK][BN];
  int t = threadIdx.x, x = t % BN, y = t / BN * TM;
  int left = blockIdx.x * BN, top = blockIdx.y * BM;
  float sum[TM] = {};
  for (int start = 0; start < k; start += BK) {
    int row = top + t / BK, a_inner = start + t % BK;
    int column = left + t % BN, b_inner = start + t / BN;
    a[t / BK][t % BK] =
        row < m && a_inner < k ? A[(size_t)row * k + a_inner] : 0.0f;
    b[t / BN][t % BN] =
        b_inner < k && column < n ? B[(size_t)b_inner * n + column] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < BK; ++i) {
      float of_b = b[i][x];  // read once, used TM times
#pragma unroll
      for (int r = 0; r < TM; ++r) sum[r] += a[y + r][i] * of_b;
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < TM; ++r) {
    int row = top + y + r, column = left + x;
    if (row < m && column < n) C[(size_t)row * n + column] = sum[r];
  }
}
"""
kernel = ct.Kernel(source, "thread_tile")

shape = (1000, 700, 900)
m, n, k = shape
A = ct.rng(0).random((m, k), dtype="float32")
B = ct.rng(1).random((k, n), dtype="float32")
a, b, c = ct.to_device(A), ct.to_device(B), ct.empty((m, n), "float32")
grid = ct.cdiv(n, 64), ct.cdiv(m, 64)
kernel(a, b, c, m, n, k, grid=grid, block=512)

expected = A.astype("float64") @ B.astype("float64")
assert np.allclose(c.get(), expected, rtol=1e-4)
print(f"all {c.size} elements are right")

large = 2048
steps = ct.cdiv(large, 8)  # a thread loads 2 words in each, for 8 results
print(f"for one result, K = {large}")
print(f"  words from global memory: {2 * steps // 8}")
print(f"  words from shared memory: {(1 + 8) * large // 8}")
print(f"  barriers:                 {2 * steps // 8}")

tiled = ct.Kernel("basics/ladder/tiled.cu", "matmul_tiled")
rng, square = ct.rng(2), (large, large)
X = ct.to_device(rng.random(square, dtype="float32"))
Y = ct.to_device(rng.random(square, dtype="float32"))
Z = ct.empty(square, "float32")


def launcher(kernel, tile, block):
    grid = ct.cdiv(large, tile), ct.cdiv(large, tile)
    return lambda: kernel(X, Y, Z, *square, large, grid=grid, block=block)


times = ct.bench(
    {
        "tiled": launcher(tiled, 32, (32, 32)),
        "thread_tile": launcher(kernel, 64, 512),
    },
    flops=2 * large**3,
    name="2048 x 2048 x 2048",
)
gain = times["tiled"].median_us / times["thread_tile"].median_us
gains = {"thread_tile, times as fast as tiled": (gain, "x")}
ct.yours("basics/thread_tile#program", gains)

# %% [markdown] about-ladder
# From here on the kernels come from their files, as rungs of the ladder.
# `thread_tile.cu` holds the kernel of the program, for tiles of any size.

# %% check
from cudatut.book.basics.ladder.ladder import LADDER

ct.check(c, expected, name="the program", rtol=1e-4)
side = 1024
COUNTED = ("tiled", "thread_tile")
for name in COUNTED:  # the profiler counts these launches
    LADDER.check(name, [{"m": side, "n": side, "k": side}])

# %% check-shapes
SHAPES = [
    (1, 1, 1),
    (31, 33, 7),
    (33, 31, 129),
    (100, 70, 50),
    (65, 64, 9),
    (5, 3, 0),
    (0, 5, 3),
]
LADDER.check("thread_tile", [{"m": m, "n": n, "k": k} for m, n, k in SHAPES])

# %% predict


def per_result(bm, bn, bk, tm, depth):
    """What one result costs, for K = depth: words, and barriers."""
    steps, threads = depth / bk, bm * bn // tm
    loaded = steps * (bm * bk + bk * bn)  # by the block, from global memory
    read = threads * depth * (1 + tm)  # by its threads: one of B, tm of A
    waits = threads * 2 * steps
    results = bm * bn
    return {
        "global words": loaded / results,
        "shared words": read / results,
        "barriers": waits / results,
    }


predicted = {
    "tiled": per_result(32, 32, 32, 1, side),
    "thread_tile": per_result(64, 64, 8, 8, side),
}
ct.table("Predicted per result, K = 1024", predicted, corner="kernel")
one, eight = predicted["tiled"], predicted["thread_tile"]
ct.facts(
    "Fewer words from shared memory",
    {"tiled / thread_tile": one["shared words"] / eight["shared words"]},
)

# %% [markdown] about-passes
# One pass hands out at most 128 bytes. A word that all lanes want is one pass;
# the compiler reads four neighboring words of A with one instruction.

# %% predict-passes
BK, TM = 8, 8  # per step of depth 8: 64 FMAs
passes = {
    "word by word": (BK + BK * TM) / (BK * TM),
    "four words of A in one pass": (BK + BK * TM / 4) / (BK * TM),
    "four words of A in two passes": (BK + BK * TM / 2) / (BK * TM),
}
ct.facts("Passes per FMA of thread_tile, predicted", passes)

# %% count

REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SHARED_LOADS = "smsp__inst_executed_op_shared_ld.sum"
PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
counted = ct.profile_launches(
    "basics/thread_tile",
    kernel="regex:^matmul_(tiled|thread_tile)$",
    metrics=[REQUESTS, SHARED_LOADS, PASSES],
    launches=len(COUNTED),
    skip=1,  # the program's launch of tiled
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
    one, eight = (rows[name]["passes per FMA"] for name in COUNTED)
    ct.facts("Fewer passes", {"tiled / thread_tile": one / eight})

# %% bench
large = 2048
LADDER.check("thread_tile", [{"m": large, "n": large, "k": large}])
times = LADDER.bench(
    LADDER.upto("thread_tile"),
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="2048 x 2048 x 2048",
)

# %% gain
RUNGS = ("naive_rows", "tiled", "thread_tile")
first, one, eight = (times[name].median_us for name in RUNGS)
ct.facts(
    "Times as fast as", {"tiled": one / eight, "naive_rows": first / eight}
)

# %% resources
blocks = {"tiled": (32, 32), "thread_tile": 512}
rows = {}
for name, block in blocks.items():
    of = LADDER[name].compile().resources(block=block)
    rows[name] = {
        "registers": of.registers,
        "blocks per SM": of.blocks_per_sm,
        "occupancy": 100 * of.occupancy,
    }
ct.table("Resources", rows, corner="kernel", units={"occupancy": "%"})

# %% [markdown] about-sass
# The machine code holds no other loads from shared memory than those of the loop.
# The second file is the first one without its promises of alignment.

# %% sass
from cudatut.book.measure.machine_code import sass

FILES = {
    "with __align__(16)": "basics/ladder/thread_tile.cu",
    "without": "basics/ladder/thread_tile_unaligned.cu",
}
rows = {}
for name, file in FILES.items():
    code = [i.text.split()[0] for i in sass(file, "matmul_thread_tile")]
    rows[name] = {
        "LDS": sum(
            1 for op in code if op.startswith("LDS") and "128" not in op
        ),
        "LDS.128": sum(
            1 for op in code if op.startswith("LDS") and "128" in op
        ),
        "FFMA": sum(1 for op in code if op.startswith("FFMA")),
    }
ct.table("Instructions", rows, corner="shared arrays")

# %% sass-lines
code = sass(FILES["with __align__(16)"], "matmul_thread_tile")
for op, lines in (("LDS", 4), ("FFMA", 2)):
    found = [i.text for i in code if i.op == op]
    print(*found[:lines], "...", sep="\n")
