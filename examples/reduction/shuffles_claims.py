# ---
# jupyter:
#   cudatut:
#     title: {en: "Sums from register to register: claims", zh: "在寄存器之间求和：有关说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {n: [33554432, 16384, 1048576], turns: [4096, 4]}
# ---

# %% [markdown]
# What other sources say of shuffles, tried.

# %% setup
import numpy as np
import cudatut as ct

from ladder import LADDER

n = 33_554_432
FILE = "reduction/shuffles.cu"
SOURCE = "NVIDIA, CUDA Pro Tip: Do The Kepler Shuffle"

# %% one-for-three-claim
turns = 4096
cycles = {}
for by in ("SHARED", "SHUFFLE"):
    kernel = ct.Kernel(FILE, "sums_of_sums", defines={"BY": by})
    data, took = ct.to_device(np.ones(32, "int32")), ct.empty(1, "int64")
    for _ in range(2):  # the first run fetches the code
        kernel(data, took, turns, grid=1, block=32)
    cycles[by] = int(took.get()[0]) / turns
ratio = cycles["SHARED"] / cycles["SHUFFLE"]
ct.claim(
    id="reduction-shuffle-one-for-three",
    source=SOURCE,
    statement={
        "en": "A shuffle is faster than shared memory, for it is one instruction in place of three "
        "(write, synchronize, read). Here the sum of one warp, alone:",
        "zh": "洗牌用一条指令代替三条（写、同步、读），所以比共享内存快。这里单独测一个线程束的求和：",
    },
    predicted="> 1",
    measured=round(ratio, 2),
    unit="times",
    verdict="confirmed" if ratio > 1.02 else "refuted",
)

# %% always-faster-claim
bench = LADDER.bench(["unrolled", "shuffle"], n=n, name="the step")
whole = bench["unrolled"].median_us / bench["shuffle"].median_us
ct.claim(
    id="reduction-shuffle-always-faster",
    source=SOURCE,
    statement={
        "en": "A shuffle is always faster than a safe use of shared memory. Here the whole reduction:",
        "zh": "洗牌总比安全地使用共享内存快。这里测整个规约：",
    },
    predicted="> 1",
    measured=round(whole, 3),
    unit="times",
    verdict="confirmed"
    if whole > 1.02
    else "depends"
    if whole > 0.98
    else "refuted",
)

# %% activemask-claim
# Undefined behavior: nothing for a sanitizer, which would rightly complain.
length = 20
fives = ct.to_device(np.full(length, 5, "int32"))
total, least = (ct.to_device(np.zeros(1, "int32")) for _ in range(2))
leaving = ct.Kernel(FILE, "sum_leaving")
if not ct.tool.running():
    leaving(fives, total, least, length, grid=1, block=32)
left_total, left_least = int(total.get()[0]), int(least.get()[0])
ct.claim(
    id="reduction-activemask",
    source="Learn CUDA Programming, notes: warplevelPrimitiveReduction (code)",
    statement={
        "en": "The code takes __activemask() as the mask of every step. There all lanes are present; "
        "here some have left. Sum and minimum of 20 fives:",
        "zh": "代码里每一步都用 __activemask() 作掩码。那里所有 lane 都在，这里有些已经退出。20 个 5 的和与最小值：",
    },
    predicted=f"{5 * length}, 5",
    measured=f"{left_total}, {left_least}",
    verdict="confirmed"
    if (left_total, left_least) == (5 * length, 5)
    else "depends",  # on whether all lanes are there
)
