# ---
# jupyter:
#   cudatut:
#     title: {en: "What a model computes for one token", zh: "一个词元要算什么"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 180
#     sizes:
#       N: [8192, 136]
#       VOCAB: [49152, 1000]
#       TOKENS: [[1, 4, 16, 64, 256, 1024], [1, 4, 16, 64, 70]]
# ---

# %% [markdown]
# A whole language model in NumPy. Its first cells need no GPU.

# %% program
import cudatut as ct
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.model.reference import Reference
from cudatut.book.llm.model.tokens import load

tang = Checkpoint.open(ct.paths.examples_dir() / "llm/model/tang.gguf")
words, model = load(tang), Reference(tang)
tokens = [words.bos, *words.encode("春风")]
print("tokens:", *tokens)

text = ""
while len(text) < 48:
    logits = model.forward(tokens)[-1]  # the last token's, one per character
    best = int(logits.argmax())
    if best in words.stop:
        break
    text += words.decode([best])
    tokens = [best]  # the model remembers the others
print("春风" + text)

# %% [markdown]
# The real model: 98 MB, which `fetch` downloads once. A sanitizer has nothing
# to see here.

# %% answer
from cudatut.book.llm.model.fetch import SMOLLM2, fetch
from cudatut.book.llm.model.reference import greedy

QUESTION = "What is the capital of France?"
watched = ct.tool.running()
smollm2 = tang if watched else Checkpoint.open(fetch(), SMOLLM2.sha256)
if not watched:
    english, large = load(smollm2), Reference(smollm2)
    prompt = english.chat([("user", QUESTION)])
    answer = greedy(large, prompt, 8)
    print(len(prompt), "tokens of the prompt, the last ones:", *prompt[-9:])
    print("tokens of the answer:", *answer)
    print(english.decode(answer))

# %% likely
if not watched:
    large.reset()
    logits = large.forward(english.encode("The capital of France is"))[-1]
    best = logits.argsort()[::-1][:4]
    rows = {
        f"`{english.decode([token])}`": {
            "token": int(token),
            "logit": float(logits[token]),
        }
        for token in best
    }
    ct.table("the largest logits", rows, corner="text")

# %% [markdown]
# What a token costs, counted from the sizes in the file's header.

# %% header
config = smollm2.config
ct.facts(
    "the model",
    {
        "layers": config.layers,
        "numbers of a token (dim)": config.dim,
        "query heads": config.heads,
        "KV heads": config.kv_heads,
        "numbers of a head": config.head_dim,
        "width inside the feed-forward part": config.ffn,
        "tokens of the vocabulary": config.vocab,
    },
)

# %% count
from cudatut.book.llm.model.costs import operations, stored, total

SEEN = 1024
in_file = operations(config, 1, SEEN, stored=stored(smollm2))
decode = operations(config, 1, SEEN)
rows = {
    step.name: {
        "weights": step.weights / 1e6,
        "FLOPs": step.flops / 1e6,
        "bytes in bf16": step.bytes / 1e6,
        "bytes as in the file": file.bytes / 1e6,
    }
    for step, file in zip([*decode, total(decode)], [*in_file, total(in_file)])
}
ct.table(
    "one token after 1023 others",
    rows,
    corner="operation",
    units={
        "weights": "million",
        "FLOPs": "MFLOP",
        "bytes in bf16": "MB",
        "bytes as in the file": "MB",
    },
)
ct.facts("KV cache of a token, bf16", {"bytes": config.kv_bytes})

# %% check
import math

import numpy as np

# No weight is forgotten or counted twice.
shapes = config.shapes().values()
ct.check(
    np.array([total(decode).weights, total(in_file).stored]),
    [sum(map(math.prod, shapes)), smollm2.bytes],
    name="weights, and bytes of the file",
)


class Counted(np.ndarray):
    """Weights that count the FLOPs of the products they take part in."""

    flops = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [np.asarray(x) for x in inputs]
        if ufunc is np.matmul:
            (m, k), (_, n) = plain[0].shape, plain[1].shape
            Counted.flops += 2 * m * k * n
        return getattr(ufunc, method)(*plain, **options)


PRODUCTS = "q, k, v", "attention output", "gate, up", "down"
small = Reference(tang)
small.weights = {k: w.view(Counted) for k, w in small.weights.items()}
dim, counted, expected = tang.config.dim, [], []
for new, seen in ((7, 7), (1, 8)):
    Counted.flops = 0
    small.forward(words.encode("春眠不觉晓，处处"[:new]))
    # The reference computes the logits of all tokens.
    counted.append(Counted.flops - 2 * new * dim * tang.config.vocab)
    steps = operations(tang.config, new, seen)
    residual = 2 * tang.config.layers * new * dim
    products = sum(s.flops for s in steps if s.name in PRODUCTS)
    expected.append(products - residual)
ct.check(np.array(counted), expected, name="FLOPs of the products")

# In one go, or token by token with the keys and values of the others kept.
line = [words.bos, *words.encode("白日依山尽，黄河入海流。")]
model.reset()
at_once = model.forward(line)
model.reset()
one_by_one = np.concatenate([model.forward([token]) for token in line])
ct.check(one_by_one, at_once, name="logits, token by token", atol=1e-3)

# %% intensity
STEPS = {
    "decode": operations(config, 1, SEEN),
    "decode, 64 sequences": operations(config, 1, SEEN, sequences=64),
    "prefill, 512 tokens": operations(config, 512, 512),
}
rows = {}
for i, name in enumerate([s.name for s in decode] + ["all"]):
    rows[name] = {}
    for step, found in STEPS.items():
        one = [*found, total(found)][i]
        rows[name][step] = one.flops / one.bytes
