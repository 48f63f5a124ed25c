# ---
# jupyter:
#   cudatut:
#     title: {en: "Overlap: copy and compute at once", zh: "传输与计算重叠"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       n: [268_435_456, 65_536]
#       many: [256, 8]
#       runs: [3, 1]
#       counts: [[1, 4, 16, 64, 256], [1, 4]]
#       turns: [7, 1]
#       finer: [[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256], [1, 3]]
#       rounds: [11, 1]
#       ways: [[1, 2, 3, 4, 8], [1, 3]]
#       balances: [[0.25, 1.25, 3.0], [1.0]]
# ---

# %% [markdown]
# A gigabyte of numbers goes to the GPU, is computed with, and comes back. Each
# of the three takes its time; in chunks they take it together.

# %% program
import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.overlap.model import best_count, predict
from cudatut.book.memory.overlap.pipeline import Meter, enqueue, pieces

n = 1 << 28  # numbers: 1 GiB to the GPU, and 1 GiB back
many = 256  # chunks with which the cost of one chunk is measured
runs = 3
d = ct.empty(n, "uint32")
x, y = (cuda.pagelocked_empty(n, "uint32") for _ in range(2))
x[:] = ct.rng(0).integers(0, 1 << 32, n, dtype="uint32")
streams = [cuda.Stream() for _ in range(4)]

meter = Meter((x, d, y), streams, many, runs)
slower = max(ms for ms, _ in meter.copies.values())  # both copies at once
steps = meter.steps_for(1.25 * slower)  # the kernel shall be the slowest stage
stages = meter.all(steps)
for name, (ms, cost) in stages.items():
    print(f"{name:>6}: {ms:6.2f} ms, and {1e3 * cost:5.2f} us for each chunk")
print(f"best, by the formula: {best_count(stages):.1f} chunks")

counts = (1, 4, 16, 64, 256)
found = {}
for count in counts:
    ms = meter.ms(pieces(count, x, d, y), steps)
    foretold = predict(count, stages)
    print(f"{count:3} chunks: {foretold:6.2f} ms predicted, {ms:6.2f} measured")
    found[f"{count} chunks, measured / predicted"] = (ms / foretold, "x")
ct.yours("memory/overlap#program", found)

# %% [markdown]
# Is it right for every length and number of chunks? The host makes all steps at
# once: v * A + C, again and again, is v times one number plus another one.

# %% check
from cudatut.book.memory.overlap.pipeline import A, C, moved

forward = ct.Kernel("memory/overlap/overlap.cu", "forward")
for size in ct.RAGGED:
    source, result = (cuda.pagelocked_empty(size, "uint32") for _ in range(2))
    source[:] = ct.rng(size).integers(0, 1 << 32, size, dtype="uint32")
    right, work = moved(source, 5), ct.to_device(source)
    forward(work, size, 5, A, C, grid=ct.cdiv(size, 256), block=256)
    ct.check(work, right, name=f"the kernel alone, {size} numbers")
    for count in (1, 3, 7):
        result[:] = ~right  # wrong everywhere
        arrays = source, ct.empty(size, "uint32"), result
        enqueue(pieces(count, *arrays), streams, 5)
        ct.synchronize()
        ct.check(result, right, name=f"{size} numbers in {count} chunks")

# %% check-all
y[:] = 0
enqueue(pieces(64, x, d, y), streams, steps)
ct.synchronize()
wrong = np.count_nonzero(y != moved(x, steps))
ct.check([wrong], [0], name="wrong numbers of the whole gigabyte")

# %% [markdown]
# The stages, each measured with the others left out of the loop.

# %% stages
NAMES = {
    "in": "copy in",
    "kernel": "kernel",
    "out": "copy out",
    "both": "both copies at once",
}
ct.table(
    "each stage by itself",
    {
        NAMES[stage]: {
            "all bytes": ms,
            "each chunk besides": 1e3 * cost,
            "rate": None if stage == "kernel" else 4e-6 * n / ms,
        }
        for stage, (ms, cost) in stages.items()
    },
    corner="stage",
    units={"all bytes": "ms", "each chunk besides": "us", "rate": "GB/s"},
)

