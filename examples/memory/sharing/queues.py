# ---
# jupyter:
#   cudatut:
#     title: {en: "Sharing one GPU: work queues", zh: "共享一块 GPU：工作队列"}
#     requires: sm_75
#     timeout_s: 300
#     sizes:
#       ms: [4, 0.1]
#       rounds: [5, 1]
#       chains: [32, 4]
#       connections: [[1, 4, 32], [1, 4]]
#       grids: [[64, 128, 129, 256], [4, 8]]
#       stay: [40, 1]
# ---

# %% [markdown]
# 32 streams with two kernels each, that wait for nobody but each other, and a
# number of hardware queues that an environment variable asks for.

# %% queues
import json

import cudatut as ct

ms = 4  # of a kernel
rounds = 5
chains = 32  # streams
connections = (1, 4, 32)
UNSET = 8  # by the Programming Guide
PROGRAM = """
import json, time
import numpy as np
import pycuda.driver as cuda
import cudatut as ct

spin = ct.Kernel("memory/sharing/sharing.cu", "spin")
streams = [cuda.Stream(1) for _ in range(chains)]

def wait(limit_s=20):
    give_up = time.monotonic() + limit_s
    while not all(stream.is_done() for stream in streams):
        if time.monotonic() > give_up:
            raise TimeoutError("the GPU has not finished")

def once():
    begin = time.perf_counter()
    for stream in streams:
        for _ in range(2):
            spin(int(1e6 * ms), grid=1, block=1, stream=stream)
    wait()
    return 1e3 * (time.perf_counter() - begin) / ms

print(json.dumps(float(np.median([once() for _ in range(1 + rounds)][1:]))))
"""


# --8<-- [start:predicted]
def predicted(chains, queues):
    """In times of a kernel. In each queue the second kernel of a stream waits
    for the first, and all behind it wait with it: one more for each stream.
    """
    return 1 + -(-chains // queues)


# --8<-- [end:predicted]


def run(source, env=None, **names):
    """What a program prints last, in a process of its own."""
    told = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    done = ct.isolated(told + source, timeout_s=90, env=env)
    if done.returncode:
        raise ct.CudatutError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


given = {"chains": chains, "ms": ms, "rounds": rounds}
rows = {}
for queues in ("not set", *connections):
    asked = {"CUDA_DEVICE_MAX_CONNECTIONS": f"{queues}"}
    unset = queues == "not set"
    rows[f"{queues}"] = {
        "predicted": predicted(chains, UNSET if unset else queues),
        "measured": run(PROGRAM, None if unset else asked, **given),
    }

# %% queues-table
ct.table(
    "32 streams of two kernels, in times of a kernel",
    rows,
    corner="CUDA_DEVICE_MAX_CONNECTIONS",
)

# %% [markdown]
# How many kernels are on the GPU at once? Each, of one block in a stream of its
# own, counts itself in, waits, and counts itself out.

# %% grids
grids = (64, 128, 129, 256)  # kernels, each in a stream
stay = 40  # ms, long enough to launch all
LIMIT = 128  # grids on a GPU at once, by the Programming Guide
COUNTING = """
import json, time
import numpy as np
import pycuda.driver as cuda
import cudatut as ct

present = ct.Kernel("memory/sharing/sharing.cu", "present")
streams = [cuda.Stream(1) for _ in range(max(grids))]

def counted(number, ns):
    # Kernels at once, ms until all were launched, ms until all were done.
    now, most = (ct.to_device(np.zeros(1, "int32")) for _ in range(2))
    begin = time.perf_counter()
    for stream in streams[:number]:
        present(now, most, ns, grid=1, block=1, stream=stream)
    handed = time.perf_counter()
    while not all(stream.is_done() for stream in streams[:number]):
        if time.perf_counter() > begin + 30:
            raise TimeoutError("the GPU has not finished")
    done = time.perf_counter()
    return int(most.get()[0]), 1e3 * (handed - begin), 1e3 * (done - begin)

counted(max(grids), 1)  # the first launch in a stream takes longer
print(json.dumps([counted(number, int(1e6 * stay)) for number in grids]))
"""
asked = {"CUDA_DEVICE_MAX_CONNECTIONS": "32"}
rows = {}
found = run(COUNTING, asked, grids=grids, stay=stay)
for number, (most, handed, done) in zip(grids, found, strict=True):
    rows[f"{number}"] = {
        "at once, predicted": min(number, LIMIT),
        "at once": most,
        "time, predicted": -(-number // LIMIT),
        "time": done / stay,
        "launches took": handed,
    }

# %% grids-table
ct.table(
    "kernels of one block, in times of a kernel",
    rows,
    corner="kernels",
    units={"launches took": "ms"},
)
