# ---
# jupyter:
#   cudatut:
#     title: {en: "Decoding and the KV cache: what its products wait for", zh: "解码与 KV 缓存：其中的乘法在等什么"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 180
#     sizes:
#       VOCABULARY: [49152, 320]
#       SIDE: [16384, 512]
# ---

# %% [markdown]
# The product with the vocabulary takes longer than its bytes. A span of Q8_0
# has 512 depths, and SmolLM2 has 576: each block copies a second span of which
# an eighth is there, and waits a second time. Three variants wait once: they
# have longer spans, of two lengths, or three stages, so that both spans are
# asked for at the beginning.

# %% setup
from functools import partial

import numpy as np

import cudatut as ct
from cudatut.book.llm.decoding import rivals as decoding_rivals
from cudatut.book.llm.decoding.steps import random_bits, random_blocks
from cudatut.book.llm.kernels import gemv
from cudatut.book.llm.kernels.gemv import BF16, Q4_1, Q8_0, ROWS, Plan
from cudatut.book.numbers.bf16 import to_bf16

# %% spans
FOLDER = "llm/kernels/"
# Bytes between rows in shared memory, for each span of Q8_0: a row with the 14
# bytes by which it may begin later, and 8 rows in different banks.
PITCHES = {256: 304, 512: 560, 576: 656, 768: 848, 1024: 1136}
HEADER = ct.paths.resolve_source(FOLDER + "gemv.cuh").read_text("utf-8")
KERNEL = ct.paths.resolve_source(FOLDER + "gemv.cu").read_text("utf-8")


def format_with(span):
    return Q8_0._replace(span=span, pitch=PITCHES[span])


def kernel_with(span, plan, dtype="float32"):
    """gemv.cu for Q8_0 with spans of so many depths."""
    header = HEADER
    for before, after in (
        ("SPAN = 512, PITCH = 560", f"SPAN = {span}, PITCH = {PITCHES[span]}"),
        # 576 depths are no multiple of 16 bytes. They need not be where a row
        # has only one span.
        ("BYTES % 16 == 0 && ", "" if span == 576 else "BYTES % 16 == 0 && "),
        ("#pragma once", ""),
    ):
        assert header.count(before) == 1
        header = header.replace(before, after)
    assert KERNEL.count('#include "gemv.cuh"') == 1
    source = KERNEL.replace('#include "gemv.cuh"', header)
    return ct.Kernel(source, gemv.instance(Q8_0, plan, dtype, False))


def run_of(kernel, span, plan, x, w, y):
    """As `gemv.gemv` launches it."""
    (n, inputs), outputs = x.shape, len(w)
    grid = ct.cdiv(outputs, plan.outputs), ct.cdiv(n, ROWS)
    return lambda: kernel(
        x, w, y, n, outputs, inputs, grid=grid, block=plan.threads,
        shared=plan.shared(format_with(span), inputs),
    )  # fmt: skip


VOCABULARY = 49152
INPUTS, AS_IT_IS = 576, "spans of 512"
CHOSEN = Plan(64, 2, 2)  # what `gemv.choose` takes for this matrix
VARIANTS = {
    AS_IT_IS: (512, CHOSEN),
    "spans of 512, three stages": (512, CHOSEN._replace(stages=3)),
    "spans of 576": (576, CHOSEN),
    "spans of 768": (768, CHOSEN),
}

