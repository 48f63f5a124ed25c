# ---
# jupyter:
#   cudatut:
#     title: {en: "Overlap: timelines", zh: "重叠：时间线"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [67_108_864, 65_536]
#       runs: [3, 1]
# ---

# %% [markdown]
# When did each copy and each kernel run? CUPTI notes begin and end of all of
# them. Eight chunks: in one stream, in four, in another order, and with memory
# that is not pinned.

# %% setup
from functools import partial

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.overlap.model import STAGES
from cudatut.book.memory.overlap.pipeline import (
    Meter,
    breadth,
    enqueue,
    moved,
    pieces,
)
from cudatut.book.memory.overlap.spans import broken, busy, spans

n = 1 << 26
runs = 3
d = ct.empty(n, "uint32")
x, y = (cuda.pagelocked_empty(n, "uint32") for _ in range(2))
x[:] = ct.rng(0).integers(0, 1 << 32, n, dtype="uint32")
streams = [cuda.Stream() for _ in range(4)]
meter = Meter((x, d, y), streams, 8, runs)
steps = meter.steps_for(1.25 * max(ms for ms, _ in meter.copies.values()))
pinned = pieces(8, x, d, y)
loose = pieces(8, x.copy(), d, np.ones_like(y))

# %% traces
TRACED = {
    "one stream": (enqueue, pinned, streams[:1]),
    "four streams": (enqueue, pinned, streams),
    "breadth-first": (breadth, pinned, streams),
    "pageable memory": (enqueue, loose, streams),
}
found = {
    name: spans(partial(call, chunks, own, steps))
    for name, (call, chunks, own) in TRACED.items()
}
y[:] = 0
breadth(pinned, streams, steps)
ct.synchronize()
wrong = np.count_nonzero(y != moved(x, steps))
ct.check([wrong], [0], name="wrong numbers, breadth-first")

# %% timelines
for name, rows in found.items():
    if rows:
        table = {
            f"chunk {k}": {
                f"{stage}, {which}": row[stage][end]
                for stage in STAGES
                for end, which in enumerate(("begin", "end"))
            }
            for k, row in enumerate(rows)
        }
        units = dict.fromkeys(table["chunk 0"], "ms")
        ct.table(name, table, corner="chunk", units=units)

# %% [markdown]
# A checker reads the same notes: no stage of a chunk may begin before the one
# before it has ended. And how long did one, two, three kinds of work go on at
# the same time?

# %% order-kept
if all(found.values()):
    late = [broken(rows) for rows in found.values()]
    ct.check(late, [0] * len(late), name="chunks out of order, by the trace")

# %% busy
if all(found.values()):
    table = {}
    for name, rows in found.items():
        spent = busy(rows)
        table[name] = {
            "from begin to end": sum(spent),
            "one kind": 100 * spent[1] / sum(spent),
            "two kinds": 100 * spent[2] / sum(spent),
            "all three": 100 * spent[3] / sum(spent),
        }
    units = dict.fromkeys(("one kind", "two kinds", "all three"), "%")
    units["from begin to end"] = "ms"
    ct.table("at the same time", table, corner="run", units=units)
