# ---
# jupyter:
#   cudatut:
#     title: {en: "Bank conflicts of a matrix product: claims", zh: "矩阵乘法里的存储体冲突：有关说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       side: [1024, 48, 1024]
#       large: [4096, 48]
#       turns: [1000, 10, 1000]
# ---

# %% [markdown]
# What the SGEMM worklog and its translation say of bank conflicts, tried: the
# tile of B as its kernels 6, 7 and 8 lay it out, everything else as it is in
# kernel 6.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.gemm.ladder.ladder import Gemm

side = 1024
large = 4096
LAYOUTS = (6, 7, 8)
KERNELS = {
    layout: ct.Kernel(
        "gemm/bank_conflicts/bank_conflicts_linear.cu",
        f"sgemm_linear<{layout}>",
    )
    for layout in LAYOUTS
}


def launcher(problem, layout):
    p, kernel = problem, KERNELS[layout]
    grid = ct.cdiv(p.n, 128), ct.cdiv(p.m, 128)
    arguments = p.a, p.b, p.c, p.m, p.n, p.k, 1.0, 0.0
    return lambda: kernel(*arguments, grid=grid, block=256)


def check(problem):
    for layout in LAYOUTS:
        ct.poison(problem.c)
        launcher(problem, layout)()
        problem.compare(f"layout {layout}, {problem.m} x {problem.n}")


# %% check
check(Gemm(side, side, side))
check(Gemm(130, 260, 33))

# %% [markdown]
# A warp stores over and over: four words per lane, and only the first of the
# four. Lanes eight apart begin in the same bank.

# %% stores
STORES = """
template <int WORDS>
__global__ void store_words(float* out, int turns) {
  __shared__ __align__(16) float words[128];
  const int at = threadIdx.x * 4;
  for (int turn = 0; turn < turns; ++turn) {
    const float v = turn;
    if (WORDS == 4)
      *reinterpret_cast<float4*>(&words[at]) = make_float4(v, v + 1, v + 2, v + 3);
    else
      words[at] = v;
    __syncthreads();
  }
  for (int i = 0; i < WORDS; ++i) out[at + i] = words[at + i];
}
"""
turns = 1000
for words in (4, 1):
    out = ct.to_device(np.zeros(128, "float32"))
    store = ct.Kernel(STORES, f"store_words<{words}>")
    store(out, turns, grid=1, block=32)
    last = np.tile(turns - 1.0 + np.arange(4.0), 32)
    last[np.arange(128) % 4 >= words] = 0
    ct.check(out, last, name=f"{words} words per lane")

# %% count
LOADS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
STORED = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
# The ragged products stand between those of 1024 and the stores.
counted = ct.profile_launches(
    "gemm/bank_conflicts_claims",
    kernel="regex:^(sgemm_linear|store_words)$",
    metrics=[LOADS, STORED],
    launches=8,
)
if counted:
    steps = side // 8 * side**2 / 64 / 32  # of all warps together
    loads = dict(zip(LAYOUTS, (one[LOADS] / steps for one in counted)))
    by_four, single = (one[STORED] / turns for one in counted[6:])

# %% claim-padding
if counted:
    ct.claim(
        id="gemm-padding-keeps-conflicts",
        source="SGEMM worklog (Chinese translation), kernel 8",
        place={"en": "the translator's comment", "zh": "译者的说明"},
        form="said",
        statement={
            "en": "Rows of B that are five words longer do not remove the bank "
            "conflicts of its reads: lanes four apart still meet in a bank. "
            "Conflicts that are left.",
            "zh": "把 B 的行加长 5 个字，并不能消除读取时的存储体冲突："
            "相差 4 的 lane 仍落在同一个存储体。这里是剩下的冲突数。",
        },
        expected=0,
        measured=loads[8],
        unit="conflicts of loads per warp and step",
        rule="above",
        control=(
            {
                "en": "the layout of kernel 7, which removes them",
                "zh": "kernel 7 的布局，它能消除冲突",
            },
            loads[7],
            0.0,
        ),
    )

# %% claim-float4
if counted:
    ct.claim(
        id="gemm-float4-stores",
        source="SGEMM worklog (Chinese translation), kernel 7",
        place={
            "en": "the translator's list of the stores, second item",
            "zh": "译者列出的几种写入，第二条",
        },
        form="said",
        statement={
            "en": "Stores of four words per lane have no bank conflicts, "
            "although lanes eight apart begin in the same bank; stores of "
            "single words to these places have them.",
            "zh": "每个 lane 存四个字时没有存储体冲突，尽管相差 8 的 lane 从同一个存储体开始；"
            "在这些位置逐字存就有冲突。",
        },
        expected=0,
        measured=round(by_four),
        unit="conflicts per store",
        rule="equal",
        found="counted",
        control=(
            {
                "en": "the first of the four words alone",
                "zh": "只存四个字里的第一个",
            },
            round(single),
            3,
        ),
    )

# %% bench
problem = Gemm(large, large, large)
times = ct.bench(
    {
        **{f"layout {one}": launcher(problem, one) for one in LAYOUTS},
        "again": launcher(problem, 6),
    },
    flops=problem.flops,
    rounds=21,
    name=f"{large} x {large} x {large}",
)

# %% claim-slower
base = times["layout 6"].median_us
speeds = {
    layout: base / times[f"layout {layout}"].median_us for layout in (7, 8)
}
CONTROL = (
    {
        "en": "kernel 6's layout against itself",
        "zh": "kernel 6 的布局与它自己相比",
    },
    base / times["again"].median_us,
    (0.985, 1.015),  # what is claimed is a few per cent
)
ct.claim(
    id="gemm-conflicts-slower",
    source="SGEMM worklog, kernels 7 and 8",
    place={
        "en": "note 48; the author's GPU is an RTX A6000",
        "zh": "注 48；作者用的是 RTX A6000",
    },
    form="said",
    statement={
        "en": "Kernels 7 and 8 are slower overall than kernel 6. (The sentence "
        "also says that they remove the bank conflicts; those are counted "
        "above.) Speed of the faster of the two layouts, of kernel 6's.",
        "zh": "kernel 7 和 8 总体上比 kernel 6 慢。（这句话还说它们消除了存储体"
        "冲突；冲突的次数见上面。）这里是两种布局中较快的一种与 kernel 6 的布局的"
        "速度之比。",
    },
    expected=1.0,
    measured=max(speeds.values()),
    unit="×",
    rule="below",
    elsewhere=True,
    control=CONTROL,
)

# %% claim-faster
ct.claim(
    id="gemm-linear-faster",
    source="SGEMM worklog (Chinese translation), kernel 7",
    place={"en": "the translator's conclusion", "zh": "译者的结论"},
    form="said",
    statement={
        "en": "The layout of kernel 7 removes many conflicts of loads and adds "
        "fewer conflicts of stores, so the kernel gets a little faster, on a "
        "V100.",
        "zh": "kernel 7 的布局大幅减少读取的冲突，增加的写入冲突较少，所以性能有一定提升（V100）。",
    },
    expected=1.0,
    measured=speeds[7],
    unit="×",
    rule="above",
    elsewhere=True,
    control=CONTROL,
)
