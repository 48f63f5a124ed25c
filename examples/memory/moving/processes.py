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
# Some machines do not allow it: then the reason stands in the place of times.

# %% handle
import json
import re
import subprocess
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
    child = ct.isolated(program, timeout_s=30)
    if child.returncode:
        raise ct.CudatutError(f"the other process failed: {child.stderr}")
    return json.loads(child.stdout.strip().splitlines()[-1])


ct.activate()  # PyCUDA asks for memory first, before ct has met the GPU
values = ct.rng(0).integers(0, 1 << 32, n, dtype="uint32")
shared = cuda.mem_alloc(4 * n)  # an allocation of its own: all of it is given
cuda.memcpy_htod(shared, values)
cuda.Context.synchronize()
opened, refused = None, ""
if not ct.tool.running():  # which does not follow another process
    try:
        begin = time.perf_counter()
        handle = cuda.mem_get_ipc_handle(shared)
        given = 1e6 * (time.perf_counter() - begin)
        program = OPENING.replace("HANDLE", bytes(handle).hex())
        opened = other_process(program.replace("COUNT", str(n)))
    except subprocess.TimeoutExpired:
        refused = "the other process did not end"
    except (cuda.Error, ct.CudatutError) as error:
        found = re.search(r"cuIpc\w+ failed: .*", str(error))
        if found is None:  # another fault than a refusal
            raise
        refused = found[0]

# %% check-handle
if opened:
    sums = [int(values.sum(dtype="uint64")), opened["sum"]]
    ct.check(np.array(sums[1:]), np.array(sums[:1]), name="the other reads")
    values[0] = 7  # what the other process has written
    after = np.empty_like(values)
    cuda.memcpy_dtoh(after, shared)
    ct.check(after, values, name="this one reads what the other wrote")

# %% handle-facts
if opened:
    costs = {
        "the handle": (len(handle), "bytes"),
        "to make it": (given, "us"),
        "to open it": (opened["open"], "us"),
        "copy from it": (4e-6 * n / opened["theirs"], "GB/s"),
        "time, from it / from an own one": opened["theirs"] / opened["own"],
    }
else:
    costs = {"not to be had here": f"`{refused or 'not tried'}`"}
ct.facts("an allocation of another process", costs)

# %% [markdown]
# Memory of the host that two processes share: a file in /dev/shm, which lies in
# memory. Who copies pins it for itself. This process writes; the other copies to
# the GPU, changes a word there, and copies back into the same memory.

# %% shared
import tempfile

m = 4_194_304  # uint32: 17 MB
COPYING = """
import json, time
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from cudatut.book.memory.pinned import in_place

n = COUNT
x = np.memmap("NAME", "uint32", "r+", shape=n)
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
    cuda.memset_d32(on_gpu, 9, 1)
    cuda.memcpy_dtoh(x, on_gpu)
finally:
    in_place.unpin(x)
print(json.dumps({"pageable": before, "pinned": after, "pin": pinning}))
"""
told = None
with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:  # gone at the end
    y = np.memmap(file.name, "uint32", "w+", shape=m)
    y[:] = values[:m]
    if not ct.tool.running():
        program = COPYING.replace("NAME", file.name)
        told = other_process(program.replace("COUNT", str(m)))
    result = np.array(y)

# %% check-shared
if told:
    wanted = values[:m].copy()
    wanted[0] = 9
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
