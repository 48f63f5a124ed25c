# ---
# jupyter:
#   cudatut:
#     title: {en: "The speed of shared memory: claims of other sources", zh: "共享内存的速度：其他资料的说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       steps: [20000, 500]
#       turns: [4096, 16]
#       large: [4096, 96]
# ---

# %% [markdown] about
# How long a load from shared memory takes, how many fit into a clock cycle, and
# what happens where the words of a warp lie in the same bank.

# %% latency
import math

import numpy as np

import cudatut as ct

FILE = "basics/shared_memory/shared_memory_speed.cu"
chase, chain = ct.Kernel(FILE, "chase"), ct.Kernel(FILE, "chain")
places = 1024
steps = 20_000
rng = ct.rng(0)
order = np.concatenate([[0], 1 + rng.permutation(places - 1)])
following = np.zeros(places, "int32")
following[order] = 4 * np.roll(order, -1)
last, ns = ct.empty(1, "int32"), ct.empty(1, "int64")
for _ in range(2):  # the first run fetches the code
    chase(ct.to_device(following), last, ns, places, steps, grid=1, block=256)
ct.check(last, 4 * order[[steps % places]], name="chase")
shared_ns = int(ns.get()[0]) / steps

value, a, b = ct.empty(1, "float32"), np.float32(0.999), np.float32(0.001)
for count in (5, steps, steps):
    chain(value, ns, a, b, count, grid=1, block=1)
    fixed = np.float64(b) / (1 - np.float64(a))
    there = fixed * (1 - np.float64(a) ** count)
    ct.check(value, np.array([there]), name=f"chain of {count}", rtol=1e-4)
register_ns = int(ns.get()[0]) / steps
ct.facts(
    "each needs the one before",
    {
        "load from shared memory": (shared_ns, "ns"),
        "FMA in registers": (register_ns, "ns"),
    },
)

# %% claim-latency
ct.claim(
    id="shared-memory-five-ns",
    source="CS179 notes",
    place={
        "en": "section on memory access, list on shared memory",
        "zh": "“访存优化”一节，共享内存的列表",
    },
    form="said",
    statement={
        "en": "The latency of shared memory is about 5 ns. Time of a load "
        "that needs the one before, in whole times of 5 ns:",
        "zh": "共享内存的延迟大约是 5 ns。每次读取都要等前一次的结果时，一次"
        "读取的时间是 5 ns 的几倍，取整：",
    },
    expected=1,
    measured=round(shared_ns / 5),
    unit="×",
    rule="equal",
    control=(
        {
            "en": "an FMA that needs the one before",
            "zh": "每次 FMA 都要等前一次的结果",
        },
        round(register_ns / 5),
        0,
    ),
)

# %% [markdown] about-operands
# The same FMAs on all SMs, with an operand from shared memory or from a
# register. Neighboring lanes read neighboring words, so there is no conflict.

# %% operands
turns = 4096
block = 1024
words = rng.random((16, 32), dtype="float32")
x, scale = ct.to_device(words), np.float32(0.001)
grid = 2 * ct.device().sm_count
out = ct.empty(grid * block, "float32")
operands = {
    name: ct.Kernel(FILE, name) for name in ("from_registers", "from_shared")
}


def adding(name, turns=turns):
    return lambda: operands[name](x, out, scale, turns, grid=grid, block=block)


