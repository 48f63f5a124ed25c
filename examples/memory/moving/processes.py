# ---
# jupyter:
#   cudatut:
#     title: {en: "Every way to move bytes: between two processes", zh: "传输数据的各种方法：两个进程之间"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# Two processes, one GPU. This one gives away a handle to an allocation; the
# other opens it, reads what is there, and writes a word. No byte is copied.

# %% handle
import json
import time

import numpy as np
import pycuda.driver as cuda

import cudatut as ct

n = 16_777_216  # uint32: 67 MB
OPENING = """
import json, time
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda

n, handle = COUNT, bytearray.fromhex("HANDLE")
begin = time.perf_counter()
memory = cuda.IPCMemoryHandle(handle)
opened = time.perf_counter() - begin
try:
    theirs = int(memory)
    own = [cuda.mem_alloc(4 * n) for _ in range(2)]

    def ms(source):
        times = []
        for _ in range(15):
            begin, end = cuda.Event(), cuda.Event()
            begin.record()
            cuda.memcpy_dtod_async(int(own[0]), source, 4 * n)
            end.record()
            end.synchronize()
            times.append(begin.time_till(end))
        return float(np.median(times))

    found = np.empty(n, "uint32")
    cuda.memcpy_dtoh(found, theirs)
    times = {"theirs": ms(theirs), "own": ms(int(own[1]))}
    cuda.memset_d32(theirs, 7, 1)
    cuda.Context.synchronize()
finally:
    memory.close()
print(json.dumps({
    "open": 1e6 * opened, "sum": int(found.sum(dtype="uint64")), **times
}))
"""


def other_process(program):
    """What a process prints last, as JSON. Raises CudatutError if it fails."""
    child = ct.isolated(program)
    if child.returncode:
        why = (child.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise ct.CudatutError(f"the other process failed: {why}")
    return json.loads(child.stdout.strip().splitlines()[-1])


values = ct.rng(0).integers(0, 1 << 32, n, dtype="uint32")
shared = cuda.mem_alloc(4 * n)  # an allocation of its own: all of it is given
cuda.memcpy_htod(shared, values)
cuda.Context.synchronize()
told = None
if not ct.tool.running():  # which does not follow another process
    begin = time.perf_counter()
    handle = cuda.mem_get_ipc_handle(shared)
    given = 1e6 * (time.perf_counter() - begin)
    program = OPENING.replace("HANDLE", bytes(handle).hex())
    told = other_process(program.replace("COUNT", str(n)))

# %% check-handle
if told:
    sums = [int(values.sum(dtype="uint64")), told["sum"]]
    ct.check(np.array(sums[1:]), np.array(sums[:1]), name="the other reads")
    values[0] = 7  # what the other process has written
    after = np.empty_like(values)
    cuda.memcpy_dtoh(after, shared)
    ct.check(after, values, name="this one reads what the other wrote")

# %% handle-facts
if told:
    ct.facts(
        "an allocation of another process",
        {
            "the handle": (64, "bytes"),
            "to make it": (given, "us"),
            "to open it": (told["open"], "us"),
            "copy from it": (4e-6 * n / told["theirs"], "GB/s"),
            "time, from it / from an own one": told["theirs"] / told["own"],
        },
    )

# %% [markdown]
# Memory of the host that two processes share: a file in /dev/shm, which lies in
# memory. Each process pins it for itself. This one writes; the other copies to
# the GPU, changes a word there, and copies back into the same memory.

# %% shared
from multiprocessing.shared_memory import SharedMemory

from cudatut.book.memory.pinned import in_place

m = 4_194_304  # uint32: 17 MB
COPYING = """
import json, time
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from cudatut.book.memory.pinned import in_place

n = COUNT
x = np.memmap("/dev/shm/NAME", "uint32", "r+", shape=n)
on_gpu = cuda.mem_alloc(4 * n)

def us(call):
    times = []
    for _ in range(15):
        begin = time.perf_counter()
        call()
        cuda.Context.synchronize()
        times.append(1e6 * (time.perf_counter() - begin))
    return float(np.median(times))

before = us(lambda: cuda.memcpy_htod(on_gpu, x))
begin = time.perf_counter()
in_place.pin(x)
pinning = 1e6 * (time.perf_counter() - begin)
try:
    after = us(lambda: cuda.memcpy_htod(on_gpu, x))
    cuda.memset_d32(on_gpu, 7, 1)
    cuda.memcpy_dtoh(x, on_gpu)
finally:
    in_place.unpin(x)
print(json.dumps({"pageable": before, "pinned": after, "pin": pinning}))
"""
memory = SharedMemory(create=True, size=4 * m)
try:
    y = np.frombuffer(memory.buf, "uint32", m)
    y[:] = values[:m]
    told = None
    if not ct.tool.running():
        with in_place.pinned(y):
            program = COPYING.replace("NAME", memory.name)
            told = other_process(program.replace("COUNT", str(m)))
    result = y.copy()
finally:
    y = None  # or the memory could not be closed
    memory.close()
    memory.unlink()

# %% check-shared
if told:
    wanted = values[:m].copy()
    wanted[0] = 7
    ct.check(result, wanted, name="what the other process copied back")

# %% shared-facts
if told:
    ct.facts(
        "17 MB of the host, shared by two processes",
        {
            "the other pins it": (told["pin"], "us"),
            "to the GPU, before": (4e-3 * m / told["pageable"], "GB/s"),
            "to the GPU, pinned": (4e-3 * m / told["pinned"], "GB/s"),
        },
    )
