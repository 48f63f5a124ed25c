# ---
# jupyter:
#   cudatut:
#     title: {en: "CUDA graphs: solutions", zh: "CUDA graph：参考答案"}
#     requires: sm_75
# ---

# %% [markdown]
# When a graph pays, a graph that is given another array, and a loop whose end the
# GPU decides.

# %% given-1
import numpy as np

# Of each case: own, launch, node, kernels, runs, make.
cases = [
    (2.0, 10.0, 1.0, 240, 1000, 3000.0),
    (2.0, 10.0, 1.0, 240, 1, 3000.0),
    (50.0, 10.0, 1.0, 240, 1000, 3000.0),
    (0.5, 10.0, 1.0, 1, 500, 40.0),
]


# %% solution-1
def predicted(own, launch, node, kernels, runs, make):
    """Microseconds in all: (one by one, as a graph)."""
    one_by_one = runs * kernels * max(own, launch)
    return one_by_one, make + runs * kernels * max(own, node)


# %% check-1
import cudatut as ct

answers = [
    (2400000.0, 483000.0),
    (2400.0, 3480.0),
    (12000000.0, 12003000.0),
    (5000.0, 540.0),
]
found = np.array([predicted(*case) for case in cases], "float64")
ct.check(found, np.array(answers), name="four cases", rtol=1e-9, atol=0)

# %% given-2
import ctypes

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.graphs import calls

mix = ct.Kernel("memory/graphs/graphs.cu", "mix")
n, stream, nodes = 100, cuda.Stream(), []
x = ct.to_device(np.arange(n, dtype="uint32"))
ct.synchronize()


def launch():
    mix(x, 1, n, grid=1, block=128, stream=stream)
    nodes.append(calls.latest(stream))


graph = calls.captured(stream, launch)
ready = calls.call("cuGraphInstantiate", graph, 0)


# %% solution-2
def work_on(ready, node, array, k, n):
    """From the next launch on, `node` is mix(array, k, n)."""
    params = calls.call("cuGraphKernelNodeGetParams", node)
    types = ctypes.c_void_p, ctypes.c_uint, ctypes.c_int
    params.kernelParams = (calls.address(array), k, n), types
    params.extra = 0
    calls.call("cuGraphExecKernelNodeSetParams", ready, node, params)


# %% check-2
start = np.arange(n, dtype="uint32")
others = [ct.to_device(start) for _ in range(3)]
ct.synchronize()
for k, array in enumerate(others, 1):
    work_on(ready, nodes[0], array, k, n)
    calls.call("cuGraphLaunch", ready, calls.handle(stream))
stream.synchronize()
for k, array in enumerate(others, 1):
    mixed = np.uint32(1664525) * start + np.uint32(k)
    ct.check(array, mixed, name=f"array {k}")
ct.check(x, start, name="the first array")

# %% given-3
import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.graphs import calls

step = ct.Kernel("memory/graphs/conditional.cu", "step")
stream = cuda.Stream()
x, count = (ct.to_device(np.zeros(1, "int32")) for _ in "xc")


# %% solution-3
def loop_of(step, x, count, stream):
    """An executable graph that runs step(handle, x, count) until x is 1."""
    graph = calls.call("cuGraphCreate", 0)
    again = calls.condition(graph, 1)
    body = calls.add_conditional(graph, [], "WHILE", again)

    def work():
        step(int(again), x, count, grid=1, block=1, stream=stream)

    calls.captured(stream, work, into=body)
    return calls.call("cuGraphInstantiate", graph, 0)


# %% check-3
known = {27: 111, 97: 118, 1: 0}  # steps
if ct.tool.running():  # a sanitizer would have to follow the graph
    known = {}
else:
    loop = loop_of(step, x, count, stream)
for number, steps in known.items():
    x.set(np.array([number], "int32"))
    count.set(np.zeros(1, "int32"))
    ct.synchronize()
    calls.call("cuGraphLaunch", loop, calls.handle(stream))
    stream.synchronize()
    ct.check(count, np.array([steps]), name=f"from {number}")
