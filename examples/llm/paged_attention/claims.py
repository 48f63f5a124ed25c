# ---
# jupyter:
#   cudatut:
#     title: {en: "PagedAttention: claims", zh: "PagedAttention：有关说法"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 120
#     sizes:
#       count: [1000, 20]
#       sequences: [64, 2]
#       many: [4096, 256]
# ---

# %% [markdown]
# What a tutorial says of blocks of keys and values, tried: by the simulation, and
# by our kernel.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.decoding.steps import Step
from cudatut.book.llm.paged_attention.pools import (
    Contiguous,
    Paged,
    draw,
    longest,
    run,
)

SLOTS = 32768
count = 1000
requests = draw(count, ct.rng(0))


def lost(pool):
    """Percent of the pool that holds no token."""
    return 100 - run(pool, requests).shares()["tokens"]


# %% claim-waste
SIZE = 16


def wasted_blocks(pool):
    """Most whole blocks of SIZE slots that a request owned and never used."""
    return run(pool, requests).worst // SIZE


ct.claim(
    id="paged-waste-one-block",
    source="CUDATutorial 14",
    place={
        "en": "section 2, the paragraph on growing sequences",
        "zh": "第 2 节，讲词元数量增加的一段",
    },
    form="said",
    statement={
        "en": "Blocks are filled one after the other, a new one is given only "
        "when all before it are full, so the waste of a request stays within "
        "one block. Whole blocks that any of 1000 requests never used.",
        "zh": "块按顺序填充，前面的块都满了才分配新的，所以每个请求的浪费限制在一个块之内。"
        "这里数 1000 个请求中，任何一个始终没用上的整块数。",
    },
    expected=0,
    measured=wasted_blocks(Paged(SLOTS, SIZE)),
    unit="blocks",
    rule="equal",
    found="counted",
    control=(
        {
            "en": "slots side by side, as many as are allowed",
            "zh": "连续存放，按允许的最大长度",
        },
        wasted_blocks(Contiguous(SLOTS, longest)),
        125,
    ),
)

# %% claim-large
of_16 = lost(Paged(SLOTS, 16))
ct.claim(
    id="paged-large-blocks-waste",
    source="CUDATutorial 14",
    place={
        "en": "section 2, said twice, the second time below the drawing of two "
        "sequences",
        "zh": "第 2 节，说了两遍，第二遍在两个序列的示意图之后",
    },
    form="said",
    statement={
        "en": "Too large a block size may make fragmentation worse. Slots that "
        "hold no token, with blocks of 256 and of 16.",
        "zh": "块太大可能加重碎片问题。这里比较每块 256 个与 16 个词元时，没有存词元的槽位数。",
    },
    expected=1.0,
    measured=lost(Paged(SLOTS, 256)) / of_16,
    unit="×",
    rule="above",
    control=(
        {"en": "blocks of 16 against themselves", "zh": "16 与它自己相比"},
        lost(Paged(SLOTS, 16)) / of_16,
        (0.97, 1.03),
    ),
)

# %% claim-several
sequences = 64
many = 4096  # keys of each
step = Step(sequences, many, 32, 32)
runs = {
    "KV blocks of 16": step.paged(16),
    "again": step.paged(16),
    "KV blocks of 1": step.paged(1),
}
times = ct.bench(
    runs, bytes=step.bytes, name="64 sequences of 4096 keys, 32 heads of 128"
)
base = times["KV blocks of 16"].median_us
ct.claim(
    id="paged-several-tokens-faster",
    source="CUDATutorial 14",
    place={
        "en": "section 2, below the drawing of one sequence",
        "zh": "第 2 节，单个序列的示意图之后",
    },
    form="said",
    statement={
        "en": "Several tokens in a block let the kernel work on more positions "
        "in parallel, which raises utilization and lowers latency. Time of a "
        "step with one token in a block, over that with 16.",
        "zh": "一个块存放多个词元，kernel 就能并行处理更多位置，从而提高利用率、减少延迟。"
        "这里是每块一个词元与每块 16 个词元的用时之比。",
    },
    expected=1.0,
    measured=times["KV blocks of 1"].median_us / base,
    unit="×",
    rule="above",
    control=(
        {"en": "blocks of 16 against themselves", "zh": "16 与它自己相比"},
        times["again"].median_us / base,
        (0.97, 1.03),
    ),
    depends={
        "en": "the kernel: one that works on a block at a time gains; ours takes "
        "16 keys at a time, from however many blocks",
        "zh": "取决于 kernel：一次处理一个块的 kernel 会变快；本书的 kernel 每次取 16 个键，不论来自几个块",
    },
)

# %% [markdown]
# The formula of attention by blocks, as it is printed: in the denominator, the
# factor that adds up a block's scores stands inside the exponential.

# %% claim-formula
rng = ct.rng(0)
keys, query = rng.standard_normal((64, 32)), rng.standard_normal(32)


def weights_add_up_to(block, inside):
    """The sum of all weights, with the scores of a block added before the
    exponential (inside), or the exponentials added."""
    scores = (keys @ query / np.sqrt(32)).reshape(-1, block)
    if inside:
        denominator = np.exp(scores.sum(axis=1)).sum()
    else:
        denominator = np.exp(scores).sum()
    return round(float(np.exp(scores).sum() / denominator), 3)


ct.claim(
    id="paged-formula-denominator",
    source="CUDATutorial 14",
    place={
        "en": "section 2, the formula; the paper prints it in the same way",
        "zh": "第 2 节的公式；原论文印的也一样",
    },
    form="printed",
    statement={
        "en": "The weights of block j are the exponentials of its scores, divided "
        "by the sum over all blocks t of exp(q K_t 1 / sqrt(d)). What the "
        "weights of 64 keys in blocks of 16 add up to.",
        "zh": "第 j 块的权重是该块各分数的指数，除以对所有块 t 求和的 exp(q K_t 1 / sqrt(d))。"
        "这里是 64 个键、每块 16 个时，所有权重之和。",
    },
    expected=1.0,
    measured=weights_add_up_to(16, inside=True),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "the factor 1 behind the exponential",
            "zh": "把因子 1 移到指数之外",
        },
        weights_add_up_to(16, inside=False),
        1.0,
    ),
    depends={
        "en": "right for blocks of one token; otherwise the factor 1 belongs "
        "behind the exponential",
        "zh": "每块一个词元时正确；否则因子 1 应当在指数之外",
    },
)
