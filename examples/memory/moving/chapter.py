# ---
# jupyter:
#   cudatut:
#     title: {en: "Every way to move bytes", zh: "传输数据的各种方法"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       n: [67_108_864, 65_536]
#       rounds: [15, 1]
#       counts: [[1, 1_024, 262_144, 67_108_864], [1, 1_024, 4_096, 65_536]]
# ---

# %% [markdown]
# All ways between the host's memory and the GPU's, and within the GPU's, in one
# run: four bytes, 4 KiB, 1 MiB and 268 MB. How long does the program wait?

# %% program
import random
import time

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.moving.direct import prepared

n = 67_108_864  # floats: 268 MB
counts = (1, 1_024, 262_144, 67_108_864)
rounds = 15
copy = prepared(ct.Kernel("memory/pinned/pinned.cu", "copy"), "PPQ")
flags = cuda.host_alloc_flags
x = ct.rng(0).random(n, dtype="float32")
pinned, combined = (
    cuda.pagelocked_empty(n, "float32", mem_flags=flags.DEVICEMAP | more)
    for more in (0, flags.WRITECOMBINED)
)
pinned[:] = combined[:] = x
source, target = ct.to_device(x), ct.empty(n, "float32")
a, b = int(source.gpudata), int(target.gpudata)


def mapped(host):
    return host.base.get_device_pointer()


def kernel(here, there, m):
    copy(here, there, m, grid=ct.cdiv(m, 4096), block=256)


ways = {
    "to the GPU, pageable": lambda m: cuda.memcpy_htod(b, x[:m]),
    "to the GPU, pinned": lambda m: cuda.memcpy_htod(b, pinned[:m]),
    "to the GPU, write-combined": lambda m: cuda.memcpy_htod(b, combined[:m]),
    "to the GPU, zero-copy": lambda m: kernel(mapped(pinned), b, m),
    "to the host, pageable": lambda m: cuda.memcpy_dtoh(x[:m], a),
    "to the host, pinned": lambda m: cuda.memcpy_dtoh(pinned[:m], a),
    "to the host, zero-copy": lambda m: kernel(a, mapped(pinned), m),
    "within the GPU, driver": lambda m: cuda.memcpy_dtod_async(b, a, 4 * m),
    "within the GPU, kernel": lambda m: kernel(a, b, m),
    "memset": lambda m: cuda.memset_d32_async(b, 7, m),
}


def until_done(call):
    begin = time.perf_counter()
    call()
    cuda.Context.synchronize()
    return 1e6 * (time.perf_counter() - begin)


turns = {(w, m): lambda w=w, m=m: ways[w](m) for m in counts for w in ways}
for call in turns.values():
    call()  # the first of each is not counted
times = ct.take_turns(turns, rounds, random.Random(0), until_done)
us = {one: float(np.median(some)) for one, some in times.items()}
for w in ways:
    rate = 4 * n / us[w, n] / 1e3
    print(f"{w:<26} {us[w, 1]:6.1f} us for 4 bytes, {rate:7.1f} GB/s")
slow, fast = (us[f"to the GPU, {kind}", n] for kind in ("pageable", "pinned"))
ct.yours(
    "memory/moving#program", {"268 MB, pageable / pinned": (slow / fast, "x")}
)

# %% [markdown]
# The same as a table. Rates are of bytes copied: within the GPU, the memory
# moves each of them twice.

# %% table
first, small, middle, _ = counts
ct.table(
    "until the program can go on",
    {
        w: {
            "4 bytes": us[w, first],
            "4 KiB": us[w, small],
            "268 MB": 4 * n / us[w, n] / 1e3,
        }
        for w in ways
    },
    corner="way",
    units={"4 bytes": "us", "4 KiB": "us", "268 MB": "GB/s"},
)

# %% [markdown]
# Two numbers for each way, the time of four bytes and the rate of 268 MB: do
# they say how long 1 MiB takes?

# %% formula
rows = {}
for w in ways:
    each = (us[w, n] - us[w, first]) / (n - first)
    predicted = us[w, first] + each * (middle - first)
    rows[w] = {
        "predicted": predicted,
        "measured": us[w, middle],
        "measured / predicted": us[w, middle] / predicted,
    }
ct.table(
    "1 MiB, from the two ends",
    rows,
    corner="way",
    units={"predicted": "us", "measured": "us"},
)

# %% [markdown]
# Do all bytes arrive, at every length? And none beyond?

# %% check
fresh, old = ct.rng(1).random(n, dtype="float32"), source.get()
sevens = np.full(n, 7, "uint32").view("float32")
for m in ct.RAGGED:
    for w in ways:
        x[: m + 1] = pinned[: m + 1] = combined[: m + 1] = fresh[: m + 1]
        ct.poison(target)
        ways[w](m)
        cuda.Context.synchronize()
        if w.startswith("to the host"):
            found = (x if "pageable" in w else pinned)[: m + 1]
            wanted = np.append(old[:m], fresh[m])
        else:
            found, wanted = target[:m], old[:m]
            if w.startswith("to the GPU"):
                wanted = fresh[:m]
            elif w == "memset":
                wanted = sevens[:m]
            if not ct.tool.running():  # where nothing is poisoned
                beyond = target[m : m + 1].get()
                assert np.isnan(beyond).all(), f"{w} wrote past the end"
        ct.check(found, wanted, name=f"{w}, n={m}", rtol=0, atol=0)

# %% [markdown]
# Which way to the GPU is the first to be done, at each size?

# %% fastest
to_gpu = [w for w in ways if w.startswith("to the GPU")]
best = {m: min(to_gpu, key=lambda w: us[w, m]) for m in counts}
ct.table(
    "the fastest way to the GPU",
    {
        size: {
            "fastest": best[m].removeprefix("to the GPU, "),
            "pinned copy / zero-copy": us["to the GPU, pinned", m]
            / us["to the GPU, zero-copy", m],
            "pageable / pinned copy": us["to the GPU, pageable", m]
            / us["to the GPU, pinned", m],
        }
        for size, m in zip(("4 bytes", "4 KiB", "1 MiB", "268 MB"), counts)
    },
    corner="size",
)
