# ---
# jupyter:
#   cudatut:
#     title: {en: "Sharing one GPU: green contexts", zh: "共享一块 GPU：绿色上下文"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       wanted: [16, 2]
#       stay: [100_000, 1_000]
#       block_ms: [2, 0.05]
#       waves: [20, 2]
#       rounds: [9, 1]
#       tried: [100_000, 100]
# ---

# %% [markdown]
# The SMs in two groups, with a stream for each. A kernel notes on which SMs its
# blocks ran.

# %% setup
import ctypes
import time

import numpy as np

import cudatut as ct
from cudatut.book.memory.sharing.clients import BLOCK, FILE, expected
from cudatut.book.memory.sharing.green_calls import (
    NON_BLOCKING, Green, address, call, driver, launch, loaded,
)  # fmt: skip

WHERE = ctypes.c_void_p, ctypes.c_longlong
COUNT = ctypes.c_void_p, ctypes.c_int, ctypes.c_int
where, count = (loaded(ct.Kernel(FILE, name)) for name in ("where", "count"))


def wait(*streams, limit_s=20):
    """When each of the streams was done, by the host's clock."""
    done = driver.CUresult.CUDA_SUCCESS
    busy = driver.CUresult.CUDA_ERROR_NOT_READY
    when, give_up = {}, time.perf_counter() + limit_s
    while len(when) < len(streams):
        for number, stream in enumerate(streams):
            (status,) = driver.cuStreamQuery(stream)
            if status not in (done, busy):
                raise ct.CudatutError(f"a stream has failed: {status.name}")
            if status == done:
                when.setdefault(number, time.perf_counter())
        if time.perf_counter() > give_up:
            raise TimeoutError("the GPU has not finished")
    return [when[number] for number in range(len(streams))]


# %% groups
wanted = 16  # SMs for the small group
green = Green(wanted)
sms = ct.device().sm_count
first, second = (call("cuStreamCreate", NON_BLOCKING) for _ in range(2))
stay = 100_000  # ns that each block remains
used = {}
for name, stream, told in (
    ("the small group", green.small, green.small_sms),
    ("the rest", green.rest, green.rest_sms),
    ("an ordinary stream", first, sms),
):
    out = ct.to_device(np.full(16 * sms, -1, "int32"))
    ct.synchronize()
    launch(where, out.size, 32, stream, (address(out), stay), WHERE)
    wait(stream)
    ran = set(out.get().tolist())
    used[name] = {"SMs, told": told, "SMs, used": len(ran), "ran": ran}

# %% groups-table
common = used["the small group"]["ran"] & used["the rest"]["ran"]
for row in used.values():
    del row["ran"]
ct.table("on which SMs blocks ran", used, corner="stream")
ct.check(np.array([len(common)]), np.array([0]), name="SMs in both groups")

# %% [markdown]
# A short kernel comes while a long one fills the GPU: so many blocks that they
# run in 20 waves. How long until the short one is done?

# %% calibrated
block_ms = 2  # of a wave of the long kernel
waves = 20
tried = 100_000  # steps
full = sms * (ct.device().max_threads_per_sm // BLOCK)  # blocks at once


def zeros(blocks):
    return ct.to_device(np.zeros(blocks * BLOCK, "uint32"))


long_out, short_out = zeros(waves * full), zeros(green.small_sms)


def run(out, stream, steps):
    """Launches `count`, one thread for each element."""
    n = out.size
    values = address(out), n, steps
    launch(count, n // BLOCK, BLOCK, stream, values, COUNT)


def took(work, stream):
    begin = time.perf_counter()
    work()
    return 1e3 * (wait(stream)[0] - begin)


wave = zeros(full)
wave_ms = min(took(lambda: run(wave, first, tried), first) for _ in range(4))
steps = max(int(tried * block_ms / wave_ms), 1)
short_ms = min(took(lambda: run(short_out, first, steps), first) for _ in "123")

# %% urgent
rounds = 9
least, greatest = call("cuCtxGetStreamPriorityRange")
urgent = call("cuStreamCreateWithPriority", NON_BLOCKING, greatest)
later_ms = 2.5 * block_ms  # in the middle of a wave
ways = {
    "two streams": (first, second),
    "two streams, one with priority": (first, urgent),
    "green contexts": (green.rest, green.small),
}


def beside(long_stream, short_stream):
    """ms of the long kernel, and of the short one that comes later."""
    begin = time.perf_counter()
    run(long_out, long_stream, steps)
    while time.perf_counter() < begin + later_ms / 1e3:
        pass
    later = time.perf_counter()
    run(short_out, short_stream, steps)
    long_done, short_done = wait(long_stream, short_stream)
    return 1e3 * (long_done - begin), 1e3 * (short_done - later)


# --8<-- [start:predicted]
left = green.rest_sms / sms  # of the GPU, for the long kernel
long_ms = waves * block_ms
predicted = {  # the long kernel, the short one
    "two streams": (long_ms, long_ms - later_ms + short_ms),
    "two streams, one with priority": (
        long_ms + short_ms,  # blocks that gave way come last
        0.5 * block_ms + block_ms,
    ),
    "green contexts": (long_ms / left, short_ms),
}
# --8<-- [end:predicted]
rows = {}
for name, both in ways.items():
    times = np.array([beside(*both) for _ in range(1 + rounds)][1:])
    ct.check(short_out, expected(short_out.size, steps), name=f"short, {name}")
    ct.check(long_out, expected(long_out.size, steps), name=f"long, {name}")
    medians = np.median(times, axis=0)
    rows[name] = {
        "short, predicted": predicted[name][1],
        "short": float(medians[1]),
        "short, most": float(times[:, 1].max()),
        "long, predicted": predicted[name][0],
        "long": float(medians[0]),
    }

# %% urgent-table
ct.table(
    "a short kernel beside a long one",
    rows,
    corner="by",
    units=dict.fromkeys(rows["two streams"], "ms"),
)

# %% closed
ct.synchronize()
for stream in (first, second, urgent):
    call("cuStreamDestroy", stream)
green.close()
