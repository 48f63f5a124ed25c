# ---
# jupyter:
#   cudatut:
#     title: {en: "Graphs that decide: loops and conditions", zh: "会判断的 CUDA graph：循环与条件"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       side: [192, 12]
#       rounds: [15, 1]
# ---

# %% [markdown]
# A maze: each cell is open or a wall, and every open cell is to learn how many
# steps it is away from the corner. How many rounds that takes, nobody knows
# before. First on the CPU.

# %% maze
import random
import statistics
from collections import deque

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.graphs.calls import (
    add_conditional,
    call,
    captured,
    condition,
    handle,
    latest,
)
from cudatut.book.memory.graphs.ways import as_sent

side = 192
FAR = 1 << 29
open_cells = (ct.rng(3).random((side, side)) > 0.35).astype("uint8")
open_cells[0, 0] = 1


def by_cpu(cells):
    """Steps from the corner, by breadth-first search; FAR where none leads."""
    steps = np.full(cells.shape, FAR, "int32")
    steps[0, 0], queue = 0, deque([(0, 0)])
    while queue:
        y, x = queue.popleft()
        for v, u in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
            inside = 0 <= v < len(cells) and 0 <= u < len(cells)
            if inside and cells[v, u] and steps[v, u] == FAR:
                steps[v, u] = steps[y, x] + 1
                queue.append((v, u))
    return steps


expected = by_cpu(open_cells)
farthest = int(expected[expected < FAR].max())

# %% [markdown]
# On the GPU a round is two steps, from one array to the other and back. The host
# has to read whether anything changed, and to wait for that, in each round.

# %% host-loop
spread = ct.Kernel("memory/graphs/graphs.cu", "spread")
stream = cuda.Stream()
cells = ct.to_device(open_cells)
first, second = (ct.to_device(np.zeros(side * side, "int32")) for _ in "ab")
changed = ct.to_device(np.zeros(1, "int32"))
told = cuda.pagelocked_zeros(1, np.int32)
rounds_done = ct.to_device(np.zeros(1, "int32"))
MOST = side * side  # rounds: no way is longer


def begin():
    start = np.full(side * side, FAR, "int32")
    start[0] = 0
    first.set(start)
    changed.set(np.zeros(1, "int32"))
    rounds_done.set(np.zeros(1, "int32"))
    ct.synchronize()


def one_round():
    for before, after in ((first, second), (second, first)):
        spread(
            before, after, cells, changed, side, FAR,
            grid=(ct.cdiv(side, 32), ct.cdiv(side, 8)), block=(32, 8),
            stream=stream,
        )  # fmt: skip


def host_loop():
    done = 0
    while done < MOST:
        done += 1
        one_round()
        cuda.memcpy_dtoh_async(told, changed.gpudata, stream)
        cuda.memset_d32_async(changed.gpudata, 0, 1, stream)
        stream.synchronize()
        if not told[0]:
            break
    return done


begin()
host_rounds = host_loop()
stream.synchronize()
ct.check(first, expected.ravel(), name="the host asks")
predicted = ct.cdiv(farthest, 2) + 1  # the last round changes nothing
ct.check(np.array([host_rounds]), np.array([predicted]), name="rounds")

# %% [markdown]
# As a graph with a WHILE node. Its body is captured like any other graph; its
# last kernel says whether the body runs again.

# %% while
decide = ct.Kernel("memory/graphs/conditional.cu", "decide")
loop = call("cuGraphCreate", 0)
again = condition(loop, 1)  # the first round always runs
body = add_conditional(loop, [], "WHILE", again)


def body_work():
    one_round()
    decide(
        int(again), changed, rounds_done, MOST, grid=1, block=1, stream=stream
    )


captured(stream, body_work, into=body)
if not ct.tool.running():  # which would have to follow it into its body
    ready = call("cuGraphInstantiate", loop, 0)


def graph_loop():
    if ct.tool.running():
        return host_loop()
    call("cuGraphLaunch", ready, handle(stream))


begin()
graph_loop()
stream.synchronize()
ct.check(first, expected.ravel(), name="the graph decides")
if not ct.tool.running():
    ct.check(rounds_done, np.array([predicted]), name="rounds of the graph")

# %% while-times
rounds = 15


def us(run):
    begin()
    return as_sent(run)


times = ct.take_turns(
    {"the host asks": host_loop, "the graph decides": graph_loop},
    rounds,
    random.Random(0),
    time=us,
)
ct.table(
    "the maze, by who decides",
    {
        name: {
            "rounds": host_rounds,
            "time": statistics.median(found),
            "a round": statistics.median(found) / host_rounds,
        }
        for name, found in times.items()
    },
    corner="loop",
    units={"time": "us", "a round": "us"},
)

# %% maze-facts
ct.facts(
    "the maze",
    {
        "cells": side * side,
        "open": int(open_cells.sum()),
        "can be reached": int((expected < FAR).sum()),
        "steps to the farthest": farthest,
    },
)

# %% [markdown]
# An IF node: the same graph does what follows, or leaves it out, as a number on
# the GPU says when it is asked.

# %% if
ask = ct.Kernel("memory/graphs/conditional.cu", "ask")
mix = ct.Kernel("memory/graphs/graphs.cu", "mix")
n = 1000
x = ct.to_device(np.zeros(n, "uint32"))
wanted = ct.to_device(np.zeros(1, "int32"))
choice = call("cuGraphCreate", 0)
found = condition(choice, 0)
nodes = []


def asking():
    ask(int(found), wanted, grid=1, block=1, stream=stream)
    nodes.append(latest(stream))


def work():
    mix(x, 5, n, grid=ct.cdiv(n, 256), block=256, stream=stream)


captured(stream, asking, into=choice)
captured(stream, work, into=add_conditional(choice, nodes, "IF", found))
values = 0, 1, 0
if ct.tool.running():  # as above
    values = ()
else:
    if_ready = call("cuGraphInstantiate", choice, 0)
for value in values:
    x.set(np.zeros(n, "uint32"))
    wanted.set(np.array([value], "int32"))
    ct.synchronize()
    call("cuGraphLaunch", if_ready, handle(stream))
    stream.synchronize()
    ct.check(x, np.full(n, 5 * value, "uint32"), name=f"wanted = {value}")
