# ---
# jupyter:
#   cudatut:
#     title: {en: "Pinned memory and transfers", zh: "锁页内存与传输"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       n: [67_108_864, 65_536]
#       rounds: [9, 1]
#       in_a_row: [40, 2]
#       megabytes: [[64, 128, 256], [1]]
#       exponents: [[10, 12, 14, 16, 18, 20, 22, 24, 26, 28], [10, 12]]
# ---

# %% [markdown]
# The same copy from two kinds of host memory, and back: memory as NumPy gets it,
# and pinned memory. How long does the program wait?

# %% program
import time

import numpy as np
import pycuda.driver as cuda

import cudatut as ct

n = 67_108_864  # floats: 268 MB
rounds = 9
x = ct.rng(0).random(n, dtype="float32")
on_gpu = ct.to_device(x)
pinned = cuda.pagelocked_empty(n, "float32")
pinned[:] = x


def ms(copy, host):
    """From the call until the GPU is done, by the host's clock."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        copy(host)
        cuda.Context.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return float(np.median(times))


ways = {
    "to the GPU": lambda host: cuda.memcpy_htod(on_gpu.gpudata, host),
    "to the host": lambda host: cuda.memcpy_dtoh(host, on_gpu.gpudata),
}
ratios = {}
for way, copy in ways.items():
    took = {"pageable": ms(copy, x), "pinned": ms(copy, pinned)}
    for name, t in took.items():
        rate = 1e-6 * x.nbytes / t
        print(f"{way}, {name:>8}: {t:6.2f} ms, {rate:5.1f} GB/s")
    ratio = took["pageable"] / took["pinned"]
    ratios[f"{way}, pageable / pinned"] = (ratio, "x")
ct.yours("memory/pinned#program", ratios)

# %% [markdown]
# Do all bytes arrive, from each kind of memory and in both directions? Three
# kinds are pinned: allocated so, allocated so that the processor's caches are
# not used, and an array of NumPy that is pinned where it lies.

# %% kinds
from cudatut.book.memory.pinned.in_place import pinned as pinned_in_place

flags = cuda.host_alloc_flags
uncached = cuda.pagelocked_empty(n, "float32", mem_flags=flags.WRITECOMBINED)
in_place = np.ones(n, "float32")  # written, so that its pages exist
part = n // 16  # to check and to read: from uncached memory it takes long
kinds = {
    "pageable": np.ones(n, "float32"),
    "pinned": pinned,
    "write-combined": uncached,
    "pinned in place": in_place,
}

# %% check
with pinned_in_place(in_place):
    for name, host in kinds.items():
        some = host[:part]
        some[:] = x[:part]
        ct.poison(on_gpu)
        cuda.memcpy_htod(on_gpu.gpudata, some)
        sent = on_gpu[:part]
        ct.check(sent, x[:part], name=f"to the GPU, {name}", rtol=0, atol=0)
        some[:] = 0
        cuda.memcpy_dtoh(some, on_gpu.gpudata)
        ct.check(some, x[:part], name=f"to the host, {name}", rtol=0, atol=0)

# %% [markdown]
# Each kind in both directions; and what the processor itself needs to write and
# to read it. Writing is NumPy's copy of an array, on one core.

# %% by-kind
import random

spare = np.ones(part, "float32")


def until_done(call):
    """Microseconds until a call has returned and the GPU is done."""
    begin = time.perf_counter()
    call()
    cuda.Context.synchronize()
    return 1e6 * (time.perf_counter() - begin)


def uses(host):
    """What is done with one kind of memory, and the bytes of each use."""
    return {
        "to the GPU": (lambda: ways["to the GPU"](host), 4 * n),
        "to the host": (lambda: ways["to the host"](host), 4 * n),
        "host writes": (lambda: np.copyto(host, x), 4 * n),
        "host reads": (lambda: np.copyto(spare, host[:part]), 4 * part),
    }


runs = {(k, u): run for k in kinds for u, run in uses(kinds[k]).items()}
calls = {name: call for name, (call, _) in runs.items()}
with pinned_in_place(in_place):
    times = ct.take_turns(calls, rounds, random.Random(0), until_done)
rows = {name: {} for name in kinds}
for (name, use), us in times.items():
    rows[name][use] = runs[name, use][1] / float(np.median(us)) / 1e3

# %% kinds-table
columns = ("to the GPU", "to the host", "host writes", "host reads")
ct.table(
    "rates by the kind of host memory",
    rows,
    corner="host memory",
    units=dict.fromkeys(columns, "GB/s"),
)

# %% [markdown]
# What does the link carry? Its generation and its width before the copies, and
# while a row of copies is under way.

# %% link
from cudatut.book.measure import link

in_a_row = 40
bus_id = cuda.Context.get_device().pci_bus_id()
cuda.Context.synchronize()
idle = link.now(bus_id)
for _ in range(in_a_row):
    cuda.memcpy_htod_async(on_gpu.gpudata, pinned)
done = cuda.Event()
done.record()
busy = link.while_busy(bus_id, lambda: not done.query())
done.synchronize()
ct.facts(
    "link",
    {
        "generation before the copies": idle.generation,
        "generation while copies run": busy.generation,
        "lanes while copies run": busy.lanes,
        "rate in each direction": (busy.rate, "GB/s"),
    },
)

# %% [markdown]
# Pinned copies by CUDA events, beside PyTorch's from pinned memory of its own:
# each direction alone, then both at once in two streams.

# %% rivals
from cudatut.book.rivals.torch_rival import rival

other = ct.to_device(x[::-1].copy())
back = cuda.pagelocked_empty(n, "float32")
up, down = cuda.Stream(), cuda.Stream()


def to_gpu(stream=None):
    cuda.memcpy_htod_async(on_gpu.gpudata, pinned, stream)


def to_host(stream=None):
    cuda.memcpy_dtoh_async(back, other.gpudata, stream)


def both_ways():
    to_gpu(up)  # streams made so wait for the default stream, and it for them
    to_host(down)


def torch_copies(which):
    """PyTorch's copies: 'to the GPU', 'to the host' or 'both ways'."""

    def prepare(torch, here, there):
        mine, its = (torch.ones(n, pin_memory=True) for _ in range(2))
        streams = [torch.cuda.Stream() for _ in range(2)]

        def both():
            main = torch.cuda.current_stream()
            pairs = zip(streams, ((here, mine), (its, there)))
            for stream, (target, source) in pairs:
                stream.wait_stream(main)
                with torch.cuda.stream(stream):
                    target.copy_(source, non_blocking=True)
            for stream in streams:
                main.wait_stream(stream)

        return {
            "to the GPU": lambda: here.copy_(mine, non_blocking=True),
            "to the host": lambda: its.copy_(there, non_blocking=True),
            "both ways": both,
        }[which]

    # on a copy of its own, so that no check here sees its numbers
    return rival(prepare, ct.empty(n, "float32"), other, vendor=True)


