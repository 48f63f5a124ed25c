# ---
# jupyter:
#   cudatut:
#     title: {en: "Shared memory and tiles", zh: "共享内存与分块"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# A matrix product in tiles: what it saves, what it does not, and what the two kinds of shared memory cost.

# %% setup
import numpy as np
from ladder import LADDER, Matmul

import cudatut as ct
from cudatut.profiler import profile_launches

side = ct.size(1024, 70, profiled=1024)  # m = n = k of the counted launches
lane = np.arange(32)


def lines(words):
    """Cache lines of 128 bytes, or rows of the 32 banks, that a warp's request touches."""
    return len(np.unique(np.asarray(words) // 32))


# %% check
COUNTED = ("naive_columns", "tiled")
for rung in COUNTED:  # these launches come first: the profiler counts them
    LADDER.check(rung, [{"m": side, "n": side, "k": side}])

# %% dynamic
# In the file this stands before the profiler is called, so that one run of it counts everything.
FILE = "basics/shared_memory.cu"
SIZE = 16  # a block of 16 x 16
KINDS = {  # name: kernel, bytes of dynamic shared memory
    "static, known length": ("static_known", 0),
    "dynamic, known length": ("dynamic_known", 2 * SIZE**2 * 4),
    "static, length at run time": ("static_unknown", 0),
    "dynamic, length at run time": ("dynamic_unknown", 2 * SIZE**2 * 4),
}
square = Matmul(side, side, side)


def launcher(kernel, shared, problem):
    """The product by one kernel of shared_memory.cu, as a callable."""
    compiled = ct.Kernel(FILE, kernel)
    grid = ct.cdiv(problem.n, SIZE), ct.cdiv(problem.m, SIZE)
    sizes = problem.m, problem.n, problem.k
    return lambda: compiled(problem.a, problem.b, problem.c, *sizes,
                            grid=grid, block=(SIZE, SIZE), shared=shared)  # fmt: skip


for problem in (square, Matmul(100, 70, 50)):
    for name, kind in KINDS.items():
        ct.poison(problem.c)
        launcher(*kind, problem)()
        problem.compare(f"{name}, {problem.m} x {problem.n} x {problem.k}")

# %% predict-loads
k = side


def loads_per_result(tile):
    """Words that one result costs: from global memory, and from shared memory."""
    results = tile**2
    steps = k // tile
    return steps * 2 * tile**2 / results, steps * 2 * tile * tile**2 / results


ct.facts("k", {"k": k})
ct.facts(
    "words loaded per result",
    {
        "naive, global": 2 * k,
        "16 x 16, global": loads_per_result(16)[0],
        "32 x 32, global": loads_per_result(32)[0],
        "32 x 32, shared": loads_per_result(32)[1],
        "K / 16": k / 16,
        "2 K": 2 * k,
    },
)

# %% predict-requests
TILE = 32
warps = side**2 // 32
naive_sectors = warps * side * (1 + 4)  # A: one word for all lanes; B: 32 neighbors
tiled_sectors = warps * side // TILE * (4 + 4)  # per tile one request for A, one for B
ct.facts(
    "sectors requested, 1024 x 1024 x 1024",
    {
        "naive_columns": naive_sectors,
        "tiled": tiled_sectors,
        "naive_columns / tiled": naive_sectors / tiled_sectors,
    },
)

# %% predict-passes
# What the memory of an SM, which is L1 cache and shared memory in one, must hand out for one FMA of
# a warp: at most 128 bytes in one pass. An SM starts a pass and four such FMAs in every cycle.
passes = {
    "naive_columns": lines(0 * lane) + lines(lane),
    "tiled, word by word": lines(0 * lane) + lines(lane),
    "tiled, four words of A at a time": lines(0 * lane) / 4 + lines(lane),
}
ct.facts("passes per FMA, predicted", passes)
ct.facts(
    "FMA rate that these passes allow, predicted",
    {name: (100 / (4 * p), "%") for name, p in passes.items()},
)
ct.facts(
    "naive_columns / tiled, predicted",
    {
        "by words from global memory": 2 * k / loads_per_result(32)[0],
        "by passes": passes["naive_columns"] / passes["tiled, four words of A at a time"],
    },
)

# %% count
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
SHARED_LOADS = "smsp__inst_executed_op_shared_ld.sum"
PASSES = "l1tex__data_pipe_lsu_wavefronts.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
FROM_MEMORY = "dram__bytes_read.sum"
counted = profile_launches(  # two products now, and four for later
    "basics/shared_memory",
    kernel="regex:^(matmul_(naive_columns|tiled)|(static|dynamic)_(known|unknown))$",
    metrics=[REQUESTS, SECTORS, SHARED_LOADS, PASSES, INSTRUCTIONS, FROM_MEMORY],
    launches=len(COUNTED) + len(KINDS),
)
results, fmas = side**2, side**3 // 32  # the latter per warp
for name, c in zip(COUNTED, counted):
    ct.facts(
        f"{name}, measured",
        {
            "words per result, global": 32 * c[REQUESTS] / results,
            "sectors requested": c[SECTORS],
            "load instructions per result, shared": 32 * c[SHARED_LOADS] / results,
            "passes per FMA": c[PASSES] / fmas,
            "FMA rate that these passes allow": (100 * fmas / (4 * c[PASSES]), "%"),
            "bytes read from memory": (c[FROM_MEMORY] / 1e6, "MB"),
        },
    )

# %% claim-loads
if counted:
    words = 32 * counted[1][REQUESTS] / results
    ct.claim(
        id="loads-per-result-tiled",
        source="CUDATutorial 07",
        statement={
            "en": "With tiles of 32 x 32 in shared memory a result costs K/16 loads from global memory",
            "zh": "用共享内存做 32×32 分块后，每个结果只需 K/16 次全局内存读取",
        },
        predicted=k / 16,
        measured=words,
        unit="words per result, K = 1024",
        verdict="confirmed" if words == k / 16 else "refuted",
    )

# %% check-shapes
SHAPES = [(1, 1, 1), (31, 33, 7), (33, 31, 129), (100, 70, 50), (5, 3, 0), (0, 5, 3)]
LADDER.check("tiled", [{"m": m, "n": n, "k": k} for m, n, k in SHAPES])

# %% bench
large = ct.size(2048, 70)
LADDER.check("tiled", [{"m": large, "n": large, "k": large}])
times = LADDER.bench(
    LADDER.upto("tiled"), m=large, n=large, k=large, rounds=5, name="2048 x 2048 x 2048"
)

# %% claim-gain
rows, columns, tiled = (times[name].median_us for name in ("naive_rows", "naive_columns", "tiled"))
ct.claim(
    id="shared-memory-gain",
    source="CUDATutorial 07",
    statement={
        "en": "What the tiled kernel gains over the first naive one, it gains by shared memory",
        "zh": "分块版本比最初的朴素版本快，快就快在共享内存",
    },
    predicted=rows / tiled,
    measured=columns / tiled,
    unit="time, coalesced naive kernel / tiled",
    verdict="refuted" if (columns / tiled) ** 2 < rows / tiled else "confirmed",
)

# %% dynamic-resources
for kernel, shared in KINDS.values():
    ct.show(ct.Kernel(FILE, kernel).resources(block=(SIZE, SIZE), shared=shared))

# %% dynamic-count
of_kinds = dict(zip(KINDS, counted[len(COUNTED) :]))
if of_kinds:
    ct.facts("instructions per FMA", {name: c[INSTRUCTIONS] / fmas for name, c in of_kinds.items()})
    ct.facts(
        "loads from shared memory per FMA",
        {name: c[SHARED_LOADS] / fmas for name, c in of_kinds.items()},
    )

# %% dynamic-bench
big = Matmul(large, large, large)
kind_times = ct.bench(
    {name: launcher(*kind, big) for name, kind in KINDS.items()},
    flops=big.flops,
    rounds=11,
    name="2048 x 2048 x 2048, blocks of 16 x 16",
)

# %% claim-dynamic
fixed, allotted, at_run_time = (
    kind_times[name].median_us
    for name in ("static, known length", "dynamic, known length", "dynamic, length at run time")
)
ct.claim(
    id="dynamic-shared-memory-slower",
    source="CUDA slides 2.7 (RTX 3080)",
    statement={
        "en": "Dynamic shared memory is slower than static: 93.3 against 72.7 ms",
        "zh": "动态共享内存比静态的慢：93.3 ms 对 72.7 ms",
    },
    predicted=93.3 / 72.7,
    measured=allotted / fixed,
    unit="time, dynamic / static",
    verdict="refuted" if allotted / fixed < 1.05 else "confirmed",
)
ct.facts(
    "time / time of static with known length",
    {
        "dynamic, known length": allotted / fixed,
        "dynamic, length at run time": at_run_time / fixed,
    },
)

# %% tail
# K = 20 is no multiple of 16: the second tile of A hangs over the end of its rows. One element,
# the first of row 5, is infinite, so exactly one row of C should not be finite.
m, n, k_odd = 40, 24, 20
a_host = ct.rng(2).random((m, k_odd), dtype="float32")
b_host = ct.rng(3).random((k_odd, n), dtype="float32")
a_host[5, 0] = np.inf
tail = Matmul(data=(a_host, b_host))
tail.check(LADDER["tiled"])
careless = ct.Kernel(FILE, "linear_guard")
careless(tail.a, tail.b, tail.c, m, n, k_odd,
         grid=(ct.cdiv(n, SIZE), ct.cdiv(m, SIZE)), block=(SIZE, SIZE))  # fmt: skip
finite = np.isfinite(tail.c.get()).all(axis=1)
wrong = [int(row) for row in np.flatnonzero(~finite) if row != 5]
ct.facts(
    "rows of C that are not finite",
    {
        "expected": 1,
        "guard on the linear index": int((~finite).sum()),
        "predicted wrong row": 4,  # its tile reads on into row 5
        "wrong row": wrong[0] if wrong else -1,
        "elements NaN there": int(np.isnan(tail.c.get()[4]).sum()),
    },
)

# %% claim-tail
ct.claim(
    id="linear-guard",
    source="CUDATutorial 07",
    statement={
        "en": "Testing one linear index against the size of the matrix is guard enough for a tile",
        "zh": "分块读取时，只要检查线性下标没有超出矩阵大小就够了",
    },
    predicted=0,
    measured=len(wrong),
    unit="wrong rows",
    verdict="refuted" if wrong else "confirmed",
)
