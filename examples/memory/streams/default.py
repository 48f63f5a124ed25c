# ---
# jupyter:
#   cudatut:
#     title: {en: "Streams and events: the default stream", zh: "流与事件：默认流"}
#     requires: sm_75
#     sizes:
#       ns: [1_000_000, 10_000]
#       rounds: [5, 1]
# ---

# %% [markdown]
# Four kinds of stream, each beside each: do two kernels run at once? PyCUDA
# knows no per-thread default stream, so cuda.bindings launches, by handle.

# %% setup
import ctypes
import time

import numpy as np
import pycuda.driver as cuda
from cuda.bindings import driver

import cudatut as ct

spin = ct.Kernel("memory/streams/streams.cu", "spin")


# --8<-- [start:call]
def call(name, *arguments):
    """What a function of the driver returns. Raises CudatutError."""
    status, *found = getattr(driver, name)(*arguments)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise ct.CudatutError(f"{name}: {status.name}")
    return found[0] if found else None


function = call(
    "cuModuleGetFunction", call("cuModuleLoadData", spin.cubin), b"spin"
)
LEGACY, PER_THREAD = 1, 2  # handles that every program has
ns = 1_000_000
rounds = 5


def run(stream):
    arguments = (ns,), (ctypes.c_longlong,)
    one = (1,) * 6  # a grid of one block of one thread
    call("cuLaunchKernel", function, *one, 0, stream, arguments, 0)


# --8<-- [end:call]


def wait(streams, limit_s=10):
    busy = driver.CUresult.CUDA_ERROR_NOT_READY
    give_up = time.monotonic() + limit_s
    while any(driver.cuStreamQuery(one)[0] == busy for one in streams):
        if time.monotonic() > give_up:
            raise TimeoutError("the GPU has not finished")


# %% pairs
made = [cuda.Stream(flags) for flags in (0, 0, 1, 1)]  # 1: non-blocking
first, second = (
    {
        "legacy default": driver.CUstream(LEGACY),
        "per-thread default": driver.CUstream(PER_THREAD),
        "blocking": driver.CUstream(made[k].handle),
        "non-blocking": driver.CUstream(made[2 + k].handle),
    }
    for k in range(2)
)


def times(*streams):
    """The median time of a kernel in each, as a multiple of one kernel's."""
    found = []
    for _ in range(1 + rounds):
        begin = time.perf_counter()
        for stream in streams:
            run(stream)
        wait(streams)
        found.append(1e9 * (time.perf_counter() - begin) / ns)
    return float(np.median(found[1:]))


rows = {
    one: {other: times(first[one], second[other]) for other in second}
    for one in first
}

# %% at-once
ct.table("two kernels, in kernels' times", rows, corner="first, then")