# %% copies
contests = {}
ours = {"to the GPU": to_gpu, "to the host": to_host, "both ways": both_ways}
for way, run in ours.items():
    contests[way] = ct.bench(
        {"pinned copy": run, "PyTorch": torch_copies(way)},
        bytes=(2 if way == "both ways" else 1) * 4 * n,
        name=f"copies: {way}",
        limit=False,
    )

# %% check-both
pinned[:] = x
ct.poison(on_gpu)
back[:] = 0
both_ways()
cuda.Context.synchronize()
ct.check(on_gpu, x, name="both at once, to the GPU", rtol=0, atol=0)
ct.check(back, x[::-1], name="both at once, to the host", rtol=0, atol=0)

# %% shares
rate = {way: contest["pinned copy"].value for way, contest in contests.items()}
alone = [contests[way]["pinned copy"].median_us for way in ways]
both_us = contests["both ways"]["pinned copy"].median_us
ct.facts(
    "share of the link",
    {
        "to the GPU": rate["to the GPU"] / busy.rate,
        "to the host": rate["to the host"] / busy.rate,
        "both, of twice the link": rate["both ways"] / (2 * busy.rate),
        "both, time / longer one alone": both_us / max(alone),
    },
)

# %% goals
if not ct.tool.running():
    ct.goals(
        "pinned copies beside PyTorch's",
        {
            way: contest.goal("pinned copy", "PyTorch", 0.99)
            for way, contest in contests.items()
        },
    )

