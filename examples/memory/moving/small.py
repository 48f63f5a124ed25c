# ---
# jupyter:
#   cudatut:
#     title: {en: "Every way to move bytes: small data", zh: "传输数据的各种方法：少量数据"}
#     requires: sm_75
#     timeout_s: 60
#     sizes:
#       rounds: [101, 1]
# ---

# %% [markdown]
# Four bytes, or 4,000, go from the host to a kernel that doubles them: as an
# argument, through constant memory, by a copy, or read where they lie.

# %% ways
import random
import time

import numpy as np
import pycuda.driver as cuda

import cudatut as ct
from cudatut.book.memory.moving.direct import prepared

counts = (1, 1_000)  # floats
rounds = 101
FILE = "memory/moving/small.cu"
ct.activate()  # PyCUDA asks for memory first, before ct has met the GPU
host = cuda.pagelocked_empty(
    counts[-1], "float32", mem_flags=cuda.host_alloc_flags.DEVICEMAP
)
host[:] = ct.rng(0).random(host.size, dtype="float32")
mapped = host.base.get_device_pointer()


def ways_of(count):
    """name -> call; each reads the host's numbers and fills `out`."""
    types = {"argument": f"{4 * count}sP", "pointer": "PP", "constant": "P"}
    argument, pointer, constant = (
        prepared(
            ct.Kernel(FILE, f"from_{which}", defines={"COUNT": count}), letters
        )
        for which, letters in types.items()
    )
    symbol, size = constant.module.get_global("table")
    assert size == 4 * count
    data, out = ct.empty(count, "float32"), ct.empty(count, "float32")
    source, target = int(data.gpudata), int(out.gpudata)
    shape = {"grid": 1, "block": 256}

    def by_argument():
        argument(host[:count].tobytes(), target, **shape)

    def by_constant():
        cuda.memcpy_htod_async(symbol, host[:count])
        constant(target, **shape)

    def by_copy():
        cuda.memcpy_htod_async(source, host[:count])
        pointer(source, target, **shape)

    def by_zero_copy():
        pointer(mapped, target, **shape)

    calls = {
        "argument": by_argument,
        "constant memory": by_constant,
        "copy": by_copy,
        "zero-copy": by_zero_copy,
        "control: no data": lambda: pointer(source, target, **shape),
    }
    return calls, out, data  # which has to live as long as its address


plans = {count: ways_of(count) for count in counts}
names = list(plans[1][0])

# %% check
for count, (calls, out, _) in plans.items():
    for name in names[:-1]:
        host[:] = ct.rng(count).random(host.size, dtype="float32")
        ct.poison(out)
        calls[name]()
        cuda.Context.synchronize()
        ct.check(out, 2 * host[:count], name=f"{4 * count} bytes, {name}")


# %% table
def until_done(call):
    """Microseconds until a call has returned and the GPU is done."""
    begin = time.perf_counter()
    call()
    cuda.Context.synchronize()
    return 1e6 * (time.perf_counter() - begin)


turns = {(n, c): plans[c][0][n] for c in counts for n in names}
times = ct.take_turns(turns, rounds, random.Random(0), until_done)
us = {one: float(np.median(some)) for one, some in times.items()}
ct.table(
    "small data for a kernel, with its launch",
    {n: {f"{4 * c} bytes": us[n, c] for c in counts} for n in names},
    corner="way",
    units={f"{4 * c} bytes": "us" for c in counts},
)
