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
from cudatut.book.measure import loops
from cudatut.book.gemm.ladder.ladder import BASICS, LADDER

# FMAs of a thread in one turn of the main loop.
FMAS = {"tiled": 32, "thread_tile": 8 * 8, "block_tile_2d": 8 * 8 * 8}
RUNGS = [BASICS.LADDER["tiled"], BASICS.LADDER["thread_tile"]]
kernels = {
    rung.name: rung.compile() for rung in [*RUNGS, LADDER["block_tile_2d"]]
}
turns = {
    name: loops.main_turn(loops.disassemble(kernel), FMAS[name])
    for name, kernel in kernels.items()
}


# %% claim-ptx
def loads_per_fma(name):
    """Words loaded from shared memory for each FMA, in the PTX."""
    lines = loops.ptx(kernels[name])
    words = 0
    for line in lines:
        if line.startswith("ld.shared"):
            words += 4 if ".v4" in line else 2 if ".v2" in line else 1
    return words / sum(line.startswith("fma.rn.f32") for line in lines)


ct.claim(
    id="ptx-two-loads-per-fma",
    source="SGEMM worklog, kernel 3",
    place={"en": "the listing of PTX", "zh": "PTX 代码"},
    form="printed",
    statement={
        "en": "In the PTX of the kernel with shared tiles there are two loads "
        "from shared memory for each FMA.",
        "zh": "共享内存分块的 kernel，在 PTX 里每条 FMA 有两次共享内存读取。",
    },
    expected=2.0,
    measured=loads_per_fma("tiled"),
    unit="words per FMA in the PTX",
    rule="equal",
    found="counted",
    control=(
        {
            "en": "`thread_tile`, which loads 9 words for 8 FMAs",
            "zh": "`thread_tile`，每 8 次 FMA 读 9 个字",
        },
        loads_per_fma("thread_tile"),
        9 / 8,
    ),
)

# %% which-operand
found = [i for i, _ in turns["thread_tile"] if i.op == "LDS"]
print(*[i.text for i in found[:8]], sep="\n")


# %% claim-operand
def wide_operand(name, words_of_a, words_of_b):
    """The operand whose words come by LDS.128, in a turn of the loop."""
    found = [
        (i.name, times) for i, times in turns[name] if i.name.startswith("LDS")
    ]
    words = 4 * sum(times for name, times in found if ".128" in name)
    return {words_of_a: "A", words_of_b: "B"}.get(words, "both or neither")


ct.claim(
    id="vectorized-operand",
    source="SGEMM worklog, kernel 4",
    place={
        "en": "the listing of SASS and the sentence before it",
        "zh": "SASS 代码及其前一句",
    },
    form="said",
    statement={
        "en": "Where a thread computes a column of results, the compiler "
        "combines the loads from the tile of B; those of A stay single. Tile "
        "whose words come by LDS.128.",
        "zh": "每个线程算一列结果时，编译器把对 B 分块的读取合并了，对 A 的仍是逐字读取。"
        "下面是由 LDS.128 读取的分块。",
    },
    expected="B",
    # 8 rows x 8 depths of A; of B one column: 8 depths.
    measured=wide_operand("thread_tile", 8 * 8, 8),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "`block_tile_2d`: its 8 words of B in a row come by LDS.128",
            "zh": "`block_tile_2d`：B 的一行 8 个字由 LDS.128 读取",
        },
        # By pairs come 8 rows x 8 depths of A, by fours 8 depths x 8 of B: the
        # same number of words, so A counts as 0 here.
        wide_operand("block_tile_2d", 0, 8 * 8),
        "B",
    ),
)
