# ---
# jupyter:
#   cudatut:
#     title: {en: "Pinned memory: zero-copy", zh: "锁页内存：零拷贝"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       n: [67_108_864, 65_536]
#       rounds: [9, 1]
#       exponents: [[6, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28], [6, 10]]
#       passes: [[1, 2, 4, 8], [1, 2]]
#       shares: [[4096, 1024, 256, 64, 16, 4, 2, 1], [64, 16]]
# ---

# %% [markdown]
# A kernel can reach pinned memory where it lies, across the link. First a copy
# inside the GPU, to see that the kernel itself is not what holds it up: several
# shapes of it, beside the driver's copy and PyTorch's.

# %% setup
import random
import time

import numpy as np
import pycuda.driver as cuda
from cudatut.book.rivals.torch_rival import rival

import cudatut as ct

n = 67_108_864  # floats: 268 MB
rounds = 9
FILE = "memory/pinned/pinned.cu"
copy = ct.Kernel(FILE, "copy")
x = ct.rng(0).random(n, dtype="float32")
d_x, d_out = ct.to_device(x), ct.empty(n, "float32")
flags = cuda.host_alloc_flags
host_in, host_out = (
    cuda.pagelocked_empty(n, "float32", mem_flags=flags.DEVICEMAP)
    for _ in range(2)
)
host_in[:] = x


def mapped(host):
    """The address by which the GPU reaches pinned memory."""
    return np.uint64(host.base.get_device_pointer())


at_in, at_out = mapped(host_in), mapped(host_out)  # asked for once


def launch(source, target, count=n):
    """A block for each tile of 4 x 256 vectors of 16 bytes."""
    copy(source, target, count, grid=ct.cdiv(count, 4 * 4 * 256), block=256)


# %% check
for m in ct.RAGGED:
    ct.poison(d_out)
    launch(at_in, d_out, m)
    ct.check(d_out[:m], x[:m], name=f"kernel reads the host, n={m}")
    host_out[:] = -1
    launch(d_x, at_out, m)
    cuda.Context.synchronize()  # until then the host must not look
    expected = np.concatenate([x[:m], np.full(9, -1, "float32")])
    ct.check(host_out[: m + 9], expected, name=f"kernel writes the host, n={m}")

# %% shapes
shapes = {"4 loads": launch}
for vectors, streaming, threads in ((2, 0, 256), (4, 1, 256), (8, 1, 512)):
    made = ct.Kernel(
        FILE, "copy", defines={"VECTORS": vectors, "STREAMING": streaming}
    )
    resident = made.resources(block=threads).blocks_per_sm
    grids = {
        "": ct.cdiv(n, 4 * vectors * threads),
        ", resident": ct.device().sm_count * resident,
    }
    for how, grid in grids.items():
        name = f"{vectors} loads{', streaming' * streaming}{how}"
        shapes[name] = lambda source, target, k=made, g=grid, t=threads: k(
            source, target, n, grid=g, block=t
        )
for name, run in shapes.items():
    ct.poison(d_out)
    run(d_x, d_out)
    ct.check(d_out, x, name=f"copy, {name}", rtol=0, atol=0)

# %% device-copies
ours = {name: lambda run=run: run(d_x, d_out) for name, run in shapes.items()}
theirs = {
    "driver": lambda: cuda.memcpy_dtod_async(d_out.gpudata, d_x.gpudata, 4 * n),
    "PyTorch": rival(lambda torch, a, b: lambda: b.copy_(a), d_x, d_out),
}
inside = ct.bench(ours | theirs, bytes=8 * n, name="copies inside the GPU")

# %% goals
best = min(ours, key=lambda name: inside[name].median_us)
if not ct.tool.running():
    better = min(theirs, key=lambda name: inside[name].median_us)
    ct.goals(
        "the copying kernel beside the better of the two",
        {"fastest shape": inside.goal(best, better, 0.98)},
    )

# %% [markdown]
# The kernel with one end in the host's memory, beside the driver's copies, which
# the copy engines make.

# %% across
reads = {
    f"kernel, {name}": lambda run=run: run(at_in, d_out)
    for name, run in shapes.items()
}
writes = {
    f"kernel, {name}": lambda run=run: run(d_x, at_out)
    for name, run in shapes.items()
}
# The driver last, so that its row stands below the kernels.
reads["copy engine"] = lambda: cuda.memcpy_htod_async(d_out.gpudata, host_in)
writes["copy engine"] = lambda: cuda.memcpy_dtoh_async(host_out, d_x.gpudata)

