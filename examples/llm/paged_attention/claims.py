# ---
# jupyter:
#   cudatut:
#     title: {en: "PagedAttention: claims", zh: "PagedAttention：有关说法"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 120
#     sizes:
#       prompts: [4, 1]
#       tokens: [4096, 256]
#       held: [512, 256]
# ---

# %% [markdown]
# What a tutorial says of blocks of keys and values, tried: by the simulation, by
# our kernels, and by arithmetic.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.decoding.steps import Step, random_bits
from cudatut.book.llm.kernels.attention import flash
from cudatut.book.llm.kernels.linear import linear
from cudatut.book.llm.paged_attention.pools import (
    LONGEST,
    Contiguous,
    Paged,
    draw,
    longest,
    run,
)

SLOTS = 8192
count = 150


def lost(size, seed):
    """Percent of a pool of blocks of this size that holds no token."""
    requests = draw(count, ct.rng(seed))
    return 100 - run(Paged(SLOTS, size), requests).shares()["tokens"]


# %% claim-waste
SIZE = 16


def wasted_blocks(pool):
    """Most whole blocks of SIZE slots that a request owned and never used, in
    three sets of requests.
    """
    return max(
        run(pool(), draw(count, ct.rng(seed))).worst // SIZE
        for seed in range(3)
    )


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
        "one block. Whole blocks that any of 450 requests never used.",
        "zh": "块按顺序填充，前面的块都满了才分配新的，所以每个请求的浪费限制在一个块之内。"
        "这里数 450 个请求中，任何一个始终没用上的整块数。",
    },
    expected=0,
    measured=wasted_blocks(lambda: Paged(SLOTS, SIZE)),
    found="simulated",
    unit="blocks",
    rule="equal",
    control=(
        {
            "en": "slots side by side, as many as are allowed, where whole "
            "blocks have to stay unused",
            "zh": "按允许的最大长度连续存放，必有整块用不上",
        },
        wasted_blocks(lambda: Contiguous(SLOTS, longest)),
        (50, LONGEST // SIZE),
    ),
)

# %% claim-large
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
        "hold no token, with blocks of 256 over blocks of 16.",
        "zh": "块太大可能加重碎片问题。这里是没有存词元的槽位之比：每块 256 个词元除以每块 16 个。",
    },
    expected=1.0,
    seeds=[lost(256, seed) / lost(16, seed) for seed in range(20)],
    found="simulated",
    unit="×",
    rule="above",
    control=(
        {
            "en": "blocks of 4 over blocks of 16, which have to lose less",
            "zh": "每块 4 个除以每块 16 个，应当浪费得少",
        },
        lost(4, 0) / lost(16, 0),
        (0.0, 0.9),
    ),
)

# %% [markdown]
# Keys and values that do not lie side by side: what does that gain? The memory
# that is not wasted holds more requests at once: 64 in place of 16, one layer of
# SmolLM2. For the same prompts it is only a detour.

# %% apart
HEADS, KV_HEADS, HEAD_DIM, DIM, FFN = 9, 3, 64, 576, 1536
SHAPES = (
    ((HEADS + 2 * KV_HEADS) * HEAD_DIM, DIM),
    (DIM, HEADS * HEAD_DIM),
    (2 * FFN, DIM),
    (DIM, FFN),
)
weights = [random_bits(*shape) for shape in SHAPES]
held = 512  # keys of each


def layer(sequences, paged):
    """A step of decoding for so many sequences."""
    pairs = [
        (
            random_bits(sequences, inputs),
            ct.empty((sequences, outputs), "uint16"),
        )
        for outputs, inputs in SHAPES
    ]
    step = Step(sequences, held, HEADS, KV_HEADS, HEAD_DIM)
    attend = step.paged(SIZE) if paged else step.contiguous

    def run():
        for w, (x, y) in zip(weights, pairs):
            linear(x, w, y)
        attend()

    return run


