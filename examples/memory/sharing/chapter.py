# ---
# jupyter:
#   cudatut:
#     title: {en: "Sharing one GPU", zh: "共享一块 GPU"}
#     requires: sm_75
#     timeout_s: 300
#     sizes:
#       ms: [50, 1]
#       rounds: [3, 1]
#       launches: [3, 1]
#       numbers: [[0, 123_457], [0, 10]]
#       notes: [20_000, 100]
# ---

# %% [markdown]
# Two kernels of 50 milliseconds, each on a quarter of the SMs. One waits, the
# other makes so many steps. Who shares the GPU, and does it show?

# %% program
from dataclasses import replace

import numpy as np

import cudatut as ct
from cudatut.book.memory.sharing.clients import Job, calibrated, took_ms

ms = 50  # of a kernel
launches = 3
rounds = 3
steps, sms = calibrated(ms)
quarter = sms // 4
kernels = {
    "spin": Job("spin", quarter, int(1e6 * ms), launches),
    "count": Job("count", quarter, steps, launches),
}
plans = {}  # the jobs of each process
for name, job in kernels.items():
    plans[name] = [job]
    plans[f"{name}, two streams"] = [replace(job, streams=2)]
    plans[f"{name}, two processes"] = [job, job]
took = {
    name: np.median(times) for name, times in took_ms(plans, rounds).items()
}
ct.yours(
    "memory/sharing#program",
    {
        f"{name}, two {how}": (took[f"{name}, two {how}"] / took[name], "x")
        for name in kernels
        for how in ("streams", "processes")
    },
)

# %% [markdown]
# Does `count` make all its steps, for every length? What many steps do at once
# follows from the one step by squaring.

# %% check
from cudatut.book.memory.sharing.clients import BLOCK, FILE, expected

count = ct.Kernel(FILE, "count")
numbers = (0, 123_457)
for n in ct.RAGGED:
    for some in numbers:
        out = ct.empty(n, "uint32")
        count(out, n, some, grid=ct.cdiv(n, BLOCK), block=BLOCK)
        ct.check(out, expected(n, some), name=f"n = {n}, {some} steps")

# %% [markdown]
# Two processes with one thread each, which notes the time after every 400
# steps. Where a gap is, it did not run.

# %% beat
from cudatut.book.memory.sharing.clients import together, without_error

notes = 20_000
beat = Job("beat", blocks=notes, amount=400)
# One process, twice, then two, twice; the second time counts.
found = map(without_error, together([beat], [beat, beat], rounds=2))
one, other = ([turn.get("pieces") for turn in turns] for turns in found)
alone = one[1]
first = min(one[3][0][0], other[3][0][0])
# [begin, end] of each piece of time in which a process ran, in us.
both = [
    [[(at - first) / 1e3 for at in piece] for piece in pieces]
    for pieces in (one[3], other[3])
]

# %% timelines
window = 40_000  # us that the figure shows
rows = {
    f"{name} {number}": {"process": name, "begin": begin, "end": end}
    for name, pieces in zip("AB", both)
    for number, (begin, end) in enumerate(pieces, 1)
    if begin < window
}
units = dict.fromkeys(("begin", "end"), "us")
ct.table("two processes, by turns", rows, corner="piece", units=units)

# %% slices
lengths = np.array([end - begin for begin, end in both[0]])
inner = lengths[1:-1] if lengths.size > 2 else lengths
gaps = np.array([b[0] - a[1] for a, b in zip(both[0], both[0][1:])] or [0.0])
whole = both[0][-1][1] - both[0][0][0]
overlap = sum(
    max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in both[0] for b in both[1]
)
ct.facts(
    "turns of two processes",
    {
        "pieces of a process alone": len(alone),
        "pieces of one of two": len(both[0]),
        "a piece": (float(np.median(inner)), "us"),
        "a gap": (float(np.median(gaps)), "us"),
        "it ran": (100 * float(lengths.sum() / whole), "%"),
        "both ran at once": (100 * float(overlap / whole), "%"),
    },
)
