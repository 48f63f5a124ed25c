# ---
# jupyter:
#   cudatut:
#     title: {en: "Vectorized access: claims", zh: "向量化访存：有关说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       large: [4096, 48]
# ---

# %% [markdown]
# What other sources say of four words per instruction, tried.

# %% setup
import cudatut as ct
from ladder import LADDER
from loops import count, disassemble, main_turn

large = 4096
BK, TM, TN = 8, 8, 8

# %% claim-float4
made_of = count(
    main_turn(disassemble(LADDER["vectorized"].compile()), BK * TM * TN)
)
ct.claim(
    id="float4-one-instruction",
    source="CUDATutorial 11/02",
    statement={
        "en": "The GPU computes a float4 in one instruction. Then 512 FMAs of a thread are 128 instructions",
        "zh": "GPU 用一条指令就能完成一个 float4 的计算。照此说来，一个线程的 512 次 FMA 是 128 条指令",
    },
    predicted=BK * TM * TN // 4,
    measured=made_of["FFMA"],
    unit="FFMA",
    verdict="confirmed" if made_of["FFMA"] == BK * TM * TN // 4 else "refuted",
)

# %% claim-gain
times = LADDER.bench(
    ["block_tile_2d", "vectorized"],
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="4096 x 4096 x 4096",
)
gain = times["block_tile_2d"].median_us / times["vectorized"].median_us
ct.claim(
    id="vectorized-gain",
    source="SGEMM worklog, kernels 5 and 6 (RTX A6000)",
    statement={
        "en": "Accesses of four words make the product 1.14 times as fast (15,972 to 18,237 GFLOP/s)",
        "zh": "一次访问四个字，乘法的速度变为 1.14 倍（15972 到 18237 GFLOP/s）",
    },
    predicted=1.14,
    measured=gain,
    unit="×",
    verdict="confirmed" if abs(gain / 1.14 - 1) < 0.05 else "depends",
)

# %% claim-extents
program = """
import numpy as np
import cudatut as ct
import pycuda.driver as cuda

n = 256
one = np.ones((n, n), "float32")
room, b = ct.to_device(np.ones(n * n + 4, "float32")), ct.to_device(one)
c = ct.empty((n, n), "float32")
a = room[OFFSET : OFFSET + n * n].reshape(n, n)
kernel = ct.Kernel("gemm/vectorized.cu", "sgemm_vectorized<128,128,8,8,8>")
try:
    kernel(a, b, c, n, n, n, 1.0, 0.0, grid=(2, 2), block=256)
    ct.synchronize()
    print(bool((c.get() == n).all()))
except cuda.Error as error:
    print(error)
"""
child = ct.isolated(program.replace("OFFSET", "1"))
said = (child.stdout.splitlines() or ["?"])[0]
ct.claim(
    id="float4-multiple-of-four",
    source="CUDATutorial 11/02",
    statement={
        "en": "Accesses of four words need extents that are multiples of 4 (tried: whether that is enough)",
        "zh": "一次访问四个字，要求矩阵的各维是 4 的倍数（这里试的是：这样够不够）",
    },
    predicted="True",
    measured=said,
    unit="a 256 x 256, 4 bytes into an allocation",
    verdict="depends" if "misaligned" in said else "confirmed",
)

# %% claim-turned

unturned = ct.read_rung("gemm/vectorized_unturned.cu")
found = {
    name: count(main_turn(disassemble(kernel), BK * TM * TN))
    for name, kernel in (
        ("turned", LADDER["vectorized"].compile()),
        ("as it is", unturned.compile()),
    )
}
ct.claim(
    id="a-must-be-turned",
    source="CUDATutorial 11/02",
    statement={
        "en": "Only if A is transposed on its way in can a thread read four words of it per instruction",
        "zh": "只有把 A 转置后存入共享内存，线程才能一次读它的四个字",
    },
    predicted=found["turned"]["LDS.128"] // 2,  # those of B
    measured=found["as it is"]["LDS.128"],
    unit="LDS.128",
    verdict="refuted"
    if found["as it is"]["LDS.128"] == found["turned"]["LDS.128"]
    else "confirmed",
)
