# ---
# jupyter:
#   cudatut:
#     title: {en: "Graphs whose kernels overlap", zh: "kernel 相互重叠的 CUDA graph"}
#     requires: sm_90
#     timeout_s: 120
#     sizes:
#       count: [100, 3]
#       depths: [[2, 8, 32], [2]]
#       rounds: [25, 1]
# ---

# %% [markdown]
# A chain of kernels, each with weights of its own. As a graph in which each waits
# until the one before has ended, and as one in which it waits only before it
# reads what that one has written.

# %% setup
import random
import statistics

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.measure.graphs import Graph, elapsed

SOURCE = "memory/graphs/programmatic.cu"
layer = ct.Kernel(SOURCE, "layer")
n = 132 * 256  # a block for each SM of an H200
count = 100  # kernels
stream = cuda.Stream()


def chain_of(rows):
    """Launches, the two arrays that they write in turn, and the result."""
    shape = count, rows, n
    weights = ct.rng(rows).integers(-8, 8, shape, dtype="int8")
    weights = weights.astype("float32")  # whole numbers: their sums are exact
    on_gpu = ct.to_device(weights)
    arrays = [ct.to_device(np.zeros(n, "float32")) for _ in "ab"]
    ct.synchronize()

    def work():
        for k in range(count):
            layer(
                on_gpu[k], arrays[k % 2], arrays[1 - k % 2], n, rows,
                grid=ct.cdiv(n, 256), block=256, stream=stream,
            )  # fmt: skip

    return work, arrays, weights.sum(axis=(0, 1))


# %% programmatic
depths = (2, 8, 32)  # rows of weights
rounds = 25
rows = {}
for depth in depths:
    work, arrays, total = chain_of(depth)
    graphs = {
        "plain": Graph(work, stream),
        "programmatic": Graph(work, stream, overlap=True),
    }
    for name, graph in graphs.items():
        for array in arrays:
            array.set(np.zeros(n, "float32"))
        ct.synchronize()
        graph.launch()
        stream.synchronize()
        ct.check(arrays[count % 2], total, name=f"{name}, {depth} rows")
    runs = {
        name: lambda graph=graph: elapsed(stream, graph.launch)
        for name, graph in graphs.items()
    }
    found = ct.take_turns(
        runs, rounds, random.Random(0), time=lambda run: run()
    )
    us = {name: statistics.median(t) / count for name, t in found.items()}
    rows[f"{depth}"] = {
        "bytes of a kernel": 4 * n * (depth + 2),
        **us,
        "less": us["plain"] - us["programmatic"],
        "plain / programmatic": us["plain"] / us["programmatic"],
    }
    del graphs, runs, work, arrays

# %% programmatic-table
ct.table(
    "each kernel of a chain, plain and programmatic",
    rows,
    corner="rows of weights",
    units=dict.fromkeys(("plain", "programmatic", "less"), "us"),
)

# %% [markdown]
# What happens without the wait: the first kernel lets the second begin at once,
# and writes 100 microseconds later.

# %% without-wait
late = ct.Kernel(SOURCE, "late")
x, out = (ct.to_device(np.zeros(32, "int32")) for _ in "ab")
seen = {}
for wait in (1, 0):
    passing = ct.Kernel(SOURCE, "passing", defines={"WAIT": wait})

    def both(passing=passing):
        late(x, 7, 100_000, grid=1, block=32, stream=stream)
        passing(x, out, grid=1, block=32, stream=stream)

    graph = Graph(both, stream, overlap=True)
    x.set(np.zeros(32, "int32"))
    ct.synchronize()
    graph.launch()
    stream.synchronize()
    seen["it waits" if wait else "it does not wait"] = {
        "right values of 32": int((out.get() == 7).sum())
    }
    if wait:
        ct.check(out, np.full(32, 7), name="it waits")

# %% without-wait-table
ct.table("what the second kernel passes on", seen, corner="second kernel")

# %% [markdown]
# The same without a graph: a launch with an attribute, which cuLaunchKernelEx
# takes. Captured, it gives the same arrows.

# %% attribute
import ctypes

from cudatut.book.memory.graphs.calls import (
    address,
    bindings,
    call,
    captured,
    function_of,
    handle,
)

driver = bindings()
attribute = driver.CUlaunchAttribute()
ids = driver.CUlaunchAttributeID
attribute.id = ids.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
attribute.value.programmaticStreamSerializationAllowed = 1
how = driver.CUlaunchConfig()
how.gridDimX, how.gridDimY, how.gridDimZ = 1, 1, 1
how.blockDimX, how.blockDimY, how.blockDimZ = 32, 1, 1
how.hStream = handle(stream)
how.attrs, how.numAttrs = [attribute], 1
passing = function_of(ct.Kernel(SOURCE, "passing"))
arguments = (address(x), address(out)), (ctypes.c_void_p, ctypes.c_void_p)


def early():
    late(x, 9, 100_000, grid=1, block=32, stream=stream)
    call("cuLaunchKernelEx", how, passing, arguments, 0)


x.set(np.zeros(32, "int32"))
ct.synchronize()
early()
stream.synchronize()
ct.check(out, np.full(32, 9), name="by an attribute")

end = "" if driver.CUDA_VERSION >= 13000 else "_v2"
graph = captured(stream, early)
arrows = call(f"cuGraphGetEdges{end}", graph, 1)[2]
kinds = driver.CUgraphDependencyType
wanted = kinds.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.value
found = np.array([arrow.type for arrow in arrows])
ct.check(found, np.array([wanted]), name="captured, its arrow")
