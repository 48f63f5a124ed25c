# ---
# jupyter:
#   cudatut:
#     title: {en: "Overlap: six chunks", zh: "重叠：六段"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [268_435_456, 65_536]
#       many: [256, 8]
#       runs: [3, 1]
#       turns: [7, 1]
#       counts: [[5, 6, 7, 8, 10], [6]]
#       small: [16_777_216, 65_536]
# ---

# %% [markdown]
# Six chunks take longer than the formula says, in each recording so far. What is it
# that they wait for?

# %% setup
import random
from functools import partial
from itertools import pairwise

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.overlap.model import predict
from cudatut.book.memory.overlap.pipeline import (
    A,
    C,
    Meter,
    enqueue,
    kernel,
    moved,
    pieces,
)
from cudatut.book.memory.overlap.spans import in_chunks
from cudatut.gpu import cupti

n = 1 << 28
many = 256
runs = 3
turns = 7
counts = (5, 6, 7, 8, 10)
d = ct.empty(n, "uint32")
x, y = (cuda.pagelocked_empty(n, "uint32") for _ in range(2))
x[:] = ct.rng(0).integers(0, 1 << 32, n, dtype="uint32")
streams = [cuda.Stream() for _ in range(6)]
four = streams[:4]
meter = Meter((x, d, y), four, many, runs)
steps = meter.steps_for(1.25 * max(ms for ms, _ in meter.copies.values()))
stages = meter.all(steps)
time_us = ct.time_once_bare if ct.tool.running() else ct.time_hidden


def medians_ms(launches):
    """Of each the median of so many turns, on the GPU."""
    for launch in launches.values():
        launch()  # the first run is not timed
    times = ct.take_turns(launches, turns, random.Random(0), time=time_us)
    return {name: float(np.median(us)) / 1e3 for name, us in times.items()}


# %% [markdown]
# Four attempts. Each takes away what might be the reason: that chunk 4 waits for the
# stream of chunk 0, and chunk 5 for that of chunk 1; that two streams have two
# chunks and two have one; that the chunks do not begin at round addresses; that the
# GPU chooses between the streams of chunks. If it is the reason, the formula's time
# is what the attempt takes.


