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
import time

import numpy as np
import pycuda.driver as cuda

import cudatut as ct

store_late, copy_late = (
    ct.Kernel("memory/streams/streams.cu", name)
    for name in ("store_late", "copy_late")
)
a, b = cuda.Stream(), cuda.Stream()
n, count, put_ms, use_ms = 1000, 6, 1, 2
buffers = [ct.to_device(np.zeros(n, "int32")) for _ in range(2)]
out = ct.to_device(np.zeros((count, n), "int32"))


def put(i, buffer):
    ns = int(1e6 * put_ms)
    store_late(buffers[buffer], n, i + 1, ns, grid=1, block=256, stream=a)


def use(i, buffer):
    ns = int(1e6 * use_ms)
    copy_late(buffers[buffer], out[i], n, ns, grid=1, block=256, stream=b)


def wait(streams, limit_s=10):
    give_up = time.monotonic() + limit_s
    while not all(stream.is_done() for stream in streams):
        if time.monotonic() > give_up:
            raise TimeoutError("the GPU has not finished")


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
took = []
for _ in range(3):
    begin = time.perf_counter()
    pipeline(count, put, use, a, b)
    host_ms = 1e3 * (time.perf_counter() - begin)
    wait((a, b))
    took.append(1e3 * (time.perf_counter() - begin))
    items = np.repeat(np.arange(1, count + 1), n).reshape(count, n)
    ct.check(out, items.astype("int32"), name="items")
    out.fill(0)
    cuda.Context.synchronize()
most_of = 0.9  # of the time of all steps one after the other
soon = float(np.median(took)) < most_of * count * (put_ms + use_ms)
ct.check(np.array([soon]), np.array([True]), name="both streams at work")
ct.facts("pipeline", {"time": (float(np.median(took)), "ms")})

# %% given-2
import time

import numpy as np
import pycuda.driver as cuda

import cudatut as ct

spin = ct.Kernel("memory/streams/streams.cu", "spin")
plans = {
    "three streams": [
        ("A", "s", 2, []), ("B", "t", 3, []), ("C", "u", 1, []),
    ],
    "a diamond": [
        ("A", "s", 1, []), ("B", "s", 3, []),
        ("C", "t", 1, ["A"]), ("D", "t", 2, ["B"]),
    ],
    "two in turn": [
        ("A", "s", 2, []), ("B", "t", 1, ["A"]), ("C", "s", 2, ["B"]),
        ("D", "t", 1, []), ("E", "u", 4, []),
    ],
}  # fmt: skip


def measured(plan, limit_s=10):
    """Milliseconds that a plan takes on the GPU, the median of five runs."""
    times, streams = [], {stream: cuda.Stream() for _, stream, _, _ in plan}
    for _ in range(6):
        done, begin = {}, time.perf_counter()
        for name, stream, ms, waits in plan:
            for other in waits:
                streams[stream].wait_for_event(done[other])
            spin(int(1e6 * ms), grid=1, block=1, stream=streams[stream])
            done[name] = cuda.Event().record(streams[stream])
        while not all(event.query() for event in done.values()):
            if time.perf_counter() > begin + limit_s:
                raise TimeoutError("the GPU has not finished")
        times.append(1e3 * (time.perf_counter() - begin))
    return float(np.median(times[1:]))


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
    told, found = finished(plan), measured(plan)
    ct.check(
        np.array([told]), np.array([found]), name=name, rtol=within, atol=0
    )
