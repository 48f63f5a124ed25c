# ---
# jupyter:
#   cudatut:
#     title: {en: "What a model computes for one token: claims", zh: "一个词元要算什么：有关说法"}
#     requires: sm_80
#     extra: llm
#     sizes:
#       VOCAB: [49152, 1000]
#       FEW: [256, 8]
#       MANY: [1024, 40]
# ---

# %% [markdown]
# CUDATutorial says that loading weights takes longer than computing with them.

# %% setup
import cudatut as ct
from cudatut.book.llm.kernels.linear import linear
from cudatut.book.numbers.bf16 import to_bf16

VOCAB = 49152
FEW = 256
MANY = 1024
DIM = 576
rng = ct.rng(0)
w = ct.to_device(to_bf16(rng.random((VOCAB, DIM), dtype="float32") - 0.5))
x = ct.to_device(to_bf16(rng.random((MANY, DIM), dtype="float32")))
y = ct.empty((MANY, VOCAB), "uint16")

# %% claim-io
# What a row more costs where the tensor cores are busy is the time to compute
# with all weights for one token. Their bytes at the GPU's bandwidth are the
# time to load them.
times = ct.bench(
    {f"{n} tokens": lambda n=n: linear(x[:n], w, y[:n]) for n in (FEW, MANY)},
    name="the product that gives the logits",
)
more = times[f"{MANY} tokens"].median_us - times[f"{FEW} tokens"].median_us
computing = more / (MANY - FEW)
loading = w.nbytes / ct.limits.bandwidth() / 1e3
ct.claim(
    id="loading-longer-than-computing",
    source="CUDATutorial 13",
    place={
        "en": "section 1, first point of the list at its end",
        "zh": "第 1 节末尾的列表，第 1 条",
    },
    form="said",
    statement={
        "en": "LLM inference is limited by memory IO, not by computing: to "
        "load 1 MB takes longer than to compute with it. Time to load the weights "
        "of a product, over the time to compute with them for one token.",
        "zh": "LLM 推理的瓶颈是内存 IO，而不是计算：加载 1 MB 数据的时间比用它计算的时间长。"
        "这里是加载一个乘法的权重与用它们为一个词元做计算的时间之比。",
    },
    expected=1.0,
    measured=loading / computing,
    unit="×",
    rule="above",
    control=(
        {
            "en": "loaded once for 1024 tokens of a prompt",
            "zh": "加载一次，供提示的 1024 个词元使用",
        },
        loading / computing / MANY,
        ("TODO", "what it has to be"),
    ),
    depends={
        "en": "in decoding a few sequences; a prompt of many tokens computes "
        "for longer than it loads",
        "zh": "少量序列解码时如此；提示的词元很多时，计算时间比加载时间长",
    },
)
