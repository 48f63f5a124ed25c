# ---
# jupyter:
#   cudatut:
#     title: {en: "Reading PTX and SASS: claims", zh: "读懂 PTX 与 SASS：有关说法"}
#     requires: sm_75
#     timeout_s: 120
#     alone: false
# ---

# %% [markdown]
# What the SGEMM worklog reads from PTX and SASS, read again.

# %% setup
import cudatut as ct
import loops
from ladder import BASICS

# FMAs of a thread in one turn of the main loop.
FMAS = {"tiled": 32, "thread_tile": 8 * 8}
kernels = {name: BASICS.LADDER[name].compile() for name in FMAS}
turns = {
    name: loops.main_turn(loops.disassemble(kernel), FMAS[name])
    for name, kernel in kernels.items()
}

# %% claim-ptx
lines = loops.ptx(kernels["tiled"])
loads = sum(line.startswith("ld.shared") for line in lines)
multiplies = sum(line.startswith("fma.rn.f32") for line in lines)
made_of = loops.count(turns["tiled"])
in_sass = sum(n for op, n in made_of.items() if op.startswith("LDS"))
ct.claim(
    id="ptx-two-loads-per-fma",
    source="SGEMM worklog, kernel 3",
    statement={
        "en": "Every FMA of the kernel with shared tiles needs two loads from shared memory, as the PTX shows. Load instructions "
        "per FMA in what the GPU runs.",
        "zh": "共享内存分块的 kernel，每次 FMA 都要两次共享内存读取，PTX 里看得见。下面是 GPU 实际执行的代码里每条 FMA 对应的读取指令数。",
    },
    predicted=loads / multiplies,
    measured=in_sass / made_of["FFMA"],
    unit="loads per FMA",
    verdict="confirmed" if in_sass >= loads else "refuted",
)

# %% which-operand
found = [i for i, _ in turns["thread_tile"] if i.op == "LDS"]
print(*[i.text for i in found[:8]], sep="\n")

# %% claim-operand
wide = sum(".128" in i.name for i in found)
narrow = len(found) - wide
# A thread needs 8 rows x 8 depths of A, and of B one column: 8 depths.
words_of_a, words_of_b = 8 * 8, 8
is_a = 4 * wide == words_of_a and narrow == words_of_b
ct.claim(
    id="vectorized-operand",
    source="SGEMM worklog, kernel 4",
    statement={
        "en": "Where a thread computes a column of results, the compiler combines the loads from the tile of B; those of A "
        "stay single. Tile whose words come by LDS.128.",
        "zh": "每个线程算一列结果时，编译器把对 B 分块的读取合并了，对 A 的仍是逐字读取。下面是由 LDS.128 读取的分块。",
    },
    predicted="B",
    measured="A" if is_a else "B",
    verdict="refuted" if is_a else "confirmed",
)
