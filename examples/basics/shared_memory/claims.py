# ---
# jupyter:
#   cudatut:
#     title: {en: "Shared memory: claims of other sources", zh: "共享内存：其他资料的说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       side: [1024, 70, 1024]
#       large: [2048, 70]
#       slides: [4096, 70]
#       worklogs: [4092, 70]
# ---

# %% [markdown] about
# What a tile saves, what the gain is due to, whether dynamic shared memory is
# slower, and whether one test of the linear index guards a tile.

# %% setup
import numpy as np
import pycuda.driver as cuda
from cudatut.book.basics.ladder.ladder import LADDER, Matmul

import cudatut as ct

FILE = "basics/shared_memory/shared_memory.cu"
SIZE = 16  # a block of 16 x 16
side = 1024
for name in ("naive_columns", "tiled"):
    LADDER.check(name, [{"m": side, "n": side, "k": side}])

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
kinds = "(static|dynamic)_(known|unknown)"
counted = ct.profile_launches(
    "basics/shared_memory_claims",
    kernel=f"regex:^(matmul_(naive_columns|tiled)|{kinds})$",
    metrics=[REQUESTS, SHARED_LOADS, INSTRUCTIONS],
    launches=2 + len(KINDS),
)
fmas = side**3 // 32  # of a warp
of_kinds = dict(zip(KINDS, counted[2:]))

# %% claim-loads
if counted:
    naive, in_tiles = (32 * c[REQUESTS] / side**2 for c in counted[:2])
    ct.claim(
        id="loads-per-result-tiled",
        source="CUDATutorial 07; SGEMM worklog, kernel 4",
        place={
            "en": "comparison of memory accesses, first list",
            "zh": "访存次数的对比，第一组",
        },
        form="said",
        statement={
            "en": "With tiles of 32 x 32 in shared memory a result costs K/16 "
            "loads from global memory. For K = 1024:",
            "zh": "用共享内存做 32 × 32 分块后，每个结果只需 K/16 次全局内存"
            "读取。K = 1024 时：",
        },
        expected=side / 16,
        measured=in_tiles,
        rule="equal",
        found="counted",
        control=(
            {
                "en": "the naive kernel, which loads 2K words",
                "zh": "朴素 kernel，要读 2K 个字",
            },
            naive,
            2048.0,
        ),
    )

# %% bench
large = 2048
RUNGS = ("naive_rows", "naive_columns", "tiled")
product = Matmul(large, large, large)
runs = {name: product.launcher(LADDER[name]) for name in RUNGS}
times = ct.bench(
    runs | {"naive_columns again": runs["naive_columns"]},
    flops=product.flops,
    rounds=5,
    name="2048 x 2048 x 2048",
)

# %% claim-gain
rows, columns, tiled = (times[name].median_us for name in RUNGS)
again = times["naive_columns again"].median_us
ct.claim(
    id="shared-memory-gain",
    source="CUDATutorial 07",
    place={
        "en": "first sentence of the second part; the table of times, GTX "
        "1080 Ti",
        "zh": "第二部分的第一句；速度对比的表，GTX 1080 Ti",
    },
    form="said",
    statement={
        "en": "Shared memory raises performance. (In the table its kernel "
        "stands beside a naive one whose accesses are not coalesced; "
        "its own are, as a comment in the listing says.) Times as fast "
        "as a kernel that is coalesced and has no shared memory:",
        "zh": "用共享内存提高了性能。（表中与它比较的朴素 kernel 没有合并访问，"
        "而它自己的读取是合并的，代码注释也这样写。）速度是合并访问、不"
        "用共享内存的 kernel 的：",
    },
    expected=1.0,
    measured=columns / tiled,
    unit="×",
    rule="above",
    control=(
        {
            "en": "the coalesced kernel against itself",
            "zh": "合并访问的 kernel 与自己比",
        },
        columns / again,
        (0.97, 1.03),
    ),
)

# %% [markdown] about-worklog
# The step from the coalesced kernel to tiles, at the size of the worklog.

# %% worklog
worklogs = 4092
product = Matmul(worklogs, worklogs, worklogs)
runs = {name: product.launcher(LADDER[name]) for name in RUNGS[1:]}
step = ct.bench(
    runs | {"tiled again": runs["tiled"]},
    flops=product.flops,
    rounds=11,
    name="4092 x 4092 x 4092",
)

# %% claim-worklog
columns_us, tiled_us, again_us = (
    step[name].median_us for name in (*RUNGS[1:], "tiled again")
)
ct.claim(
    id="kernel-3-half-again",
    source="SGEMM worklog, kernel 3",
    place={
        "en": "the sentence below the code, and the table of all kernels, "
        "RTX A6000",
        "zh": "代码之后的一句，以及列出全部 kernel 的表，RTX A6000",
    },
    form="printed",
    statement={
        "en": "Tiles in shared memory make the coalesced kernel 50 % faster: "
        "2980.3 GFLOP/s after 1986.5. Times as fast, at 4092:",
        "zh": "共享内存分块使合并访问的 kernel 快 50 %：由 1986.5 到 2980.3 "
        "GFLOP/s。边长 4092 时，速度是原来的：",
    },
    expected=2980.3 / 1986.5,
    measured=columns_us / tiled_us,
    unit="×",
    rule="gain",
    control=(
        {"en": "the tiled kernel against itself", "zh": "分块 kernel 与自己比"},
        tiled_us / again_us,
        (0.97, 1.03),
    ),
)