# %% [markdown]
# How large must a copy be? The rate by size, by the host's clock. A copy takes a
# fixed time and its bytes: the two are read off the pinned copies.

# %% sizes
exponents = (10, 12, 14, 16, 18, 20, 22, 24, 26, 28)
lines, took = {}, {}


def some_bytes(way, host, target):
    if way == "to the GPU":
        return lambda: cuda.memcpy_htod(target.gpudata, host)
    return lambda: cuda.memcpy_dtoh(host, target.gpudata)


for name in ("pageable", "pinned"):
    for way in ways:
        took[name, way] = []
        for e in exponents:
            host = kinds[name][: 2**e // 4]
            target = on_gpu[: 2**e // 4]
            run = some_bytes(way, host, target)
            run()
            us = [until_done(run) for _ in range(rounds)]
            took[name, way].append(float(np.median(us)))
        lines[f"{name}, {way}"] = [
            (2**e / 1e6, 2**e / us / 1e3)
            for e, us in zip(exponents, took[name, way], strict=True)
        ]

# %% by-size
ct.series(
    "copies by size",
    x=("bytes", "MB"),
    y=("rate", "GB/s"),
    lines=lines,
    limit=busy.rate,
)

# %% half
fixed_us = took["pinned", "to the GPU"][0]
full = rate["to the GPU"]
middle = exponents[2 * len(exponents) // 3]
at_middle = took["pinned", "to the GPU"][exponents.index(middle)]
ct.facts(
    "pinned copies to the GPU by size",
    {
        "time of the smallest": (fixed_us, "us"),
        "half of the full rate at": (fixed_us * full * 1e3 / 1e6, "MB"),
        "predicted for 4 MiB": (fixed_us + 2**middle / full / 1e3, "us"),
        "measured for 4 MiB": (at_middle, "us"),
    },
)

# %% [markdown]
# What pinning costs: pinned memory is allocated and freed, an array is pinned in
# place, and, for comparison, an array of NumPy is allocated and written.

# %% pinning
from cudatut.book.memory.pinned.in_place import pin, unpin

megabytes = (64, 128, 256)
costs = {}
for size in megabytes:
    count, samples = size * 2**18, []
    for _ in range(5):
        begin = time.perf_counter()
        allocated = cuda.pagelocked_empty(count, "float32")
        made = time.perf_counter()
        allocated.base.free()
        freed = time.perf_counter()
        fresh = np.empty(count, "float32")
        fresh.fill(1)
        written = time.perf_counter()
        pin(fresh)
        locked = time.perf_counter()
        unpin(fresh)
        marks = begin, made, freed, written, locked, time.perf_counter()
        samples.append(1e3 * np.diff(marks))
        del allocated, fresh
    steps = (
        "allocate pinned",
        "free it",
        "allocate and write pageable",
        "pin in place",
        "unpin",
    )
    medians = np.median(samples, axis=0).tolist()
    costs[f"{size} MiB"] = dict(zip(steps, medians, strict=True))

# %% pinning-table
ct.table(
    "what pinning costs",
    costs,
    corner="size",
    units=dict.fromkeys(steps, "ms"),
)

# %% break-even
largest_ms = costs[f"{megabytes[-1]} MiB"]["pin in place"]
pin_us = 1e3 * largest_ms / (megabytes[-1] * 2**20 / 1e6)  # of each MB
copy_us = {
    name: took[name, "to the GPU"][-1] / (2 ** exponents[-1] / 1e6)
    for name in ("pageable", "pinned")
}
saved_us = copy_us["pageable"] - copy_us["pinned"]
ct.facts(
    "pinning pays",
    {
        "to pin a MB": (pin_us, "us"),
        "saved by each copy of a MB": (saved_us, "us"),
        "copies until pinning pays": pin_us / saved_us,
    },
)
