# ---
# jupyter:
#   cudatut:
#     title: {en: "Dynamic parallelism: limits", zh: "动态并行：限制"}
#     requires: sm_75
#     timeout_s: 300
# ---

# %% [markdown]
# Before CUDA 12 a kernel could wait for the kernels that it launched, by
# cudaDeviceSynchronize(). What does today's compiler say to that?

# %% waits
import re

import cudatut as ct
from cudatut.book.memory.dynamic.limited import in_a_process
from cudatut.book.memory.dynamic.linked import linked

source = """
// expect: compile error
__global__ void child(int *x) { *x = 7; }

extern "C" __global__ void parent(int *x, int *seen) {
  child<<<1, 1>>>(x);
  cudaDeviceSynchronize();
  *seen = *x;
}
"""
try:
    linked(source, options=("-rdc=true",))
    refused = "compiled"
except ct.CudatutError as error:
    said = re.findall(r"error: (.*)", str(error))
    refused = said[0] if said else str(error)
print(refused)

# %% [markdown]
# A kernel launches another one that waits a little and then writes 7. What does
# the first one see, and what a kernel that is launched to run at its end?

# %% early
seen = {"launcher": 0, "tail": 0}
if not ct.tool.running():
    seen = in_a_process("early")
ct.facts(
    "a number that a launched kernel writes",
    {
        "who launched it sees": seen["launcher"],
        "a tail launch sees": seen["tail"],
    },
)

# %% [markdown]
# One thread launches 6000 kernels of 5 microseconds that have to run one after
# another. So launches pile up.

# %% pending
rows = {}
for limit in () if ct.tool.running() else (2048, 8192):
    rows[f"{limit}"] = in_a_process("pending", limit, 6000, 5000)
if rows:
    ct.table("launches that pile up", rows, corner="may wait")

# %% [markdown]
# How deep can a kernel be inside others? Each of them is complete only when those
# that it launched are. In a chain of tail launches, each is complete before the
# next one begins.

# %% depth
rows = {}
for name, what, most in (
    ("inside each other", "depth", 20),
    ("inside each other, more", "depth", 100),
    ("tail launches", "tails", 1000),
):
    if not ct.tool.running():
        rows[name] = in_a_process(what, most)
if rows:
    ct.table("how deep", rows, corner="launches")

# %% [markdown]
# How much device memory does it take? A module without launches for comparison.

# %% memory
rows = {}
for limit in () if ct.tool.running() else (0, 2048, 32768):
    name = f"{limit} may wait" if limit else "no launches"
    rows[name] = in_a_process("memory", limit)
if rows:
    ct.table(
        "memory that is gone",
        rows,
        corner="module",
        units={"loaded": "MB", "run": "MB"},
    )
