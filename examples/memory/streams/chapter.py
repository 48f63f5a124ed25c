# ---
# jupyter:
#   cudatut:
#     title: {en: "Streams and events", zh: "流与事件"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       ms: [2, 0.1]
#       rounds: [5, 1]
#       n: [4096, 256]
#       repetitions: [1000, 3]
# ---

# %% [markdown]
# Three kernels of two milliseconds each, handed out in five ways. Each occupies
# one SM, so there is room for all three at once.

# %% program
import time

import numpy as np
import pycuda.driver as cuda

import cudatut as ct

source = """
__device__ long long nanoseconds() {
  long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin(long long ns) {
  long long begin = nanoseconds();
  while (nanoseconds() - begin < ns) {}
}
"""
spin = ct.Kernel(source, "spin")
ms = 2
rounds = 5
a, b, c = (cuda.Stream() for _ in range(3))
free_a, free_c = (cuda.Stream(1) for _ in range(2))  # 1: non-blocking
default = None


def run(*streams):
    for stream in streams:
        spin(int(ms * 1e6), grid=1, block=1, stream=stream)


def with_an_event():
    run(a, b)
    c.wait_for_event(cuda.Event().record(a))
    run(c)


def wait(limit_s=10):
    streams = (a, b, c, free_a, free_c, default)
    ends = [cuda.Event().record(stream) for stream in streams]
    give_up = time.monotonic() + limit_s
    while not all(end.query() for end in ends):
        if time.monotonic() > give_up:
            raise TimeoutError("the GPU has not finished")


ways = {
    "one stream": lambda: run(a, a, a),
    "three streams": lambda: run(a, b, c),
    "c waits for an event of a": with_an_event,
    "the default stream between": lambda: run(a, default, c),
    "the same, a and c non-blocking": lambda: run(free_a, default, free_c),
}
took = {}
for name, way in ways.items():
    times = []
    for _ in range(1 + rounds):
        begin = time.perf_counter()
        way()
        wait()
        times.append(1e3 * (time.perf_counter() - begin))
    took[name] = (float(np.median(times[1:])), "ms")
    print(f"{name:>30}: {took[name][0]:5.2f} ms")
ct.yours("memory/streams#program", took)

# %% [markdown]
# Does an event keep two streams in order? One stream stores late, the other
# copies what was stored: for every length, all elements have to be there.

# %% check
store_late, copy_late = (
    ct.Kernel("memory/streams/streams.cu", name)
    for name in ("store_late", "copy_late")
)
for m in ct.RAGGED:
    x, y = ct.empty(m, "int32"), ct.empty(m, "int32")
    store_late(x, m, m, 100_000, grid=1, block=256, stream=a)
    b.wait_for_event(cuda.Event().record(a))
    copy_late(x, y, m, 0, grid=1, block=256, stream=b)
    wait()
    ct.check(y, np.full(m, m, "int32"), name=f"stored, then copied, n={m}")

# %% [markdown]
# The same five ways, with CUPTI listening: when did each kernel begin and end,
# and for whom did it wait?

# %% watch
from cudatut.book.measure import order

FREE = ("free_a", "free_c")  # streams that the default stream does not know
used = {
    "one stream": "a a a",
    "three streams": "a b c",
    "c waits for an event of a": "a b c",
    "the default stream between": "a default c",
    "the same, a and c non-blocking": "free_a default free_c",
}


def watch(name):
    """The trace of one of the five ways, whose kernels are named first."""
    with order.watched() as log:
        for number, stream in enumerate(used[name].split(), 1):
            log.does(f"kernel {number}", stream)
        ways[name]()
    return log


logs = {name: watch(name) for name in ways}

# %% timelines
for name, log in logs.items():
    if log.commands:  # none under a tool
        times = dict.fromkeys(("begin", "end"), "us")
        ct.table(name, log.timeline(), corner="kernel", units=times)

