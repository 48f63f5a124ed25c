# ---
# jupyter:
#   cudatut:
#     title: {en: "Unified memory: host and GPU at the same time", zh: "统一内存：主机与 GPU 同时使用"}
#     requires: sm_75
# ---

# %% [markdown] about-concurrent
# Host and GPU use one array at the same time. The kernel says that it is there,
# and waits for a word that the host writes while the kernel runs; after a second
# it gives up. A process of its own, because where this is not allowed, the system
# ends the process.

# %% concurrent
import cudatut as ct

PROGRAM = """
from pathlib import Path
from time import perf_counter
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from cudatut.book.memory.unified.managed import managed_empty
from pycuda.compiler import SourceModule

code = SourceModule(Path("FILE").read_text(), no_extern_c=True)
wait = code.get_function("wait_for_host")
apart = 1 << 19  # 2 MB in words of 4 bytes
words = managed_empty(3 * apart, "int32")
words[:] = 0
wait(words, np.int64(10**9), grid=(1, 1), block=(1, 1, 1))
begin, polls = perf_counter(), 0
while words[0] == 0 and perf_counter() - begin < 2:
    polls += 1
saw = int(words[0])
words[apart] = 7
cuda.Context.synchronize()
print(saw, int(words[2 * apart]))
"""
file = ct.paths.resolve_source("memory/unified/unified.cu")
child = ct.isolated(PROGRAM.replace("FILE", str(file)))
saw = [int(word) for word in child.stdout.split()] or [0, 0]
ct.facts(
    "host and kernel at the same time",
    {
        "exit status": child.returncode,
        "the host saw": saw[0],
        "the kernel saw": saw[1],
    },
)

# %% [markdown] about-early
# A launch returns at once. What does the host read right after it, and after it
# has waited? The GPU is busy for 5 ms before it negates.

# %% early
import numpy as np
from cudatut.book.memory.unified.managed import managed_empty

negate = ct.Kernel("memory/unified/unified.cu", "negate")
wait = ct.Kernel("memory/unified/unified.cu", "wait_for_host")
nothing = ct.to_device(np.zeros(3 << 19, "int32"))
y = managed_empty(1024, "float32")
y[:] = 1
wait(nothing, 5_000_000, grid=1, block=1)
negate(y.base, y.size, grid=4, block=256)
early = float(y[0])
ct.synchronize()
ct.table(
    "1 is to become -1",
    {
        "right after the launch": {"y[0]": early},
        "after ct.synchronize()": {"y[0]": float(y[0])},
    },
    corner="read when",
)
