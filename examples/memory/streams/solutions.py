# ---
# jupyter:
#   cudatut:
#     title: {en: "Streams and events: solutions", zh: "流与事件：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     sizes:
#       most_of: [0.9, 1000.0]
#       within: [0.1, 1000.0]
# ---

# %% [markdown]
# A buffer that is filled again only when it is free, and plans of kernels whose
# time follows from who waits for whom.

# %% given-1
import numpy as np
import pycuda.driver as cuda
from cudatut.book.memory.streams.work import took_ms

import cudatut as ct

file = "memory/streams/streams.cu"
store, copy = (ct.Kernel(file, f"{name}_late") for name in ("store", "copy"))
a, b = cuda.Stream(), cuda.Stream()
n, count, use_ms = 1000, 6, 2
put_ms = (4, 1, 1, 1, 1, 1)  # the first item is late
buffers = [ct.to_device(np.zeros(n, "int32")) for _ in range(2)]
out = ct.to_device(np.zeros((count, n), "int32"))
one = {"grid": 1, "block": 256}


def put(i, buffer):
    ns = put_ms[i] * 1_000_000
    store(buffers[buffer], n, i + 1, ns, **one, stream=a)


def use(i, buffer):
    copy(buffers[buffer], out[i], n, use_ms * 1_000_000, **one, stream=b)


# %% solution-1
def pipeline(count, put, use, a, b):
    free = [None, None]  # an event for each buffer: it has been read
    for i in range(count):
        if free[i % 2]:
            a.wait_for_event(free[i % 2])
        put(i, i % 2)
        b.wait_for_event(cuda.Event().record(a))
        use(i, i % 2)
        free[i % 2] = cuda.Event().record(b)


# %% check-1
ms = took_ms(lambda: pipeline(count, put, use, a, b), (a, b))
items = np.repeat(np.arange(1, count + 1), n).reshape(count, n)
ct.check(out, items.astype("int32"), name="items")
most_of = 0.9  # of the time of all steps one after the other
soon = ms < most_of * (sum(put_ms) + count * use_ms)
ct.check(np.array([soon]), np.array([True]), name="both streams at work")
ct.facts("two buffers", {"time": (ms, "ms")})

# %% given-2
import numpy as np
from cudatut.book.memory.streams.work import plan_ms

import cudatut as ct

three = [("A", "s", 2, []), ("B", "t", 3, []), ("C", "u", 1, [])]
diamond = [("A", "s", 1, []), ("B", "s", 3, []), ("C", "t", 1, ["A"])]
diamond += [("D", "t", 2, ["B"])]
turns = [("A", "s", 2, []), ("B", "t", 1, ["A"]), ("C", "s", 2, ["B"])]
turns += [("D", "t", 1, []), ("E", "u", 4, [])]
plans = {"three streams": three, "a diamond": diamond, "waits both ways": turns}


# %% solution-2
def finished(plan):
    """Milliseconds until all kernels of the plan are done."""
    ends, stream_ends = {}, {}
    for name, stream, ms, waits in plan:
        begin = max([stream_ends.get(stream, 0), *(ends[one] for one in waits)])
        ends[name] = stream_ends[stream] = begin + ms
    return float(max(ends.values(), default=0))


# %% check-2
ct.check(np.array([finished([])]), np.array([0.0]), name="no kernel")
longer = [("A", "s", 2, []), ("B", "t", 5, []), ("C", "s", 1, [])]
ct.check(
    np.array([finished(longer)]), np.array([5.0]), name="the longer stream"
)
within = 0.1
for name, plan in plans.items():
    told, found = np.array([finished(plan)]), np.array([plan_ms(plan)])
    ct.check(told, found, name=name, rtol=within, atol=0)
