# ---
# jupyter:
#   cudatut:
#     title: {en: "Shared memory: claims of other sources", zh: "共享内存：其他资料的说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       side: [1024, 70, 1024]
#       large: [2048, 70]
# ---

# %% [markdown] about
# What a tile saves, what the gain is due to, whether dynamic shared memory is
# slower, and whether one test of the linear index guards a tile.

# %% setup
import numpy as np
from ladder import LADDER, Matmul

import cudatut as ct

FILE = "basics/shared_memory.cu"
SIZE = 16  # a block of 16 x 16
side = 1024
LADDER.check("tiled", [{"m": side, "n": side, "k": side}])

# %% [markdown] about-dynamic
# Two things that sources mix: where the shared memory comes from, and whether the
# compiler knows the length of the loop. Four kernels keep them apart.

# %% dynamic
SHARED = 2 * SIZE**2 * 4  # bytes
KINDS = {  # name: kernel, bytes of dynamic shared memory
    "static, known length": ("static_known", 0),
    "dynamic, known length": ("dynamic_known", SHARED),
    "static, length at run time": ("static_unknown", 0),
    "dynamic, length at run time": ("dynamic_unknown", SHARED),
}


def launcher(kernel, shared, problem):
    """The product by one kernel of shared_memory.cu, as a callable."""
    compiled = ct.Kernel(FILE, kernel)
    m, n, k = problem.m, problem.n, problem.k
    grid = ct.cdiv(n, SIZE), ct.cdiv(m, SIZE)

    def run():
        data = problem.a, problem.b, problem.c
        compiled(*data, m, n, k, grid=grid, block=(SIZE, SIZE), shared=shared)

    return run


for problem in (Matmul(side, side, side), Matmul(100, 70, 50)):
    for name, kind in KINDS.items():
        ct.poison(problem.c)
        launcher(*kind, problem)()
        problem.compare(f"{name}, {problem.m} x {problem.n} x {problem.k}")

# %% count
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SHARED_LOADS = "smsp__inst_executed_op_shared_ld.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
counted = ct.profile_launches(
    "basics/shared_memory_claims",
    kernel="regex:^(matmul_tiled|(static|dynamic)_(known|unknown))$",
    metrics=[REQUESTS, SHARED_LOADS, INSTRUCTIONS],
    launches=1 + len(KINDS),
)
fmas = side**3 // 32  # of a warp
of_kinds = dict(zip(KINDS, counted[1:]))

# %% claim-loads
if counted:
    words = 32 * counted[0][REQUESTS] / side**2
    ct.claim(
        id="loads-per-result-tiled",
        source="CUDATutorial 07",
        statement={
            "en": "With tiles of 32 x 32 in shared memory a result costs K/16 loads from global memory",
            "zh": "用共享内存做 32×32 分块后，每个结果只需 K/16 次全局内存读取",
        },
        predicted=side / 16,
        measured=words,
        unit="words per result, K = 1024",
        verdict="confirmed" if words == side / 16 else "refuted",
    )

# %% bench
large = 2048
times = LADDER.bench(
    LADDER.upto("tiled"),
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="2048 x 2048 x 2048",
)

# %% claim-gain
RUNGS = ("naive_rows", "naive_columns", "tiled")
rows, columns, tiled = (times[name].median_us for name in RUNGS)
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

# %% dynamic-bench
big = Matmul(large, large, large)
kind_times = ct.bench(
    {name: launcher(*kind, big) for name, kind in KINDS.items()},
    flops=big.flops,
    rounds=11,
    name="2048 x 2048 x 2048, tiles of 16 x 16",
)

# %% dynamic-table
fixed, allotted, at_run_time = (
    kind_times[name].median_us
    for name in (
        "static, known length",
        "dynamic, known length",
        "dynamic, length at run time",
    )
)
if counted:
    rows = {}
    for name, (kernel, shared) in KINDS.items():
        compiled, block = ct.Kernel(FILE, kernel), (SIZE, SIZE)
        resources = compiled.resources(block=block, shared=shared)
        rows[name] = {
            "registers": resources.registers,
            "blocks per SM": resources.blocks_per_sm,
            "shared loads per FMA": of_kinds[name][SHARED_LOADS] / fmas,
            "instructions per FMA": of_kinds[name][INSTRUCTIONS] / fmas,
            "time / time of the first": kind_times[name].median_us / fixed,
        }
    ct.table("Kinds of shared memory", rows, corner="kernel")

# %% claim-dynamic
ct.claim(
    id="dynamic-shared-memory-slower",
    source="CUDA slides 2.7 (RTX 3080)",
    statement={
        "en": "A product with dynamic shared memory takes 93.3 ms, with static 72.7 ms; the loop of the dynamic "
        "kernel has a length that is known at run time only",
        "zh": "矩阵乘法用动态共享内存要 93.3 ms，用静态的要 72.7 ms；其中动态版本的循环长度到运行时才知道",
    },
    predicted=93.3 / 72.7,
    measured=at_run_time / fixed,
    unit="time, dynamic / static",
    # With the loop of the static kernel: does the kind of memory alone cost time?
    verdict="confirmed"
    if allotted / fixed > 1.05
    else "depends"
    if at_run_time / fixed > 1.05
    else "refuted",
)

# %% [markdown] about-tail
# K = 20 is no multiple of 16: the second tile of A hangs over the end of its rows.
# The first element of row 5 is infinite, so one row of C should not be finite.

# %% tail
m, n, k_odd = 40, 24, 20
a_host = ct.rng(2).random((m, k_odd), dtype="float32")
b_host = ct.rng(3).random((k_odd, n), dtype="float32")
a_host[5, 0] = np.inf
tail = Matmul(data=(a_host, b_host))
tail.check(LADDER["tiled"])
careless = ct.Kernel(FILE, "linear_guard")
grid = ct.cdiv(n, SIZE), ct.cdiv(m, SIZE)
data = tail.a, tail.b, tail.c
careless(*data, m, n, k_odd, grid=grid, block=(SIZE, SIZE))
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