# %% [markdown]
# The pipeline over the number of chunks, beside what the formula says. All numbers
# take turns, in an order that is drawn anew for each round.

# %% sweep
import random
from functools import partial

turns = 7


def medians_ms(launches):
    """Of each the median of so many turns, on the GPU."""
    time_us = ct.time_once_bare if ct.tool.running() else ct.time_hidden
    for launch in launches.values():
        launch()  # the first run is not timed
    times = ct.take_turns(launches, turns, random.Random(0), time=time_us)
    return {name: float(np.median(us)) / 1e3 for name, us in times.items()}


finer = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
foretold = [(count, predict(count, stages)) for count in finer]
in_chunks = {
    count: partial(enqueue, pieces(count, x, d, y), streams, steps)
    for count in finer
}
measured = list(medians_ms(in_chunks).items())
ct.series(
    "time of the pipeline",
    x=("chunks", ""),
    y=("time", "ms"),
    lines={"predicted": foretold, "measured": measured},
)

# %% best
off = [abs(ms / guess - 1) for (_, ms), (_, guess) in zip(measured, foretold)]
least = min(measured, key=lambda point: point[1])
ct.facts(
    "the best number of chunks",
    {
        "by the formula": best_count(stages),
        "measured": least[0],
        "time there": (least[1], "ms"),
        "one chunk / best": measured[0][1] / least[1],
        "most chunks / best": measured[-1][1] / least[1],
        "largest error of the formula": (100 * max(off), "%"),
        "steps of the kernel": steps,
    },
)

# %% [markdown]
# How near is it to the slowest stage? All of them in turns.

# %% bench
rounds = 11
near = min(max(round(best_count(stages)), 1), many)
whole, chunks = pieces(1, x, d, y), pieces(near, x, d, y)


def only(stage):
    return lambda: enqueue(whole, streams, steps, [stage])


bench = ct.bench(
    {
        "copy in": only("in"),
        "kernel": only("kernel"),
        "copy out": only("out"),
        "unsplit": lambda: enqueue(whole, streams, steps),
        "in chunks": lambda: enqueue(chunks, streams, steps),
    },
    name="stages and pipeline",
    rounds=rounds,
)

# %% goal
if not ct.tool.running():
    longest = max(
        ("copy in", "kernel", "copy out"), key=lambda s: bench[s].median_us
    )
    goal = bench.goal("in chunks", longest, 0.95)
    ct.goals("slowest stage / pipeline", {longest: goal})
    ct.facts(
        "the formula beside the pipeline",
        {
            "wanted, at most": (5, "%"),
            "largest error of the formula": (100 * max(off), "%"),
            "within the goal": 100 * max(off) <= 5,
        },
    )

# %% [markdown]
# The same seen by the host's clock, from the first call until all is done.

# %% host
from cudatut.book.memory.overlap.pipeline import wall_ms

done, calls = wall_ms(lambda: enqueue(chunks, streams, steps), runs)
ct.facts(
    "by the host's clock",
    {
        "chunks": near,
        "until all is done": (done, "ms"),
        "in the calls": (calls, "ms"),
        "calls of a chunk": (1e3 * calls / near, "us"),
        "turn of a chunk": (1e3 * done / near, "us"),
    },
)

# %% [markdown]
# How many streams does it take? As many chunks are under way as there are.

# %% streams
ways = (1, 2, 3, 4, 8)
chunks64 = pieces(64, x, d, y)


def row(measured, predicted):
    return {
        "predicted": float(predicted),
        "measured": float(measured),
        "measured / predicted": float(measured / predicted),
    }


own = {count: [cuda.Stream() for _ in range(count)] for count in ways}
found_ms = medians_ms(
    {k: partial(enqueue, chunks64, own[k], steps) for k in ways}
)
rows = {
    f"{k} streams" if k > 1 else "1 stream": row(ms, predict(64, stages, k))
    for k, ms in found_ms.items()
}
MS = {"predicted": "ms", "measured": "ms"}
ct.table("64 chunks, depth-first", rows, corner="streams", units=MS)