# %% reading
reading = ct.bench(reads, bytes=4 * n, name="the host is read", limit=False)

# %% writing
writing = ct.bench(writes, bytes=4 * n, name="the host is written", limit=False)


# %% zero-copy-facts
def fastest(contest):
    rows = [row for row in contest.rows if row.name.startswith("kernel")]
    return max(row.value for row in rows)


engine = {"read": reading["copy engine"], "written": writing["copy engine"]}
ct.facts(
    "zero-copy beside the copy engine",
    {
        "kernel reads the host": (fastest(reading), "GB/s"),
        "kernel writes the host": (fastest(writing), "GB/s"),
        "reading, kernel / copy engine": fastest(reading)
        / engine["read"].value,
        "writing, kernel / copy engine": fastest(writing)
        / engine["written"].value,
    },
)


# %% [markdown]
# From the host, through a kernel, and back: with copies before and after it, and
# with a kernel that reads and writes the host's memory. By the host's clock.


# %% round-trip
def until_done(call):
    """Microseconds until a call has returned and the GPU is done."""
    begin = time.perf_counter()
    call()
    cuda.Context.synchronize()
    return 1e6 * (time.perf_counter() - begin)


def with_copies(count):
    cuda.memcpy_htod_async(d_x.gpudata, host_in[:count])
    launch(d_x, d_out, count)
    cuda.memcpy_dtoh_async(host_out[:count], d_out.gpudata)


def without(count):
    launch(at_in, at_out, count)


