# ---
# jupyter:
#   cudatut:
#     title: {en: "What a node of a graph costs", zh: "CUDA graph 的一个节点要多久"}
#     requires: sm_90
#     timeout_s: 120
#     sizes:
#       count: [240, 6]
#       lengths: [[60, 240, 960], [4, 6, 8]]
#       rounds: [9, 1]
#       warm: [8, 1]
#       copies: [5, 1]
#       until_sent: [3000000, 1000]
#       load: [2000000, 1000]
# ---

# %% [markdown]
# What a node of a graph costs depends on what the GPU did before. So the same
# graph is timed behind different things. In all cases the GPU waits until the
# host has handed everything over.

# %% setup
import random
import statistics
import time
from functools import partial

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.measure.graphs import Graph
from cudatut.book.memory.graphs.calls import call, captured, handle

SOURCE = "memory/graphs/nodes.cu"
mix = ct.Kernel("memory/graphs/graphs.cu", "mix")
busy = ct.Kernel(SOURCE, "busy")
n = 1000
count = 240  # kernels of a graph
lengths = (60, 240, 960)  # the same, for the first table
rounds = 9
warm = 8  # launches of a graph before the one that is timed
copies = 5  # of a graph, each instantiated anew
until_sent = 3000000  # nanoseconds in which the host hands over
load = 2000000  # nanoseconds
sms = ct.device().sm_count
stream = cuda.Stream()
start, stop = cuda.Event(), cuda.Event()
spent = ct.to_device(np.zeros((sms, 2), "int64"))
x = ct.to_device(np.zeros(n, "uint32"))
ct.synchronize()
clocks = []  # MHz of the SMs, right behind what was timed


def wait(ns=until_sent):
    """One block waits, so that nothing behind it begins."""
    busy(spent, ns, grid=1, block=1, stream=stream)


def timed(launch, kernels):
    """Microseconds for each kernel of what is launched now."""
    start.record(stream)
    launch()
    stop.record(stream)
    busy(spent, 100_000, grid=sms, block=32, stream=stream)
    stream.synchronize()
    cycles, ns = spent.get().T
    clocks.append(1e3 * statistics.median(cycles / ns))
    return 1e3 * start.time_till(stop) / kernels


def again_and_again(launch, kernels=count):
    """The same, right behind a few launches of the same graph."""
    wait()
    for _ in range(warm):
        launch()
    return timed(launch, kernels)


def graph_of(work):
    """A function that launches the graph of what work() launches."""
    ready = call("cuGraphInstantiate", captured(stream, work), 0)
    return lambda: call("cuGraphLaunch", ready, handle(stream))


def chain(kernels, step=mix, y=x, on=stream, grid=4, block=256):
    """A function that launches so many steps on one array."""

    def work():
        for k in range(kernels):
            step(y, k, n, grid=grid, block=block, stream=on)

    return work


def in_turn(runs):
    """Of each: the times of some rounds in which all take turns."""
    return ct.take_turns(runs, rounds, random.Random(0), time=lambda run: run())