ct.table("FLOPs per byte, in bf16", rows, corner="operation")

# %% [markdown]
# From here on a GPU is needed. How fast it reads, and how fast its tensor cores
# multiply: the better of cuBLAS and of this part's product.

# %% rates
from cudatut.book.llm.kernels.linear import linear
from cudatut.book.numbers.bf16 import to_bf16

N = 8192
rng = ct.rng(0)
a, b = (rng.random((N, N), dtype="float32") - 0.5 for _ in range(2))
halves = [ct.to_device(x.astype("float16")) for x in (a, b)]
brains = [ct.to_device(to_bf16(x)) for x in (a, b)]
out16, out = ct.empty((N, N), "float16"), ct.empty((N, N), "uint16")
times = ct.bench(
    {
        "linear.cu, bf16": lambda: linear(*brains, out),
        "cuBLAS, fp16": ct.vendor.matmul(*halves, out16),
    },
    name="a product of 8192 x 8192 x 8192",
    rounds=11,
)

# %% limits
fastest = min(row.median_us for row in times.rows)
BANDWIDTH, TENSOR = ct.limits.bandwidth(), 2 * N**3 / fastest / 1e6
ct.facts(
    "limits of this GPU",
    {
        "GPU memory": (BANDWIDTH, "GB/s"),
        "tensor cores": (TENSOR, "TFLOP/s"),
        "they meet at": (1e3 * TENSOR / BANDWIDTH, "FLOP per byte"),
    },
)

# %% bound
rows = {}
steps = {
    "decode": (decode, 1),
    "decode, weights as in the file": (in_file, 1),
    "decode, 64 sequences": (STEPS["decode, 64 sequences"], 64),
    "prefill, 512 tokens": (STEPS["prefill, 512 tokens"], 512),
}
for name, (found, count) in steps.items():
    one = total(found)
    memory, tensor = one.bytes / BANDWIDTH / 1e3, one.flops / TENSOR / 1e6
    rows[name] = {
        "GPU memory": memory,
        "tensor cores": tensor,
        "tokens per second, at most": 1e6 * count / max(memory, tensor),
    }
ct.table(
    "a step takes at least",
    rows,
    corner="kind of step",
    units={"GPU memory": "us", "tensor cores": "us"},
)

# %% [markdown]
# The last product of the model, for one token and for many.

# %% logits
VOCAB = 49152
DIM = 576
TOKENS = (1, 4, 16, 64, 256, 1024)
w = ct.to_device(to_bf16(rng.random((VOCAB, DIM), dtype="float32") - 0.5))
x = ct.to_device(to_bf16(rng.random((max(TOKENS), DIM), dtype="float32")))
y = ct.empty((max(TOKENS), VOCAB), "uint16")
moved = {n: 2 * (VOCAB * DIM + n * DIM + n * VOCAB) for n in TOKENS}
times = ct.bench(
    {f"{n} tokens": lambda n=n: linear(x[:n], w, y[:n]) for n in TOKENS},
    bytes={f"{n} tokens": nbytes for n, nbytes in moved.items()},
    name="the product that gives the logits",
)

# %% rows
rows = {}
for n in TOKENS:
    us = times[f"{n} tokens"].median_us
    rows[f"{n}"] = {
        "GPU memory": moved[n] / BANDWIDTH / 1e3,
        "tensor cores": 2 * n * VOCAB * DIM / TENSOR / 1e6,
        "measured": us,
        "measured, per token": us / n,
    }
ct.table(
    "time of the product that gives the logits",
    rows,
    corner="tokens",
    units=dict.fromkeys(next(iter(rows.values())), "us"),
)
ct.facts(
    "64 tokens, in times of one",
    {
        "by its bytes": moved[64] / moved[1],
        "by its FLOPs": 64,
        "measured": times["64 tokens"].median_us / times["1 tokens"].median_us,
    },
)

# %% check-rows
from cudatut.book.numbers.bf16 import to_float

few = to_float(y[:3].get()[:, :1000])
exact = to_float(x[:3].get()).astype("float64") @ to_float(w[:1000].get()).T
ct.check(few, exact, name="3 x 1000 of the logits", rtol=1 / 128, atol=1e-2)

# %% [markdown]
# The same product launched by hand, for one token: tiles of 16 rows and 64
# columns of the result, and 4 slabs of 64 inputs on their way.

# %% launch
n, ROWS, COLUMNS, DEPTH, STAGES = 1, 16, 64, 64, 4
one = ct.empty((n, VOCAB), "float32")
name = f"linear<{ROWS},{COLUMNS},{DEPTH},16,16,{STAGES},float,false>"
kernel = ct.Kernel("llm/kernels/linear.cu", name)
# A block for each tile, a warp for each 16 x 16 of it, and dynamic shared
# memory for the slabs of x and W, in bf16.
tiles = ct.cdiv(n, ROWS) * ct.cdiv(VOCAB, COLUMNS)
warps = (ROWS // 16) * (COLUMNS // 16)
slabs = STAGES * (ROWS + COLUMNS) * DEPTH * 2  # bytes
kernel(x[:n], w, one, n, VOCAB, DIM, grid=tiles, block=32 * warps, shared=slabs)

exact = to_float(x[:n].get()).astype("float64") @ to_float(w.get()).T
ct.check(one, exact, name="logits of one token", rtol=1e-4, atol=1e-3)