# %% dynamic-bench
slides = 4096  # the size of the slides
big = Matmul(slides, slides, slides)
kind_times = ct.bench(
    {name: launcher(*kind, big) for name, kind in KINDS.items()},
    flops=big.flops,
    rounds=5,
    name="4096 x 4096 x 4096, tiles of 16 x 16",
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

# %% [markdown] about-slides
# The slides' events stand around allocation, copies and kernel. So do these.

# %% as-the-slides
result = np.empty((slides, slides), "float32")


def around(kernel, shared):
    """Milliseconds between two events around all that the slides' program does."""
    compiled = ct.Kernel(FILE, kernel)
    start, stop = cuda.Event(), cuda.Event()
    start.record()
    a, b, c = (cuda.mem_alloc(result.nbytes) for _ in range(3))
    cuda.memcpy_htod(a, big.host_a)
    cuda.memcpy_htod(b, big.host_b)
    grid = (ct.cdiv(slides, SIZE),) * 2
    sizes = slides, slides, slides
    compiled(a, b, c, *sizes, grid=grid, block=(SIZE, SIZE), shared=shared)
    cuda.memcpy_dtoh(result, c)
    stop.record()
    stop.synchronize()
    return start.time_till(stop)


TIMED = {
    "static": ("static_known", 0),
    "dynamic": ("dynamic_unknown", SHARED),
    "static again": ("static_known", 0),
}
turns = [
    {name: around(*kind) for name, kind in TIMED.items()} for _ in range(6)
]
with_copies = {
    name: float(np.median([turn[name] for turn in turns[1:]])) for name in TIMED
}
ct.facts(
    "allocation, copies and kernel, by events",
    {name: (ms, "ms") for name, ms in with_copies.items()},
)


# %% claim-dynamic
def beside(kind, other):
    """The time of one kind of kernel beside another's, in words."""
    ratio = kind_times[kind].median_us / kind_times[other].median_us
    if abs(ratio - 1) < 0.02:
        return "as fast"
    return "slower" if ratio > 1 else "faster"


ct.claim(
    id="dynamic-shared-memory-slower",
    source="CUDA slides 2.7",
    place={
        "en": "the output of the program, and the page on dynamic shared memory, "
        "RTX 3080",
        "zh": "程序的输出，以及讲动态共享变量的一页，RTX 3080",
    },
    form="said",
    statement={
        "en": "Dynamic shared memory is a little slower than static. (93.3 ms, "
        "against 72.7 ms, between events that also hold allocation and copies; "
        "the dynamic kernel gets the length of its loop at run time.) The time "
        "of the kernel alone, beside the static one:",
        "zh": "使用动态共享变量会慢一点。（93.3 ms，静态的是 72.7 ms；事件把分配和复制也"
        "夹在中间，动态版本的循环长度到运行时才知道。）只看 kernel 的时间，与静态版本"
        "相比：",
    },
    expected="slower",
    depends={
        "en": "whether the compiler knows the length of the loop",
        "zh": "编译器是否知道循环的长度",
    },
    sides=(
        (
            {
                "en": "length at run time, as there",
                "zh": "到运行时才知道，与原文相同",
            },
            beside("dynamic, length at run time", "static, known length"),
        ),
        (
            {"en": "known to both", "zh": "两者都知道"},
            beside("dynamic, known length", "static, known length"),
        ),
    ),
    rule="equal",
    found="measured",
    control=(
        {
            "en": "at run time for both: were dynamic memory itself slow, it would "
            "be slower here, too",
            "zh": "两者都到运行时才知道；若是动态共享内存本身慢，这里也会慢",
        },
        beside("dynamic, length at run time", "static, length at run time"),
        "as fast",
    ),
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
guarded = ~np.isfinite(tail.c.get()).all(axis=1)
careless = ct.Kernel(FILE, "linear_guard")
grid = ct.cdiv(n, SIZE), ct.cdiv(m, SIZE)
data = tail.a, tail.b, tail.c
careless(*data, m, n, k_odd, grid=grid, block=(SIZE, SIZE))
finite = np.isfinite(tail.c.get()).all(axis=1)
all_finite = Matmul(m, n, k_odd)  # the same shape, with finite numbers
data = all_finite.a, all_finite.b, all_finite.c
careless(*data, m, n, k_odd, grid=grid, block=(SIZE, SIZE))
expected, bound = all_finite.reference
off = np.abs(all_finite.c.get() - expected) > bound
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
    place={
        "en": "the tiled kernel with one-dimensional thread tiles, its loads "
        "(printed in chapter 00 too)",
        "zh": "一维 Thread Tile 的 kernel 里的读取（第 00 章也印出）",
    },
    form="code",
    statement={
        "en": "One test guards the loads of a tile, against accesses out of "
        "bounds as the comment says: the linear index is less than the "
        "size of the matrix. Wrong rows, if K is no multiple of the "
        "tile:",
        "zh": "分块的读取只有一个检查，注释说是防止越界：线性下标小于矩阵大小。"
        "K 不是分块大小的倍数时，出错的行数：",
    },
    expected=0,
    depends={
        "en": "whether all numbers are finite: then the extra words are "
        "multiplied by zeros",
        "zh": "元素是否都有限：都有限时，多读的字会与零相乘",
    },
    sides=(
        (
            {"en": "finite numbers", "zh": "元素都有限"},
            int(off.any(axis=1).sum()),
        ),
        (
            {"en": "one element infinite", "zh": "有一个元素为无穷大"},
            len(wrong),
        ),
    ),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "the infinite element, and a kernel that tests row and column: "
            "a wrong reference would find wrong rows here, too",
            "zh": "有无穷大，但 kernel 分别检查行和列；若是参考结果错了，这里也会"
            "有出错的行",
        },
        int(guarded.sum()) - int(guarded[5]),
        0,
    ),
)
