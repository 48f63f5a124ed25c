# ---
# jupyter:
#   cudatut:
#     title: {en: "Element-wise kernels: instructions", zh: "逐元素 kernel：指令数"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       n: [67_108_864, 65_536, 67_108_864]
# ---

# %% [markdown]
# How many instructions does each formula take for an element, and how busy are
# the units that issue and compute them? The profiler runs this file again.

# %% launches
import numpy as np

import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16
from cudatut.book.primitives.fusion import launch

n = 67_108_864
ct.compile_ahead(launch.instances())
sample = 2 * ct.rng(0).standard_normal(65_536, dtype="float32")
for dtype in ("float32", "uint16"):
    values = sample if dtype == "float32" else to_bf16(sample)
    x, out = ct.to_device(np.resize(values, n)), ct.empty(n, dtype)
    for op in launch.OPS:
        launch.gelu(x, out, op)()
    ct.synchronize()

# %% counters
METRICS = {
    "smsp__inst_executed.sum": "instructions per element",
    "smsp__issue_active.avg.pct_of_peak_sustained_active": "issuing",
    "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active": "ALU",
    "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active": "XU",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "memory",
}
counted = ct.profile_launches(
    "primitives/fusion_counted",
    kernel="gelu",
    metrics=list(METRICS),
    launches=2 * len(launch.OPS),
)
if counted:
    rows = {}
    names = [f"{t}, {op}" for t in ("fp32", "bf16") for op in launch.OPS]
    for name, run in zip(names, counted):
        values = dict(zip(METRICS.values(), run.values()))
        values["instructions per element"] *= 32 / n
        rows[name] = values
    units = dict.fromkeys(("issuing", "ALU", "XU", "memory"), "%")
    ct.table("instructions", rows, corner="kernel", units=units)

# %% [markdown]
# How many could be issued while an element's bytes pass at the measured limit?
# Each SM issues four a cycle, each for 32 threads.

# %% slots
device = ct.device()
slots = 4 * 32 * device.sm_count * device.clock_khz * 1e3  # a second
rate = ct.limits.bandwidth() * 1e9  # bytes a second
ct.table(
    "instructions per element, at the measured limit",
    {
        name: {"bytes of an element": size, "at most": slots * size / rate}
        for name, size in (("fp32", 8), ("bf16", 4))
    },
    corner="type",
)