for count in (1, 17, turns):  # many turns, many roundings
    total = np.float64(scale) * count * words.sum(axis=0, dtype="float64")
    for name in operands:
        ct.poison(out)
        adding(name, count)()
        wanted = np.tile(total, out.size // 32)
        ct.check(out, wanted, name=f"{name}, {count} turns", rtol=1e-3)
times = ct.bench(
    {name: adding(name) for name in operands}
    | {"from_registers again": adding("from_registers")},
    flops=2 * 16 * turns * grid * block,
    name="16 FMAs in each turn",
)

# %% claim-registers
registers_us, shared_us, again_us = (
    times[name].median_us for name in (*operands, "from_registers again")
)
ct.claim(
    id="shared-memory-like-registers",
    source="CS179 notes",
    place={
        "en": "section on memory access, first paragraph on shared memory",
        "zh": "“访存优化”一节，讲共享内存的第一段",
    },
    form="said",
    statement={
        "en": "Without bank conflicts shared memory can be as fast as registers. "
        "Time of FMAs with an operand from shared memory, beside FMAs with all "
        "operands in registers, in whole times:",
        "zh": "没有存储体冲突时，共享内存可以与寄存器一样快。FMA 的一个操作数来自"
        "共享内存时，时间是操作数全在寄存器里时的几倍，取整：",
    },
    expected=1,
    measured=round(shared_us / registers_us),
    unit="×",
    rule="equal",
    control=(
        {
            "en": "registers against registers",
            "zh": "寄存器与寄存器比",
        },
        round(again_us / registers_us),
        1,
    ),
)

# %% [markdown] about-strides
# One warp, one load, with strides of 1 to 32 words: how many passes does it take?

# %% strides
strided = ct.Kernel(FILE, "strided")
host = rng.random(1024, dtype="float32")
source, lane = ct.to_device(host), np.arange(32)
STRIDES = range(1, 33)
for stride in STRIDES:
    got = ct.empty(32, "float32")
    strided(source, got, stride, grid=1, block=32)
    ct.check(got, host[stride * lane], name=f"stride {stride}")
PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
counted = ct.profile_launches(
    "basics/shared_memory_speed_claims",
    kernel="strided",
    metrics=[PASSES],
    launches=len(STRIDES),
)

# %% strides-table
if counted:
    passes = {s: int(c[PASSES]) for s, c in zip(STRIDES, counted)}
    ct.table(
        "Passes of one load of a warp",
        {
            s: {"gcd(stride, 32)": math.gcd(s, 32), "counted": n}
            for s, n in passes.items()
            if s in (1, 2, 3, 4, 6, 8, 12, 16, 31, 32)
        },
        corner="stride",
    )

# %% claim-gcd
if counted:
    ct.claim(
        id="bank-conflicts-gcd",
        source="CS179 notes",
        place={
            "en": "section on memory access, list of strides",
            "zh": "“访存优化”一节，各种跨度的列表",
        },
        form="said",
        statement={
            "en": "With a stride of s words a load of a warp has an n-way bank "
            "conflict, n = gcd(s, 32). Of the strides 1 to 32, so many take n "
            "passes:",
            "zh": "跨度为 s 个字时，一个线程束的读取发生 n 路存储体冲突，"
            "n = gcd(s, 32)。跨度 1 到 32 中，恰好需要 n 趟的有几个：",
        },
        expected=32,
        measured=sum(n == math.gcd(s, 32) for s, n in passes.items()),
        rule="equal",
        found="counted",
        control=(
            {
                "en": "a wrong rule, n = s: right for the powers of two only",
                "zh": "错误的规则 n = s：只对 2 的幂成立",
            },
            sum(n == s for s, n in passes.items()),
            6,
        ),
    )

# %% [markdown] about-conflicts
# A product in tiles of 16 x 16; the same with threadIdx.x and threadIdx.y
# exchanged, which makes conflicts, and changes the order in which global memory
# is read; and this one with padded tiles, which have no conflicts.

# %% conflicts
from cudatut.book.basics.ladder.ladder import Matmul

KERNELS = ("plain", "swapped", "padded")
products = {name: ct.Kernel(FILE, name) for name in KERNELS}


def multiplying(name, problem):
    n, kernel = problem.n, products[name]
    data, grid = (problem.a, problem.b, problem.c), (ct.cdiv(n, 16),) * 2
    return lambda: kernel(*data, n, grid=grid, block=(16, 16))


for n in (96, 70, 1):
    problem = Matmul(n, n, n)
    for name in KERNELS:
        ct.poison(problem.c)
        multiplying(name, problem)()
        problem.compare(f"{name}, {n} x {n}")
loads = ct.profile_launches(
    "basics/shared_memory_speed_claims",
    kernel="regex:^(plain|swapped|padded)$",
    metrics=[PASSES, "smsp__inst_executed_op_shared_ld.sum"],
    launches=len(KERNELS),
)
large = 4096
problem = Matmul(large, large, large)
tiles = ct.bench(
    {name: multiplying(name, problem) for name in KERNELS}
    | {"padded again": multiplying("padded", problem)},
    flops=problem.flops,
    rounds=5,
    name="4096 x 4096 x 4096, tiles of 16 x 16",
)

# %% conflicts-table
plain, swapped, padded, again = (
    tiles[name].median_us for name in (*KERNELS, "padded again")
)
if loads:
    ct.table(
        "Tiles of 16 x 16",
        {
            name: {
                "passes per load": c[PASSES]
                / c["smsp__inst_executed_op_shared_ld.sum"],
                "time / time of the first": tiles[name].median_us / plain,
            }
            for name, c in zip(KERNELS, loads)
        },
        corner="kernel",
    )

# %% [markdown] about-slides
# The slides' events stand around allocation, copies and kernel. So do these.

# %% as-the-slides
import pycuda.driver as cuda

result = np.empty((large, large), "float32")


def around(name):
    """Milliseconds between two events around all that the slides' program does."""
    start, stop = cuda.Event(), cuda.Event()
    start.record()
    a, b, c = (cuda.mem_alloc(result.nbytes) for _ in range(3))
    cuda.memcpy_htod(a, problem.host_a)
    cuda.memcpy_htod(b, problem.host_b)
    grid = (ct.cdiv(large, 16),) * 2
    products[name](a, b, c, large, grid=grid, block=(16, 16))
    cuda.memcpy_dtoh(result, c)
    stop.record()
    stop.synchronize()
    return start.time_till(stop)


order = (*KERNELS, "plain")  # the first again, as a control
turns = [[around(name) for name in order] for _ in range(6)]
plain_ms, swapped_ms, padded_ms, again_ms = np.median(turns[1:], axis=0)
ct.facts(
    "allocation, copies and kernel, by events",
    {
        "plain": (plain_ms, "ms"),
        "swapped": (swapped_ms, "ms"),
        "padded": (padded_ms, "ms"),
    },
)

# %% claim-conflicts
ct.claim(
    id="conflicts-double-the-time",
    source="CUDA slides 2.8",
    place={
        "en": "the output of the program and the line below it, RTX 3080",
        "zh": "程序的输出及其下的说明，RTX 3080",
    },
    form="printed",
    statement={
        "en": "The product of 4096 x 4096 matrices takes 68.4 ms without "
        "bank conflicts and 153.3 ms with them. (The kernel with conflicts "
        "also exchanges row and column in global memory; the events stand "
        "around allocation, copies and kernel.) Times as long:",
        "zh": "4096 × 4096 的矩阵乘法，没有存储体冲突时 68.4 ms，有冲突时 "
        "153.3 ms。（有冲突的 kernel 同时把全局内存里的行与列也对调了；事件把"
        "分配、复制和 kernel 都夹在中间。）时间是没有冲突时的：",
    },
    expected=153.3 / 68.4,
    measured=float(swapped_ms / plain_ms),
    unit="×",
    rule="gain",
    control=(
        {
            "en": "the kernel without conflicts again: the copies vary, and this "
            "is by how much",
            "zh": "没有冲突的 kernel 再测一次：复制的时间会波动，这里看得出波动多大",
        },
        float(again_ms / plain_ms),
        (0.9, 1.1),
    ),
)