# %% predict
# A block waits for memory once for each span that it asks for later. Blocks run
# in rounds, and in each round that costs one latency. We take 0.7 µs for it.
LATENCY_US = 0.7
kernels = {name: kernel_with(*how) for name, how in VARIANTS.items()}
places = {
    name: kernels[name]
    .resources(plan.threads, plan.shared(format_with(span), INPUTS))
    .blocks_per_sm
    for name, (span, plan) in VARIANTS.items()
}
waits = {
    name: ct.cdiv(INPUTS, span) if plan.stages == 2 else 1
    for name, (span, plan) in VARIANTS.items()
}
rounds = {
    name: ct.cdiv(49152 // CHOSEN.outputs, count * ct.device().sm_count)
    for name, count in places.items()
}
latencies = {name: waits[name] * rounds[name] for name in VARIANTS}
ct.table(
    "the vocabulary's product, predicted",
    {
        name: {
            "blocks on an SM": places[name],
            "rounds of blocks": rounds[name],
            "waits of a block": waits[name],
            "gain": LATENCY_US * (latencies[AS_IT_IS] - latencies[name]),
        }
        for name in VARIANTS
    },
    corner="variant",
    units={"gain": "µs"},
)

# %% check
# The same bits as the kernel of the engine: a sum's order does not change.
for outputs, n in ((33, 3), (64, 8), (130, 1)):
    rng = ct.rng(outputs)
    w = random_blocks(outputs, INPUTS, Q8_0, rng)
    # 16 bytes behind it: a sanitizer takes a copy for one of 16 bytes.
    room = ct.to_device(np.append(w.reshape(-1), np.zeros(16, "uint8")))
    w = room[: w.size].reshape(w.shape)
    x = ct.to_device(to_bf16(rng.standard_normal((n, INPUTS), "float32")))
    want = ct.empty((n, outputs), "float32")
    gemv.gemv(x, w, want, plan=CHOSEN)
    for name, (span, plan) in VARIANTS.items():
        y = ct.empty((n, outputs), "float32")
        run_of(kernels[name], span, plan, x, w, y)()
        label = f"{name}, {outputs} outputs, {n} rows"
        ct.check(y, want.get(), name=label, rtol=0, atol=0)

# %% vocabulary
w = ct.to_device(random_blocks(VOCABULARY, INPUTS, Q8_0))
x, y = random_bits(1, INPUTS), ct.empty((1, VOCABULARY), "float32")
runs = {
    name: run_of(kernels[name], span, plan, x, w, y)
    for name, (span, plan) in VARIANTS.items()
}
wide = random_bits(VOCABULARY, INPUTS)
vocabulary = ct.bench(
    {**runs, "PyTorch, bf16": decoding_rivals.matmul(x, wide)},
    bytes=dict.fromkeys(runs, w.nbytes) | {"PyTorch, bf16": wide.nbytes},
    name="one row by the vocabulary, 49152 x 576",
)

# %% gains
if not ct.tool.running():
    before = vocabulary[AS_IT_IS].median_us
    ct.table(
        "the vocabulary's product, gained",
        {
            name: {
                "predicted": LATENCY_US
                * (latencies[AS_IT_IS] - latencies[name]),
                "measured": before - vocabulary[name].median_us,
                "times as fast": before / vocabulary[name].median_us,
            }
            for name in VARIANTS
        },
        corner="variant",
        units={"predicted": "µs", "measured": "µs"},
    )
del w, wide

# %% [markdown]
# Two sentences of the page, tested on a large matrix. Does a row of x more cost
# nothing, up to eight? And does memory deliver long pieces of a row faster than
# short ones, when as many bytes are on their way? The prediction for both: yes.

# %% rows
SIDE = 16384
made = {}
for format in (BF16, Q8_0, Q4_1):
    if format is BF16:
        made[format] = random_bits(SIDE, SIDE)
    else:
        made[format] = ct.to_device(random_blocks(SIDE, SIDE, format))
runs = {}
for format, w in made.items():
    for n in (1, 8, 9):
        name = f"{format.name}, {n} rows" if n > 1 else f"{format.name}, 1 row"
        x, y = random_bits(n, SIDE), ct.empty((n, SIDE), "float32")
        runs[name] = partial(gemv.gemv, x, w, y)
times = ct.bench(
    runs, rounds=25, name="rows of x, by a matrix of 16384 x 16384"
)

# %% rows-beside
if not ct.tool.running():
    ct.table(
        "time beside that of one row",
        {
            format.name: {
                f"{n} rows": times[f"{format.name}, {n} rows"].median_us
                / times[f"{format.name}, 1 row"].median_us
                for n in (8, 9)
            }
            for format in made
        },
        corner="format",
        units=dict.fromkeys(("8 rows", "9 rows"), "×"),
    )

# %% pieces
# Spans of 1024 depths in two stages, of 512 in three, of 256 in five: in each,
# 1024 depths are on their way while a span is multiplied. The last row has the
# shortest pieces with more of them on their way.
w = made[Q8_0]
PIECES = {
    "spans of 1024, two stages": (1024, 2),
    "spans of 512, three stages": (512, 3),
    "spans of 256, five stages": (256, 5),
    "spans of 256, eight stages": (256, 8),
}
x, runs = random_bits(1, SIDE), {}
want = ct.empty((1, SIDE), "float32")
gemv.gemv(x, w, want, plan=CHOSEN)
y = ct.empty((1, SIDE), "float32")
for name, (span, stages) in PIECES.items():
    plan = CHOSEN._replace(stages=stages)
    kernel = kernel_with(span, plan)
    runs[name] = run_of(kernel, span, plan, x, w, y)
    ct.poison(y)
    runs[name]()
    ct.check(y, want.get(), name=name, rtol=0, atol=0)
ct.bench(
    runs,
    bytes=w.nbytes,
    rounds=50,
    name="Q8_0 by pieces, 16384 x 16384",
)