steps = ct.bench(
    {
        "16 sequences, side by side": layer(16, False),
        "64 sequences, KV blocks of 16": layer(64, True),
    },
    name="one layer of SmolLM2, a step of decoding",
)
prompts = 4
tokens = 4096
q = random_bits(prompts, tokens, 32, 128)
keys, values = (random_bits(prompts, tokens, 8, 128) for _ in "kv")
out = ct.empty(q.shape, "uint16")
starts = tokens * np.arange(prompts + 1, dtype="int32")
lengths = np.full(prompts, tokens, "int32")
work = ct.to_device(flash.order(starts, lengths, flash.tile_for(128)))
blocks = ct.rng(1).permutation(prompts * tokens // SIZE).astype("int32")
flat = [
    x.reshape(prompts * tokens, *x.shape[2:]) for x in (q, keys, values, out)
]
lists = *map(ct.to_device, (starts, lengths, blocks.reshape(prompts, -1))), SIZE


def contiguous():
    flash.contiguous(q, keys, values, out, causal=True)


prefills = ct.bench(
    {
        "side by side": contiguous,
        "again": lambda: contiguous(),
        "KV blocks of 16": lambda: flash.paged(*flat, *lists, work),
    },
    name="attention of 4 prompts of 4096 tokens, 32 query heads share 8",
)

# %% claim-apart
if not ct.tool.running():
    each = {
        "16": steps["16 sequences, side by side"].median_us / 16,
        "64": steps["64 sequences, KV blocks of 16"].median_us / 64,
    }
    us = {row.name: row.median_us for row in prefills.rows}
    ct.claim(
        id="paged-apart-faster",
        source="CUDATutorial 14",
        place={
            "en": "section 3, the summary, second sentence",
            "zh": "第 3 节，总结的第二句",
        },
        form="said",
        statement={
            "en": "Keys and values may lie apart in memory, which raises the "
            "use of the GPU and lowers latency. Time for one request, keys "
            "side by side over keys in blocks of 16.",
            "zh": "键和值可以存放在不连续的内存里，从而提高硬件利用率并减少延迟。这里是平均每个请求的用时之比：连续存放除以每块 16 个。",
        },
        expected=1.0,
        sides=(
            (
                {
                    "en": "use of the GPU: a layer's step with 16 requests, "
                    "beside one with 64, four times as many, for which the "
                    "chapter's pool has room",
                    "zh": "硬件利用率：一层的一步，16 个请求与 64 个请求相比；本章的内存池腾出空间后，容得下四倍的请求",
                },
                each["16"] / each["64"],
            ),
            (
                {
                    "en": "latency: attention of the same four prompts",
                    "zh": "延迟：同样四条提示的注意力",
                },
                us["side by side"] / us["KV blocks of 16"],
            ),
        ),
        depends={
            "en": "on whether the room that is won holds more requests; the "
            "same requests take no less time",
            "zh": "腾出的空间是否用来容纳更多请求；同样的请求并不会更快",
        },
        unit="×",
        rule="above",
        control=(
            {
                "en": "side by side, beside itself; other work on the GPU would "
                "show",
                "zh": "连续存放与自己相比；GPU 上有别的工作时会看出来",
            },
            us["again"] / us["side by side"],
            (0.93, 1.07),
        ),
    )


# %% claim-sequences
def sequences(free, per_token):
    """How many sequences of 512 and of 2,048 tokens have room."""
    return [int(free // (per_token * length)) for length in (512, 2048)]


MIB = 1 << 20
left = 14 * 1024 * MIB  # of 40 GB, beside 13 billion weights of two bytes
real = 2 * 40 * 5120 * 2  # bytes of a token: keys and values of 40 layers
ct.claim(
    id="sequences-in-a-batch",
    source="CUDATutorial 13",
    place={
        "en": "section 1, second point of the list at its end",
        "zh": "第 1 节末尾的列表，第 2 条",
    },
    form="printed",
    statement={
        "en": "With sequences of 512 tokens a batch holds at most 28, with "
        "2,048 at most 7. The text names no model; its source (Anyscale) has 13 "
        "billion weights on 40 GB, of which 14 GiB are left.",
        "zh": "序列长度为 512 时，一个批次最多处理 28 个序列；长度为 2,048 时最多 7 个。原文没有说模型；其出处（Anyscale）是 40 GB 上的"
        " 13B 模型，还剩 14 GiB。",
    },
    expected=[28, 7],
    sides=(
        (
            {"en": "at 1 MiB for a token", "zh": "每个词元 1 MiB"},
            sequences(left, MIB),
        ),
        (
            {
                "en": "40 layers of 5,120 numbers, two bytes each",
                "zh": "40 层，每层 5,120 个数，每个两字节",
            },
            sequences(left, real),
        ),
    ),
    depends={
        "en": "on the model, and what a token of it takes",
        "zh": "哪个模型，以及一个词元占多少",
    },
    found="computed",
    rule="equal",
    control=(
        {
            "en": "twice the memory, which has to hold twice as many",
            "zh": "内存加倍，应当容纳两倍",
        },
        sequences(2 * left, MIB),
        [56, 14],
    ),
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
    found="computed",
    rule="equal",
    control=(
        {
            "en": "the factor 1 behind the exponential",
            "zh": "把因子 1 移到指数之外",
        },
        weights_add_up_to(16, inside=False),
        1.0,
    ),
)