# %% waited
rows = {}
for name, log in logs.items():
    waits = order.waited(log.commands, FREE)
    late = {kernel: whom for kernel, (whom, _) in waits.items()}
    rows[name] = {
        "kernel 2 waited for": late.get("kernel 2") or "-",
        "kernel 3 waited for": late.get("kernel 3") or "-",
        "most at once": order.at_once(log.commands),
        "ordered, yet overlapping": order.overtaken(log.commands, FREE),
    }
ct.table("who waited for whom", rows, corner="way")

# %% [markdown]
# Three programs that lack an order, and, mended, have it. Each says to `note`
# what it is about to do, for the checker. Delays are random.

# %% races
n = 4096
chance = np.random.default_rng(1)
x, y = ct.to_device(np.zeros(n, "int32")), ct.to_device(np.zeros(n, "int32"))
items = 4
out = ct.to_device(np.zeros((items, n), "int32"))
inputs = cuda.pagelocked_empty((items, n), np.int32)


def delay():
    return int(chance.integers(0, 100_000))  # up to 0.1 ms


def store(value, stream):
    store_late(x, n, value, delay(), grid=1, block=256, stream=stream)


def copy(target, stream):
    copy_late(x, target, n, delay(), grid=1, block=256, stream=stream)


# %% missing-event
def missing_event(value, mended, note):
    note("store", "a", writes="x")
    store(value, a)
    if mended:
        b.wait_for_event(cuda.Event().record(a))
    note("copy", "b", reads="x", writes="y")
    copy(y, b)
    return y, np.full(n, value)


# %% default-does-not-wait
def default_does_not_wait(value, mended, note):
    note("store", "a" if mended else "free_a", writes="x")
    store(value, a if mended else free_a)
    note("copy", order.DEFAULT, reads="x", writes="y")
    copy(y, default)
    return y, np.full(n, value)


# %% used-too-early
def used_too_early(value, mended, note):
    inputs[:] = items * value + np.arange(items)[:, None]
    read = None
    for i in range(items):
        if mended and read:
            a.wait_for_event(read)  # x is free again
        note(f"copy in {i}", "a", writes="x")
        cuda.memcpy_htod_async(x.gpudata, inputs[i], stream=a)
        b.wait_for_event(cuda.Event().record(a))
        note(f"copy {i}", "b", reads="x", writes=f"out{i}")
        copy(out[i], b)
        read = cuda.Event().record(b)
    return out, inputs.copy()


# %% noticed
repetitions = 1000
programs = {
    "missing event": missing_event,
    "default stream does not wait": default_does_not_wait,
    "buffer used too early": used_too_early,
}


def wrong(program, mended):
    """In how many repetitions was any element wrong?"""
    count = 0
    for value in range(1, repetitions + 1):
        got, want = program(value, mended, lambda *_, **__: None)
        wait()
        count += not np.array_equal(got.get(), want)
    return count


def without_order(program, mended):
    """Pairs that touch one buffer without an order, in a trace of one run."""
    with order.watched() as log:
        program(repetitions + 1, mended, log.does)
    wait()
    return order.races(log.commands, FREE)


rows, pairs = {}, {}
for name, program in programs.items():
    pairs[name] = without_order(program, mended=False)
    rows[name] = {
        "wrong runs": wrong(program, mended=False),
        "wrong runs, mended": wrong(program, mended=True),
        "unordered pairs": len(pairs[name]),
        "unordered pairs, mended": len(without_order(program, mended=True)),
    }

# %% noticed-table
ct.table("three races, 1,000 repetitions", rows, corner="program")
for name, row in rows.items():
    none = np.array([row["wrong runs, mended"], row["unordered pairs, mended"]])
    ct.check(none, np.zeros(2, int), name=f"{name}, mended")

# %% pairs
for name, found in pairs.items():
    for earlier, later, buffer in found:
        print(f"{name}: {earlier} / {later}, {buffer}")
