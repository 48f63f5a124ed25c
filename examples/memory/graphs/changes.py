# ---
# jupyter:
#   cudatut:
#     title: {en: "Graphs by hand, and graphs that change", zh: "手工建 CUDA graph，更换参数"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       steps: [10000, 10]
#       rounds: [25, 1]
#       count: [240, 4]
# ---

# %% [markdown]
# Four kernels, of which the two in the middle do not need each other: as a chain,
# captured from two streams, and put together node by node.

# %% setup
import ctypes
import random
import statistics
from time import perf_counter

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.graphs.calls import (
    add_kernel,
    address,
    bindings,
    call,
    captured,
    function_of,
    handle,
    latest,
    set_arguments,
    sizes,
)
from cudatut.book.memory.graphs.ways import as_sent

steps = 10000  # of each kernel
rounds = 25
note = ct.Kernel("memory/graphs/graphs.cu", "note")
counter = ct.to_device(np.zeros(2, "int32"))  # kernels so far
place = ct.to_device(np.zeros(4, "int32"))  # A, B, C, D
stream, other = cuda.Stream(), cuda.Stream()
forked, joined = cuda.Event(), cuda.Event()


def begin(who, on=None):
    note(counter, place, who, steps, grid=1, block=1, stream=on)


# %% captured
def chain():
    for who in range(4):
        begin(who, stream)


def diamond():
    begin(0, stream)
    forked.record(stream)
    other.wait_for_event(forked)  # from here on `other` is captured, too
    begin(1, stream)
    begin(2, other)
    joined.record(other)
    stream.wait_for_event(joined)  # and from here on no longer
    begin(3, stream)


# %% by-hand
def by_hand():
    graph = call("cuGraphCreate", 0)
    function = function_of(note)
    types = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int

    def node(who, *after):
        values = address(counter), address(place), who, steps
        return add_kernel(graph, after, function, values, types)

    a = node(0)
    b, c = node(1, a), node(2, a)
    node(3, b, c)
    return graph


# %% diamonds
graphs = {
    "chain, captured": captured(stream, chain),
    "diamond, captured": captured(stream, diamond),
    "diamond, by hand": by_hand(),
}
ready = {
    name: call("cuGraphInstantiate", graph, 0) for name, graph in graphs.items()
}
runs = {
    name: lambda one=one: call("cuGraphLaunch", one, handle())
    for name, one in ready.items()
}
for name, run in runs.items():
    counter.set(np.zeros(2, "int32"))
    run()
    first, *middle, last = place.get()
    order = np.array([first, *sorted(middle), last])
    ct.check(order, np.arange(4), name=f"order, {name}")
times = ct.take_turns(runs, rounds, random.Random(0), time=as_sent)
us = {name: statistics.median(found) for name, found in times.items()}
a_kernel = us["chain, captured"] / 4
rows = {}
for name, graph in graphs.items():
    nodes, arrows = sizes(graph)
    levels = 4 if name.startswith("chain") else 3
    rows[name] = {
        "nodes": nodes,
        "arrows": arrows,
        "predicted": levels * a_kernel,
        "time": us[name],
    }

# %% diamonds-table
ct.table(
    "four kernels, two of which may run together",
    rows,
    corner="graph",
    units={"predicted": "us", "time": "us"},
)

# %% [markdown]
# A graph that exists is given other arguments: one node, or all of them from a
# second capture. Each change is checked by what comes out.

# %% update
mix = ct.Kernel("memory/graphs/graphs.cu", "mix")
n = 1000
count = 240  # kernels
x = ct.to_device(np.zeros(n, "uint32"))
nodes = []


def steps_with(numbers):
    nodes.clear()
    for k in numbers:
        mix(x, k, n, grid=ct.cdiv(n, 256), block=256, stream=stream)
        nodes.append(latest(stream))


def capture(numbers):
    return captured(stream, lambda: steps_with(numbers))


def result(one):
    """What the chain makes of zeros."""
    x.set(np.zeros(n, "uint32"))
    call("cuGraphLaunch", one, handle())
    return x.get()


def expected(numbers):
    value = np.zeros(n, "uint32")
    for k in numbers:
        value = np.uint32(1664525) * value + np.uint32(k)
    return value


numbers = list(range(count))
graph = capture(numbers)
first_nodes = list(nodes)  # of the graph that is instantiated
ready = call("cuGraphInstantiate", graph, 0)
ct.check(result(ready), expected(numbers), name="as captured")

types = ctypes.c_void_p, ctypes.c_uint, ctypes.c_int
set_arguments(ready, first_nodes[1], (address(x), 1000, n), types)
numbers[1] = 1000
ct.check(result(ready), expected(numbers), name="one node changed")