exponents = (6, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28)
trips = {"copy, kernel, copy": with_copies, "zero-copy": without}
turns = {
    (name, e): lambda trip=trip, e=e: trip(2**e // 4)
    for name, trip in trips.items()
    for e in exponents
}
for call in turns.values():
    call()
times = ct.take_turns(turns, 2 * rounds + 1, random.Random(0), until_done)
trip_us = {one: float(np.median(some)) for one, some in times.items()}


def until_returned(call):
    """Microseconds of the host alone: until the calls have returned."""
    begin = time.perf_counter()
    call()
    returned = time.perf_counter()
    cuda.Context.synchronize()
    return 1e6 * (returned - begin)


small = {trip: turns[trip, exponents[0]] for trip in trips}
times = ct.take_turns(small, 2 * rounds + 1, random.Random(0), until_returned)
handed_us = {trip: float(np.median(some)) for trip, some in times.items()}

# %% trips
ct.series(
    "there and back, by size",
    x=("bytes", "MB"),
    y=("rate, there and back", "GB/s"),
    lines={
        name: [(2**e / 1e6, 2**e / trip_us[name, e] / 1e3) for e in exponents]
        for name in trips
    },
)

# %% trip-facts
first, last = exponents[0], exponents[-1]
by_copies = {e: trip_us["copy, kernel, copy", e] for e in (first, last)}
without_us = {e: trip_us["zero-copy", e] for e in (first, last)}
ct.facts(
    "there and back",
    {
        "64 bytes, with copies": (by_copies[first], "us"),
        "64 bytes, zero-copy": (without_us[first], "us"),
        "64 bytes, with copies, the host's calls": (
            handed_us["copy, kernel, copy"],
            "us",
        ),
        "64 bytes, zero-copy, the host's calls": (handed_us["zero-copy"], "us"),
        "268 MB, with copies": (by_copies[last] / 1e3, "ms"),
        "268 MB, zero-copy": (without_us[last] / 1e3, "ms"),
    },
)

# %% [markdown]
# Now the kernel reads its input several times. By zero-copy all of it crosses
# the link each time; copied first, it crosses once.

# %% again
passes = (1, 2, 4, 8)
link_us, memory_us = engine["read"].median_us, inside["4 loads"].median_us


def read_again(source, times):
    for _ in range(times):
        launch(source, d_out)


def copied_first(times):
    cuda.memcpy_htod_async(d_x.gpudata, host_in)
    read_again(d_x, times)


turns = {("copy first", k): lambda k=k: copied_first(k) for k in passes}
turns |= {("zero-copy", k): lambda k=k: read_again(at_in, k) for k in passes}
times = ct.take_turns(turns, rounds, random.Random(0), until_done)
us = {one: float(np.median(some)) for one, some in times.items()}

# %% passes
ct.table(
    "the input is read several times",
    {
        f"{k} x": {
            "copy first, predicted": (link_us + k * memory_us) / 1e3,
            "copy first": us["copy first", k] / 1e3,
            "zero-copy, predicted": k * link_us / 1e3,
            "zero-copy": us["zero-copy", k] / 1e3,
        }
        for k in passes
    },
    corner="times read",
    units=dict.fromkeys(
        (
            "copy first, predicted",
            "copy first",
            "zero-copy, predicted",
            "zero-copy",
        ),
        "ms",
    ),
)

# %% [markdown]
# And a kernel that needs only some rows of a table, 512 bytes each, in random
# order: all of the table is copied first; the kernel fetches its rows across the
# link; or the host gathers them into pinned memory, and they are copied.

# %% rows
fetch = ct.Kernel(FILE, "fetch_rows")
WIDTH = 128  # floats of a row
table = host_in.reshape(-1, WIDTH)
order = ct.rng(1).permutation(len(table)).astype("int32")
shares = (4096, 1024, 256, 64, 16, 4, 2, 1)  # one row of so many


def fetch_rows(source, d_rows):
    """Each row of 128 floats by one warp, eight warps in a block."""
    count = d_rows.size
    fetch(source, d_rows, d_out, count, grid=ct.cdiv(count, 8), block=256)


def all_first(d_rows, rows):
    cuda.memcpy_htod_async(d_x.gpudata, host_in)
    fetch_rows(d_x, d_rows)


def zero_copy(d_rows, rows):
    fetch_rows(at_in, d_rows)


def gathered(d_rows, rows):
    target = host_out[: rows.size * WIDTH]
    np.take(table, rows, axis=0, out=target.reshape(-1, WIDTH), mode="clip")
    cuda.memcpy_htod_async(d_out.gpudata, target)


plans = {
    "all is copied first": all_first,
    "zero-copy": zero_copy,
    "the host gathers": gathered,
}
turns = {}
for share in shares:
    rows = order[: len(table) // share]
    d_rows = ct.to_device(rows)
    for name, plan in plans.items():
        ct.poison(d_out)
        plan(d_rows, rows)
        cuda.Context.synchronize()
        if share == shares[0]:
            wanted = table[rows].reshape(-1)
            ct.check(d_out[: wanted.size], wanted, name=f"rows, {name}")
        turns[name, share] = lambda p=plan, d=d_rows, r=rows: p(d, r)
times = ct.take_turns(turns, rounds, random.Random(0), until_done)
us = {one: float(np.median(some)) for one, some in times.items()}

# %% some-rows
ct.series(
    "some rows of a table of 268 MB",
    x=("share of the rows", ""),
    y=("time", "us"),
    lines={
        name: [(1 / share, us[name, share]) for share in reversed(shares)]
        for name in plans
    },
)

# %% rows-facts
whole = us["zero-copy", shares[-1]]
fetched = 4 * n / shares[-1] / whole / 1e3
copied = us["all is copied first", shares[-1]]
ct.facts(
    "some rows",
    {
        "rows by zero-copy": (fetched, "GB/s"),
        "time at one row of 4096, copied / zero-copy": us[
            "all is copied first", shares[0]
        ]
        / us["zero-copy", shares[0]],
        "time at all rows, copied / zero-copy": copied / whole,
        "time at one row of 4096, gathered / zero-copy": us[
            "the host gathers", shares[0]
        ]
        / us["zero-copy", shares[0]],
        "time at all rows, gathered / zero-copy": us[
            "the host gathers", shares[-1]
        ]
        / whole,
    },
)

# %% [markdown]
# Few rows take longer than a launch does. Is it the rows, or where they lie?
# Before each run all of the table is copied, as it may be in a program.

# %% few-rows
few = order[: len(table) // shares[0]]
spread = ct.to_device(few)
in_a_row = ct.to_device(np.arange(few.size, dtype="int32"))


def after_a_copy(call):
    all_first(spread, few)
    cuda.Context.synchronize()
    return until_done(call)


turns = {
    "spread over the table": lambda: fetch_rows(at_in, spread),
    "spread, twice in a row": lambda: [
        fetch_rows(at_in, spread) for _ in range(2)
    ],
    "in a row": lambda: fetch_rows(at_in, in_a_row),
    "spread, in device memory": lambda: fetch_rows(d_x, spread),
}
times = ct.take_turns(turns, 2 * rounds + 1, random.Random(0), after_a_copy)
ct.facts(
    "one row of 4096",
    {name: (float(np.median(some)), "us") for name, some in times.items()},
)
