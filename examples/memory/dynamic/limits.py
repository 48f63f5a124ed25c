# ---
# jupyter:
#   cudatut:
#     title: {en: "Dynamic parallelism: limits", zh: "动态并行：限制"}
#     requires: sm_75
#     timeout_s: 120
#     alone: false
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
# One thread launches 6000 kernels that have to run one after another. The first
# of them waits until all launches are made, so they pile up.

# %% pending
rows = {}
for limit in () if ct.tool.running() else (2048, 8192):
    rows[f"{limit}"] = in_a_process("pending", limit, 6000, 500_000_000)
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
# The notes on Learn CUDA Programming give the deepest nesting. The number is from
# the time before CUDA 12, which changed dynamic parallelism.

# %% depth-claim
deepest, allowed = (
    rows[name]["reached"] if rows else 0
    for name in ("inside each other, more", "inside each other")
)
ct.claim(
    id="notes-dynamic-depth",
    source="Learn CUDA Programming, notes",
    place={
        "en": "CUDA Dynamic Parallelism, last sentence",
        "zh": "CUDA Dynamic Parallelism 一节，最后一句",
    },
    form="said",
    statement={
        "en": "Nested launches are limited to 24 levels, as they were before "
        "CUDA 12. Of 100, so many run:",
        "zh": "嵌套启动最多 24 层（CUDA 12 之前如此）。要求 100 层，运行了几层：",
    },
    expected=24,
    measured=deepest,
    rule="equal",
    found="counted",
    elsewhere=True,  # another version
    control=({"en": "of 20", "zh": "要求 20 层"}, allowed, 20),
)
