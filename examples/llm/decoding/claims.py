# ---
# jupyter:
#   cudatut:
#     title: {en: "Decoding: claims", zh: "解码：有关说法"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 120
#     sizes:
#       tokens: [4096, 40]
# ---

# %% [markdown]
# What a tutorial says of the KV cache, tried on one layer: for the next token, all
# tokens are computed again, or one with the cache.

# %% setup
import cudatut as ct
from cudatut.book.llm.kernels.attention import flash
from cudatut.book.llm.decoding.steps import Step, random_bits
from cudatut.book.llm.kernels.linear import linear

tokens = 4096  # of the sequence, with the new one
HEADS, KV_HEADS, HEAD_DIM = 9, 3, 64  # SmolLM2
DIM, FFN = 576, 1536
SHAPES = {
    "qkv": ((HEADS + 2 * KV_HEADS) * HEAD_DIM, DIM),
    "o": (DIM, HEADS * HEAD_DIM),
    "gate_up": (2 * FFN, DIM),
    "down": (DIM, FFN),
}
weights = {name: random_bits(*shape) for name, shape in SHAPES.items()}
step = Step(1, tokens, HEADS, KV_HEADS, HEAD_DIM)
fewer = tokens // 4
q = random_bits(1, tokens, HEADS, HEAD_DIM)
out = ct.empty(q.shape, "uint16")


def products(rows):
    """The layer's four products, of so many rows."""
    pairs = [
        (random_bits(rows, shape[1]), ct.empty((rows, shape[0]), "uint16"))
        for shape in SHAPES.values()
    ]
    return lambda: [
        linear(x, w, y) for w, (x, y) in zip(weights.values(), pairs)
    ]


all_rows, one_row = products(tokens), products(1)
some_rows = products(fewer)
parts = [
    a.reshape(a.shape[1:])[:fewer].reshape(1, fewer, *a.shape[2:])
    for a in (q, step.keys, step.values, out)
]


def without_cache():
    all_rows()
    flash.contiguous(q, step.keys, step.values, out, causal=True)


def with_fewer_tokens():
    some_rows()
    flash.contiguous(*parts, causal=True)


def with_cache():
    one_row()
    step.contiguous()


# %% claim-cache
times = ct.bench(
    {
        "without the cache": without_cache,
        "without the cache, 1,024 tokens": with_fewer_tokens,
        "with the cache": with_cache,
    },
    name="one layer of SmolLM2, the token after 4095",
)
before = times["without the cache"].median_us
if not ct.tool.running():
    ct.claim(
        id="kv-cache-less-work",
        source="CUDATutorial 14",
        place={"en": "section 1, the note", "zh": "第 1 节的提示框"},
        form="said",
        statement={
            "en": "The KV cache trades memory for time: with keys and values "
            "kept, less has to be computed. Time of a layer for the token "
            "after 4,095, without the cache over with it.",
            "zh": "KV 缓存以空间换时间：把键和值存下来，就能减少计算量。"
            "这里是在 4,095 个词元之后，一层计算下一个词元，没有缓存与有缓存的用时之比。",
        },
        expected=1.0,
        measured=before / times["with the cache"].median_us,
        unit="×",
        rule="above",
        control=(
            {
                "en": "without the cache, 1,024 tokens over 4,096: less has to "
                "be computed, which the time has to show",
                "zh": "没有缓存，1,024 个词元与 4,096 个之比：要算的少了，用时也应当少",
            },
            times["without the cache, 1,024 tokens"].median_us / before,
            (0.02, 0.7),
        ),
    )