# %% before
def cases(launch, other, kernels):
    def idle():
        ct.synchronize()
        time.sleep(0.01)
        wait(until_sent // 10)
        return timed(launch, kernels)

    def loaded():
        busy(spent, load, grid=sms, block=256, stream=stream)
        return timed(launch, kernels)

    def another():
        wait()
        for _ in range(warm):
            other()
        return timed(launch, kernels)

    def flushed():
        wait()
        for _ in range(warm):
            launch()
        ct.flush_l2()
        return timed(launch, kernels)

    return {
        "nothing, for 10 ms": idle,
        "a kernel on all SMs": loaded,
        "the same graph": partial(again_and_again, launch, kernels),
        "another graph": another,
        "the same graph, a flush of L2": flushed,
    }


rows = {}
for kernels in lengths:
    launch, other = graph_of(chain(kernels)), graph_of(chain(kernels))
    for name, us in in_turn(cases(launch, other, kernels)).items():
        row = rows.setdefault(name, {})
        row[f"{kernels} kernels"] = statistics.median(us)

# %% before-table
ct.table(
    "a node of a graph, by what ran before",
    rows,
    corner="before",
    units=dict.fromkeys([f"{kernels} kernels" for kernels in lengths], "us"),
)

# %% [markdown]
# Graphs of the same kernels, each captured and instantiated anew, each timed
# behind launches of itself: how far apart they are, and the clock of the SMs.

# %% spread
rows = {}
for kernels in lengths:
    graphs = {f"{i}": graph_of(chain(kernels)) for i in range(copies)}
    clocks.clear()
    found = in_turn(
        {
            name: partial(again_and_again, launch, kernels)
            for name, launch in graphs.items()
        }
    )
    us = [statistics.median(one) for one in found.values()]
    rows[f"{kernels}"] = {
        "the middle one": statistics.median(us),
        "the shortest": min(us),
        "the longest": max(us),
        "clock": statistics.median(clocks),
    }

# %% spread-table
ct.table(
    "a node of five graphs of the same kernels",
    rows,
    corner="kernels",
    units=dict.fromkeys(("the middle one", "the shortest", "the longest"), "us")
    | {"clock": "MHz"},
)

# %% target
ours = rows[f"{count}"]
ct.facts(
    "a node of a graph that runs again and again",
    {
        "time": (ours["the middle one"], "us"),
        "goal": (1.1, "us"),
        "reached": ours["the middle one"] <= 1.1,
        "the longest": (ours["the longest"], "us"),
        "clock": (ours["clock"], "MHz"),
    },
)

# %% [markdown]
# Where the time of a node goes: each block writes down when it begins and when
# its threads are done. The timer may be coarse, so these are means of all nodes.

# %% split
noted = ct.Kernel(SOURCE, "noted")
notes = ct.to_device(np.zeros((count, 4, 2), "int64"))
ct.synchronize()


def noting():
    for k in range(count):
        noted(x, k, n, notes, grid=4, block=256, stream=stream)


launch, parts = graph_of(noting), []
for _ in range(rounds):
    us = again_and_again(launch)
    found = notes.get()
    begin, end = found[:, :, 0].min(axis=1), found[:, :, 1].max(axis=1)
    runs = float((end - begin).mean()) / 1e3
    between = float((begin[1:] - end[:-1]).mean()) / 1e3
    parts.append((us, runs, between))
whole, runs, between = np.median(parts, axis=0)
ct.facts(
    "where the time of a node goes",
    {
        "a node, with notes": (float(whole), "us"),
        "its blocks run": (float(runs), "us"),
        "from there to the next": (float(between), "us"),
    },
)

# %% [markdown]
# Attempts to make a node shorter, each with what was predicted: one block in
# place of four; a kernel that reads nothing; programmatic arrows; several chains
# side by side, for work that allows it. The last kernel does nothing.

# %% attempts
write, early, nothing = (
    ct.Kernel(SOURCE, name) for name in ("write", "early", "nothing")
)


def expected(kernels):
    """What a chain makes of zeros."""
    value = np.uint32(0)
    with np.errstate(over="ignore"):
        for k in range(kernels):
            value = np.uint32(1664525) * value + np.uint32(k)
    return np.full(n, value, "uint32")


def programmatic():
    return Graph(chain(count, early), stream, overlap=True).launch


def side_by_side(width):
    """As many kernels, in chains that do not wait for each other."""
    arrays = [ct.to_device(np.zeros(n, "uint32")) for _ in range(width)]
    others = [cuda.Stream() for _ in range(width - 1)]
    forked, *joined = (cuda.Event() for _ in range(width))
    ct.synchronize()

    def work():
        forked.record(stream)
        for other in others:
            other.wait_for_event(forked)
        for y, on in zip(arrays, [stream, *others]):
            chain(count // width, y=y, on=on)()
        for other, event in zip(others, joined):
            event.record(other)
            stream.wait_for_event(event)

    launch = graph_of(work)
    launch()
    stream.synchronize()
    for y in arrays:
        ct.check(y, expected(count // width), name=f"{width} side by side")
    return launch


def empty():
    for _ in range(count):
        nothing(grid=1, block=1, stream=stream)


tried = {
    "four blocks": graph_of(chain(count)),
    "one block": graph_of(chain(count, grid=1, block=1024)),
    "no read": graph_of(chain(count, write)),
    "programmatic arrows": programmatic(),
}
for name, launch in tried.items():
    x.set(np.zeros(n, "uint32"))
    ct.synchronize()
    launch()
    stream.synchronize()
    last = np.uint32(1664525) * np.arange(n, dtype="uint32")
    reads = name != "no read"
    right = expected(count) if reads else last + np.uint32(count - 1)
    ct.check(x, right, name=name)
tried |= {f"{width} side by side": side_by_side(width) for width in (2, 3)}
tried["a kernel that does nothing"] = graph_of(empty)

# %% attempts-table
found = in_turn(
    {name: partial(again_and_again, launch) for name, launch in tried.items()}
)
us = {name: statistics.median(one) for name, one in found.items()}
before = us["four blocks"]
less = {  # microseconds, predicted
    "one block": 0.05,
    "no read": 0.15,
    "programmatic arrows": 0.4,
    "2 side by side": before / 2,
    "3 side by side": 2 * before / 3,
    "a kernel that does nothing": 0.3,
}
ct.table(
    "attempts to make a node shorter",
    {
        name: {
            "time": took,
            "less, predicted": less.get(name),
            "less, measured": before - took if name in less else None,
        }
        for name, took in us.items()
    },
    corner="attempt",
    units=dict.fromkeys(("time", "less, predicted", "less, measured"), "us"),
)
