# ---
# jupyter:
#   cudatut:
#     title: {en: "The engine: sampling", zh: "推理引擎：采样"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 120
#     sizes:
#       rows_n: [256, 4]
# ---

# %% [markdown]
# The sampling kernel beside its reference: rows of logits with parameters of
# their own.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.engine import sampler
from cudatut.book.llm.engine.sampler import Sampling
from cudatut.book.llm.kernels import sampling
from cudatut.book.rivals.torch_rival import rival

# %% sampling
KINDS = {
    "argmax": Sampling(),
    "temperature": Sampling(0.8),
    "top-k": Sampling(0.8, top_k=50),
    "top-p": Sampling(0.8, top_p=0.9),
    "top-k and top-p": Sampling(0.8, top_k=50, top_p=0.9),
}
rows_n = 256
VOCAB = 49152
logits_host = (4 * ct.rng(1).standard_normal((rows_n, VOCAB))).astype("float32")
logits = ct.to_device(logits_host)
best = ct.to_device(np.zeros(rows_n, "uint64"))
tickets = ct.to_device(np.zeros(rows_n, "uint32"))


def draws(how, rows):
    """Parameters of each row, on the GPU, and where its token goes."""
    values = (
        np.full(rows, how.temperature, "float32"),
        np.full(rows, how.top_k, "int32"),
        np.full(rows, how.top_p, "float32"),
        np.full(rows, how.seed or 0, "uint64"),
        np.arange(rows, dtype="int32"),
        np.full(rows, 7, "int32"),
    )
    return [ct.to_device(value) for value in values], ct.empty(rows, "int32")


def drawing(how):
    parameters, out = draws(how, rows_n)

    def run():
        sampling.sample(logits, *parameters, out, best, tickets)

    run.out = out
    return run


for name, how in KINDS.items():
    run = drawing(how)
    run()
    few = min(rows_n, 32)  # the reference takes its time
    expected = [
        sampler.sample(row, how, i, 7)
        for i, row in enumerate(logits_host[:few])
    ]
    ct.check(run.out.get()[:few], np.array(expected, "int32"), name=name)

# %% [markdown]
# One kind once more, launched by hand: a block of 1024 threads for each row.

# %% launch
THREADS, VEC = 1024, 4  # VEC: logits of a load
BINS, CAPACITY = 2048, 8192
name = f"sample<{THREADS},{VEC}>"
kernel = ct.Kernel("llm/kernels/sampling.cu", name)
# Two halves of each bin's sum; logits of the list, and their tokens.
shared = 8 * BINS + 8 * CAPACITY
parts = 1  # blocks of a row; of few rows the launcher takes more
parameters, out = draws(KINDS["top-k"], rows_n)
kernel(
    logits, VOCAB, VOCAB, *parameters, out, parts, best, tickets,
    grid=rows_n * parts, block=THREADS, shared=shared,
)  # fmt: skip
expected = [
    sampler.sample(row, KINDS["top-k"], i, 7)
    for i, row in enumerate(logits_host[:few])
]
ct.check(
    out.get()[:few], np.array(expected, "int32"), name="top-k: launched by hand"
)

# %% bench-sampling
contestants = {name: drawing(how) for name, how in KINDS.items()}
contestants["PyTorch argmax"] = rival(
    lambda torch, x: lambda: torch.argmax(x, -1), logits
)
contestants["PyTorch multinomial"] = rival(
    lambda torch, x: lambda: torch.multinomial(torch.softmax(x / 0.8, -1), 1),
    logits,
)
sampled = ct.bench(
    contestants,
    bytes=4 * rows_n * VOCAB,
    name=f"a token of each of {rows_n} rows",
)
