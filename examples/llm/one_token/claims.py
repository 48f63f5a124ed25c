# ---
# jupyter:
#   cudatut:
#     title: {en: "What a model computes for one token: claims", zh: "一个词元要算什么：有关说法"}
#     requires: sm_80
#     extra: llm
#     sizes:
#       VOCAB: [49152, 1024]
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
# time to load them. The control does the same with half of the weights.
half = w[: VOCAB // 2]
of_half = ct.empty((MANY, VOCAB // 2), "uint16")
times = ct.bench(
    {
        **{
            f"{n} tokens": lambda n=n: linear(x[:n], w, y[:n])
            for n in (FEW, MANY)
        },
        **{
            f"half, {n} tokens": lambda n=n: linear(x[:n], half, of_half[:n])
            for n in (FEW, MANY)
        },
    },
    name="the product that gives the logits",
)


def loading_beside_computing(weights, of=""):
    """Time to load these weights over that to compute with them for a token."""
    more = (
        times[f"{of}{MANY} tokens"].median_us
        - times[f"{of}{FEW} tokens"].median_us
    )
    loading = weights.nbytes / ct.limits.bandwidth() / 1e3
    return loading / (more / (MANY - FEW))


ratio = loading_beside_computing(w)
if not ct.tool.running():
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
            "load 1 MB takes longer than to compute with it. Time to load the "
            "weights of a product, over the time to compute with them.",
            "zh": "LLM 推理的瓶颈是内存 IO，而不是计算：加载 1 MB 数据的时间比用它计算的时间长。"
            "这里是加载一个乘法的权重与用它们做计算的时间之比。",
        },
        expected=1.0,
        sides=(
            (
                {
                    "en": "for one token, as in decoding",
                    "zh": "为一个词元计算，解码时如此",
                },
                ratio,
            ),
            (
                {
                    "en": "for the 1,024 tokens of a prompt",
                    "zh": "为提示的 1,024 个词元计算",
                },
                ratio / MANY,
            ),
        ),
        depends={
            "en": "on how many tokens a step computes with what it loads",
            "zh": "一步用加载的权重为多少词元计算",
        },
        unit="×",
        rule="above",
        control=(
            {
                "en": "half of the weights, for which the ratio has to be the "
                "same: a cost apart from the weights would show",
                "zh": "权重减半，比值应当不变；与权重无关的开销会在这里露出来",
            },
            loading_beside_computing(half, "half, ") / ratio,
            (0.6, 1.6),
        ),
    )