# %% [markdown]
# Depth-first or breadth-first? What the queues make of the order can be
# computed, operation by operation.

# %% orders
from cudatut.book.memory.overlap.model import (
    STAGES,
    breadth_first,
    depth_first,
    finish,
)
from cudatut.book.memory.overlap.pipeline import breadth

cost = {name: stages[name][0] / 64 + stages[name][1] for name in STAGES}
each = [cuda.Stream() for _ in range(64)]
ORDERS = {
    "depth-first, 4 streams": (enqueue, depth_first, streams),
    "breadth-first, 4 streams": (breadth, breadth_first, streams),
    "depth-first, 64 streams": (enqueue, depth_first, each),
    "breadth-first, 64 streams": (breadth, breadth_first, each),
}
found_ms = medians_ms(
    {
        name: partial(call, chunks64, own, steps)
        for name, (call, _, own) in ORDERS.items()
    }
)
rows = {
    name: row(found_ms[name], finish(order(64), cost, len(own)))
    for name, (_, order, own) in ORDERS.items()
}
ct.table("64 chunks in two orders", rows, corner="order", units=MS)

# %% [markdown]
# Breadth-first in four streams, if an engine does what one stream has for it before
# it turns to the next stream.

# %% by-stream
by_stream = [
    (stage, c) for stage in STAGES for s in range(4) for c in range(s, 64, 4)
]
ct.table(
    "64 chunks, breadth-first, an engine takes one stream after the other",
    {
        "4 streams": row(
            found_ms["breadth-first, 4 streams"], finish(by_stream, cost, 4)
        )
    },
    corner="streams",
    units=MS,
)

# %% [markdown]
# Other balances: the same copies, and a kernel that takes a quarter of the time
# of both copies at once, a little more than they, three times as long.

# %% balances
balances = (0.25, 1.25, 3.0)
rows = {}
for balance in balances:
    own_steps = meter.steps_for(balance * slower)
    own = meter.all(own_steps)
    count = min(max(round(best_count(own)), 1), many)
    ms = meter.ms(pieces(count, x, d, y), own_steps)
    rows[f"{balance:g} x the copies"] = {
        "chunks": count,
        **row(ms, predict(count, own)),
        "slowest stage / measured": max(own[s][0] for s in STAGES) / ms,
        "both copies at once / measured": own["both"][0] / ms,
    }
ct.table("kernels of other length", rows, corner="kernel", units=MS)

# %% [markdown]
# The same loop with memory that is not pinned, for a quarter of the data in a
# quarter of the chunks, so that a chunk is as large. Each stage alone, in the same
# chunks and by the host's clock, then all of them.

# %% pageable
quarter = n // 4
tight = x[:quarter], y[:quarter]
loose = tight[0].copy(), np.ones_like(tight[1])  # written: their pages exist
rows = {}
for name, (source, result) in {"pinned": tight, "pageable": loose}.items():
    parts = pieces(16, source, d, result)
    ms = {
        NAMES[stage]: wall_ms(
            partial(enqueue, parts, streams, steps, [stage]), runs
        )[0]
        for stage in STAGES
    }
    together, calls = wall_ms(partial(enqueue, parts, streams, steps), runs)
    rows[name] = {
        **ms,
        "sum of the three": sum(ms.values()),
        "in one loop": together,
        "one loop / sum": together / sum(ms.values()),
        "in the calls / one loop": calls / together,
    }
ms_units = [*ms, "sum of the three", "in one loop"]
ct.table(
    "a quarter of the data, 16 chunks in 4 streams",
    rows,
    corner="memory of the host",
    units=dict.fromkeys(ms_units, "ms"),
)

# %% pageable-right
wrong = np.count_nonzero(loose[1] != moved(tight[0], steps))
ct.check([wrong], [0], name="wrong numbers in pageable memory")
