"""A program that has CUPTI count faults and moved bytes of managed memory, step by
step, and prints them as JSON. It runs in a process of its own.
"""

# --8<-- [start:counting]
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
from pycuda.compiler import SourceModule

code = SourceModule(Path("FILE").read_text(), no_extern_c=True)
negate, n = code.get_function("negate"), 1 << 22
x = cuda.managed_empty(n, "float32", mem_flags=1)


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
# --8<-- [end:counting]