# %% update-all
numbers = [7 * k for k in range(count)]
found = call("cuGraphExecUpdate", ready, capture(numbers))
print(found.result.name)
ct.check(result(ready), expected(numbers), name="all nodes changed")

# %% [markdown]
# A graph with one kernel more is another graph: the update is refused, and the
# executable graph stays as it was.

# %% update-refused
longer = capture([*numbers, 1])
status, _ = bindings().cuGraphExecUpdate(ready, longer)
ct.facts("an update with one kernel more", {"status": status.name})
ct.check(result(ready), expected(numbers), name="still as it was")

# %% [markdown]
# What a change costs the host, beside making a new executable graph.

# %% update-cost
where = address(x)


def one_node():
    set_arguments(ready, first_nodes[1], (where, 5, n), types)


def each_node():
    for k, node in enumerate(first_nodes):
        set_arguments(ready, node, (where, k, n), types)


def whole():
    other_graph = capture(numbers)
    call("cuGraphExecUpdate", ready, other_graph)
    call("cuGraphDestroy", other_graph)


def anew():
    other_graph = capture(numbers)
    call("cuGraphExecDestroy", call("cuGraphInstantiate", other_graph, 0))
    call("cuGraphDestroy", other_graph)


def by_clock(run):
    ct.synchronize()
    started = perf_counter()
    run()
    return 1e6 * (perf_counter() - started)


changes = {
    "arguments of one node": one_node,
    "arguments of each node": each_node,
    "capture again, update": whole,
    "capture again, instantiate": anew,
}
for change in changes.values():
    change()
times = ct.take_turns(changes, rounds, random.Random(0), time=by_clock)
ct.table(
    "what a change costs the host",
    {name: {"time": statistics.median(us)} for name, us in times.items()},
    corner="change",
    units={"time": "us"},
)

# %% [markdown]
# What cannot be captured: each is tried in a capture of its own. Afterwards the
# stream works as before.

# %% refused
side, event = cuda.Stream(), cuda.Event()


def reads_back():
    begin(0, stream)
    place.get()


def waits():
    begin(0, stream)
    stream.synchronize()


def default_stream():
    begin(0, stream)
    begin(1)


def asks_an_event():
    begin(0, stream)
    event.record(stream)
    event.synchronize()


def does_not_come_back():
    begin(0, stream)
    event.record(stream)
    side.wait_for_event(event)
    begin(1, side)


tried = {
    "copy back": reads_back,
    "wait for the stream": waits,
    "launch on the default stream": default_stream,
    "wait for an event": asks_an_event,
    "a second stream that is not joined": does_not_come_back,
}
if ct.tool.running():  # which would report what fails on purpose
    tried = {}
refused = []
for name, work in tried.items():
    try:
        captured(stream, work)
    except (cuda.Error, ct.CudatutError) as error:
        print(f"{name}: {error}")
        refused.append(name)
ct.facts(
    "what cannot be captured", {"tried": len(tried), "refused": len(refused)}
)
event, side = cuda.Event(), cuda.Stream()  # the old ones were part of a capture
counter.set(np.zeros(2, "int32"))
call("cuGraphLaunch", call("cuGraphInstantiate", by_hand(), 0), handle(stream))
stream.synchronize()
ct.check(counter.get()[:1], np.array([4]), name="the stream afterwards")

# %% [markdown]
# An allocation is not refused, and is no part of the graph: it happened once,
# while the graph was written down.

# %% once
calls = []
kept = []


def with_python():
    calls.append("called")
    kept.append(cuda.mem_alloc(4 * n))
    mix(x, len(calls), n, grid=ct.cdiv(n, 256), block=256, stream=stream)


once = call("cuGraphInstantiate", captured(stream, with_python), 0)
for _ in range(3):
    call("cuGraphLaunch", once, handle(stream))
stream.synchronize()
ct.facts(
    "three launches of one graph",
    {"calls of the function": len(calls), "allocations": len(kept)},
)

# %% [markdown]
# What the host asked for, and how long it stood in each call: the chain launched
# one by one, and as a graph. CUPTI listens, which makes every call longer.

# %% trace
PROGRAM = """
import numpy as np
import pycuda.driver as cuda
import cudatut as ct
from cudatut.book.memory.graphs.calls import call, captured, handle

mix = ct.Kernel("memory/graphs/graphs.cu", "mix")
x, stream = ct.to_device(np.zeros(1000, "uint32")), cuda.Stream()

def chain():
    for k in range(240):
        mix(x, k, 1000, grid=4, block=256, stream=stream)

ct.synchronize()
chain()
stream.synchronize()
ready = call("cuGraphInstantiate", captured(stream, chain), 0)
call("cuGraphLaunch", ready, handle(stream))
stream.synchronize()
"""
traced = ct.trace(source=PROGRAM, rows=6)
