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
from dataclasses import replace

import cudatut as ct
from cudatut.book.gemm.ladder.ladder import LADDER
from cudatut.book.measure.loops import count, disassemble, main_turn

large = 4096
BK, TM, TN = 8, 8, 8


def made_of(rung):
    """What a thread runs in one step of depth 8, by instruction."""
    return count(main_turn(disassemble(rung.compile()), BK * TM * TN))


TURNED = made_of(LADDER["vectorized"])

# %% claim-float4
ct.claim(
    id="float4-one-instruction",
    source="CUDATutorial 11/02",
    place={"en": "section 1, second paragraph", "zh": "第 1 节，第二段"},
    form="said",
    statement={
        "en": "The GPU computes with vectors of four numbers: an operation on "
        "two float4 takes one instruction, as one on two numbers does. FMAs "
        "of a step, for each FFMA in the machine code.",
        "zh": "GPU 以 4 维向量为单位计算：两个 float4 的运算与两个数的运算一样，只需一条指令。"
        "这里是一步里的 FMA 次数与机器码中 FFMA 条数之比。",
    },
    expected=4.0,
    measured=BK * TM * TN / TURNED["FFMA"],
    unit="numbers per instruction",
    rule="equal",
    found="counted",
    control=(
        {
            "en": "words of the step for each LDS.128",
            "zh": "一步里读的字数与 LDS.128 条数之比",
        },
        BK * (TM + TN) / TURNED["LDS.128"],
        4.0,
    ),
)

# %% claim-gain
BEFORE = LADDER["block_tile_2d"]
times = LADDER.bench(
    [BEFORE, replace(BEFORE, name="again"), "vectorized"],
    m=large,
    n=large,
    k=large,
    rounds=5,
    name="4096 x 4096 x 4096",
)
before = times["block_tile_2d"].median_us
ct.claim(
    id="vectorized-gain",
    source="SGEMM worklog, kernels 5 and 6",
    place={
        "en": "the table at the beginning of the worklog",
        "zh": "worklog 开头的表格",
    },
    form="printed",
    statement={
        "en": "Accesses of four words make the product 1.14 times as fast "
        "(15,971.7 to 18,237.3 GFLOP/s, on an RTX A6000).",
        "zh": "一次访问四个字，乘法的速度变为 1.14 倍（15971.7 到 18237.3 GFLOP/s，RTX A6000）。",
    },
    expected=18237.3 / 15971.7,
    measured=before / times["vectorized"].median_us,
    unit="×",
    rule="gain",
    control=(
        {
            "en": "`block_tile_2d` against itself",
            "zh": "`block_tile_2d` 与它自己相比",
        },
        before / times["again"].median_us,
        (0.97, 1.03),
    ),
)

# %% [markdown]
# Four threads read the first four words of four rows, by one load each. Such a
# fault ends the process, so each case runs in one of its own.

# %% claim-extents
PROGRAM = """
import numpy as np
import cudatut as ct
import pycuda.driver as cuda

n = WORDS
x = np.arange(4 * n, dtype="float32").reshape(4, n)
out = ct.empty((4, 4), "float32")
kernel = ct.Kernel('''
__global__ void first_words(const float* x, float4* out, int n) {
  const float* row = x + threadIdx.x * n;
  out[threadIdx.x] = *reinterpret_cast<const float4*>(row);
}
''', "first_words")
try:
    kernel(ct.to_device(x), out, n, grid=1, block=4)
    ct.synchronize()
    print("right" if np.array_equal(out.get(), x[:, :4]) else "wrong")
except cuda.Error as error:
    print("misaligned" if "misaligned" in str(error) else error)
"""


def rows_of(words):
    child = ct.isolated(PROGRAM.replace("WORDS", str(words)))
    return (child.stdout.splitlines() or ["?"])[0]


ct.claim(
    id="float4-multiple-of-four",
    source="CUDATutorial 11/02",
    place={"en": "section 4", "zh": "第 4 节"},
    form="said",
    statement={
        "en": "Vectorized access asks a lot of the input: its extents have to "
        "be multiples of 4. Rows of 6 words, read by four.",
        "zh": "向量化访存对输入数据要求较高：需要是 4 的倍数。这里每行 6 个字，一次读四个。",
    },
    expected="misaligned",
    measured=rows_of(6),
    rule="equal",
    found="counted",
    control=(
        {"en": "rows of 8 words", "zh": "每行 8 个字"},
        rows_of(8),
        "right",
    ),
)

# %% claim-turned
OF_B = BK * TN // 4  # LDS.128 of the tile of B


def wide_of_a(rung):
    return made_of(rung)["LDS.128"] - OF_B


ct.claim(
    id="a-must-be-turned",
    source="CUDATutorial 11/02",
    place={
        "en": "section 1, after the note on LDS.128",
        "zh": "第 1 节，LDS.128 的说明之后",
    },
    form="said",
    statement={
        "en": "What a thread reads of A is not in order in shared memory. So "
        "A has to be transposed on its way in, to be read by four. Wide loads "
        "of A in a kernel that does not transpose it.",
        "zh": "线程在共享内存里读 A 的字并不连续，因此写入时要做转置，才能一次读四个。"
        "这里是不转置 A 的 kernel 对 A 的宽读取。",
    },
    expected=0,
    depends={
        "en": "whether a thread takes one depth at a time; by four depths of a "
        "row A is read by four, too, though that kernel is slower here",
        "zh": "线程是否每次只取一个深度；若一次取一行的四个深度，也能一次读四个，"
        "不过这样的 kernel 在本机较慢",
    },
    sides=(
        (
            {
                "en": "one depth at a time (`block_tile_2d`)",
                "zh": "每次一个深度（`block_tile_2d`）",
            },
            wide_of_a(BEFORE),
        ),
        (
            {
                "en": "four depths of a row at a time",
                "zh": "一次取一行的四个深度",
            },
            wide_of_a(ct.read_rung("gemm/vectorized/vectorized_unturned.cu")),
        ),
    ),
    unit="LDS.128 of A per step",
    rule="equal",
    found="counted",
    control=(
        {
            "en": "transposed (`vectorized`): a count that misses wide loads "
            "would miss these",
            "zh": "做了转置（`vectorized`）；若是数漏了宽读取，这里也会漏",
        },
        wide_of_a(LADDER["vectorized"]),
        BK * TM // 4,
    ),
)