# %% attempts
def at_megabytes(count, *arrays):
    """So many chunks, cut at multiples of 1 MiB."""
    total, unit = arrays[0].size, 1 << 18
    cuts = [total * k // count // unit * unit for k in range(count)]
    cuts.append(total)
    bounds = [(i, j) for i, j in pairwise(cuts) if i < j]
    return [tuple(array[i:j] for array in arrays) for i, j in bounds]


def by_stage(chunks, own, steps):
    """A stream for each stage; events keep the order of a chunk's stages."""
    forward = kernel()
    into, inside, back = own
    for source, work, result in chunks:
        cuda.memcpy_htod_async(work.gpudata, source, into)
        inside.wait_for_event(cuda.Event().record(into))
        forward(
            work, work.size, steps, A, C,
            grid=ct.cdiv(work.size, 256), block=256, stream=inside,
        )  # fmt: skip
        back.wait_for_event(cuda.Event().record(inside))
        cuda.memcpy_dtoh_async(result, work.gpudata, back)


ATTEMPTS = {
    "as on the page": (enqueue, pieces, four),
    "six streams": (enqueue, pieces, streams),
    "three streams": (enqueue, pieces, streams[:3]),
    "cut at multiples of 1 MiB": (enqueue, at_megabytes, four),
    "a stream for each stage": (by_stage, pieces, streams[:3]),
}

# %% check
small = 1 << 24
arrays = x[:small], d[:small], y[:small]
right = moved(arrays[0], steps)
for name, (call, cut, own) in ATTEMPTS.items():
    y[:small] = ~right  # wrong everywhere
    call(cut(6, *arrays), own, steps)
    ct.synchronize()
    wrong = np.count_nonzero(arrays[2] != right)
    ct.check([wrong], [0], name=f"wrong numbers, {name}")

# %% gains
found = medians_ms(
    {
        name: partial(call, cut(6, x, d, y), own, steps)
        for name, (call, cut, own) in ATTEMPTS.items()
    }
)
if not ct.tool.running():
    page, by_formula = found["as on the page"], predict(6, stages)
    table = {
        name: {
            "formula": by_formula,
            "measured": ms,
            "times as fast, predicted": None
            if ms is page
            else page / by_formula,
            "times as fast, measured": None if ms is page else page / ms,
        }
        for name, ms in found.items()
    }
    units = {"formula": "ms", "measured": "ms"}
    ct.table("six chunks, attempts", table, corner="attempt", units=units)

# %% [markdown]
# Where does the time pass? A trace tells four parts: before the first kernel, in
# kernels, between kernels, and after the last one. The calls are enqueued behind
# the same gate as in the other measurements, and only the notes of copies and of
# our kernel are kept.


# %% traced
def traced(launch, count):
    """Of each chunk, stage -> (begin, end) in ms; the last run is told."""
    found = []

    def hear(records):
        for one in records:
            if one.kind != cupti.KERNEL:
                stage = {1: "in", 2: "out"}.get(one.copy_kind)
            elif one.name == "forward":
                stage = "kernel"
            else:
                continue  # the gate, and what replaces the contents of L2
            found.append((one.correlation_id, stage, one.start, one.end))

    with cupti.listen([cupti.KERNEL, 1], hear):  # 1: copies
        launch()
        for _ in range(2):
            time_us(launch)
    calls = sorted({number for number, *_ in found})[-2 * 3 * count :]
    return in_chunks([one for one in found if one[0] >= calls[0]])


PARTS = (
    "before the first kernel",
    "in kernels",
    "between kernels",
    "after the last kernel",
    "all",
)


def parts(rows):
    """How many ms pass before, in, between and after the kernels."""
    spans = sorted(row["kernel"] for row in rows)
    first, reached = spans[0]
    idle = 0.0
    for begin, end in spans[1:]:
        idle += max(begin - reached, 0)
        reached = max(reached, end)
    last = max(row["out"][1] for row in rows)
    ms = first, reached - first - idle, idle, last - reached, last
    return dict(zip(PARTS, ms))


def took(span):
    begin, end = span
    return end - begin


def foretold(count):
    """The same four parts by the formula, as the kernel is the slowest stage."""
    ms = {name: ms / count + cost for name, (ms, cost) in stages.items()}
    all_ms = predict(count, stages)
    ms = ms["in"], all_ms - ms["in"] - ms["out"], 0.0, ms["out"], all_ms
    return dict(zip(PARTS, ms))


# %% where
work = {
    count: partial(enqueue, pieces(count, x, d, y), four, steps)
    for count in counts
}
untraced = medians_ms(work)
listens = not ct.tool.running() and not cupti.listening()
traces = {}
if listens:
    try:
        traces = {count: traced(run, count) for count, run in work.items()}
    except ct.ToolMissing as error:
        if ct.tool.recording():
            raise
        print(error)

# %% where-table
if traces:
    table = {}
    for count, rows in traces.items():
        table[f"{count} chunks, predicted"] = {
            **foretold(count),
            "without a trace": None,
        }
        table[f"{count} chunks, traced"] = {
            **parts(rows),
            "without a trace": untraced[count],
        }
    units = dict.fromkeys((*PARTS, "without a trace"), "ms")
    ct.table("where the time passes", table, corner="chunks", units=units)

# %% kernels
if traces:
    rows = traces[6]
    one = {name: ms / 6 + cost for name, (ms, cost) in stages.items()}
    table, before = {}, None
    for k, row in enumerate(rows):
        begin, end = row["kernel"]
        table[f"chunk {k}"] = {
            "begin": begin,
            "end": end,
            "after its copy in": begin - row["in"][1],
            "after the kernel before it": before and begin - before,
            "duration": took(row["kernel"]),
            "duration / predicted": took(row["kernel"]) / one["kernel"],
        }
        before = end
    units = {
        name: "ms"
        for name in table["chunk 0"]
        if not name.endswith("predicted")
    }
    ct.table("the kernels of six chunks", table, corner="chunk", units=units)

# %% copies
if traces:
    table = {
        f"chunk {k}": {
            "in, begin": row["in"][0],
            "in, end": row["in"][1],
            "in, duration / predicted": took(row["in"]) / one["in"],
            "out, begin": row["out"][0],
            "out, end": row["out"][1],
            "out, duration / predicted": took(row["out"]) / one["out"],
        }
        for k, row in enumerate(rows)
    }
    units = {
        name: "ms"
        for name in table["chunk 0"]
        if not name.endswith("predicted")
    }
    ct.table("the copies of six chunks", table, corner="chunk", units=units)

# %% longer
if traces:
    seen, guess = parts(traces[6]), foretold(6)
    ct.facts(
        "six chunks, longer than predicted",
        {name: (seen[name] - guess[name], "ms") for name in PARTS},
    )
