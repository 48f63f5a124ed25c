# ---
# jupyter:
#   cudatut:
#     title: {en: "Unified memory: what the driver says", zh: "统一内存：驱动怎么说"}
#     requires: sm_75
#     timeout_s: 90
# ---

# %% [markdown] about-told
# What the driver has noted of an array: the advice that was given, and where all of
# it was last prefetched to.

# %% told
import cudatut as ct
from cudatut.book.memory.unified.managed import (
    GPU,
    HOST,
    advise,
    managed_empty,
    prefetch,
    told,
)

steps = {
    "nothing done": lambda x: None,
    "prefetch to the GPU": lambda x: prefetch(x, GPU),
    "prefetch to the host": lambda x: prefetch(x, HOST),
    "READ_MOSTLY": lambda x: advise(x, "READ_MOSTLY"),
    "PREFERRED_LOCATION host": lambda x: advise(x, "PREFERRED_LOCATION", HOST),
    "ACCESSED_BY GPU": lambda x: advise(x, "ACCESSED_BY", GPU),
}
noted = {}
for name, step in steps.items():
    x = managed_empty(1 << 20, "int32")
    x[:] = 1
    step(x)
    ct.synchronize()
    noted[name] = told(x)
ct.table("what the driver has noted", noted, corner="done before")

# %% [markdown] about-counters
# NVIDIA's profiling library counts what the driver moves, where the system lets it.
# In a process of its own: it has to be told before PyCUDA makes its context.

# %% counting
PROGRAM = """
import json
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pycuda.driver as cuda
from cupti import cupti

cuda.init()
Kind = cupti.ActivityUnifiedMemoryCounterKind
NAMES = {
    Kind.GPU_PAGE_FAULT: "fault groups, GPU",
    Kind.CPU_PAGE_FAULT_COUNT: "faults, host",
    Kind.BYTES_TRANSFER_HTOD: "MB to the GPU",
    Kind.BYTES_TRANSFER_DTOH: "MB to the host",
}
wanted = cupti.ActivityUnifiedMemoryCounterConfig(len(NAMES))
wanted.scope, wanted.device_id, wanted.enable = 1, 0, 1
for place, kind in enumerate(NAMES):
    wanted[place].kind = kind
cupti.activity_configure_unified_memory_counter(wanted.ptr, len(NAMES))
seen = Counter()


def completed(records):
    for one in records:
        if one.counter_kind in (1, 2):
            seen[one.counter_kind] += one.value / 1e6
        else:
            seen[one.counter_kind] += 1


cupti.activity_enable(cupti.ActivityKind.UNIFIED_MEMORY_COUNTER)
cupti.activity_register_callbacks(lambda: (8 << 20, 0), completed)

import pycuda.autoprimaryctx
from cudatut.book.memory.unified.managed import managed_empty
from pycuda.compiler import SourceModule

code = SourceModule(Path("FILE").read_text(), no_extern_c=True)
negate, n = code.get_function("negate"), 1 << 22
x = managed_empty(n, "float32")


def settle():
    cuda.Context.synchronize()
    time.sleep(0.2)  # the driver's notes come a little later
    cupti.activity_flush_all(1)


def launch():
    negate(x, np.int32(n), grid=(1024, 1), block=(256, 1, 1))


steps = {
    "host writes": lambda: x.fill(1),
    "kernel": launch,
    "kernel again": launch,
    "host reads": lambda: x[::1024].sum(),
}
table = {}
settle()
for name, step in steps.items():
    seen.clear()
    step()
    settle()
    table[name] = {
        told: round(float(seen[int(kind)]), 3) for kind, told in NAMES.items()
    }
print(json.dumps(table))
"""

# %% counters
import json
import subprocess

file = ct.paths.resolve_source("memory/unified/unified.cu")
found, why = None, "nothing was counted"
if not ct.tool.running():  # which does not follow another process
    try:
        child = ct.isolated(PROGRAM.replace("FILE", str(file)), timeout_s=30)
    except subprocess.TimeoutExpired:
        why = "it did not end"
    else:
        last = (child.stdout.strip().splitlines() or [""])[-1]
        if child.returncode == 0 and last.startswith("{"):
            found = json.loads(last)
        elif child.stderr.strip():
            why = child.stderr.strip().splitlines()[-1].replace("`", "'")
if found:
    ct.table("as CUPTI counts", found, corner="16 MB")
else:
    ct.facts("as CUPTI counts", {"not to be had here": f"`{why[:60]}`"})
