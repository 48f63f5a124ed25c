# ---
# jupyter:
#   cudatut:
#     title: {en: "Precision: claims", zh: "精度：有关说法"}
#     requires: sm_80
#     timeout_s: 60
#     sizes:
#       n: [4096, 128]
# ---

# %% [markdown]
# What another source says of cuBLAS on the tensor cores, tried.

# %% setup
import numpy as np

from cudatut.book.numbers.bf16 import to_bf16
from cudatut.book.rivals import cublas_types
import cudatut as ct

n = 4096
rng = ct.rng(0)
host_a, host_b = (rng.random((n, n), "float32") * 2 - 1 for _ in range(2))
a, b = ct.to_device(host_a), ct.to_device(host_b)
c = ct.empty((n, n), "float32")
short_a, short_b = ct.to_device(to_bf16(host_a)), ct.to_device(to_bf16(host_b))
runs = {
    "fp32": ct.vendor.gemm(a, b, c),
    "TF32": cublas_types.tf32(a, b, c),
    "bf16": cublas_types.bf16(short_a, short_b, c),
}

# %% check
row = host_a[:1].astype("float64") @ host_b
for name, run in runs.items():
    if run:
        ct.poison(c)
        run()
        atol = {"fp32": 1e-2, "TF32": 0.2, "bf16": 1.0}[name]
        got = np.array(c.get()[:1])
        ct.check(got, row, name=f"cuBLAS, {name}", rtol=0, atol=atol)

# %% bench
# The rival `fp32` a second time: what the same measurement gives for no change.
able = {name: run for name, run in runs.items() if run}
if able:
    again = {"fp32 again": able["fp32"]}
    times = ct.bench({**able, **again}, name=f"cuBLAS, {n} x {n} x {n}")

# %% claims
if able and not ct.tool.running():
    base = times["fp32"].median_us
    for name, gain in {"TF32": 2.5, "bf16": 3.5}.items():
        if name not in able:
            continue
        ct.claim(
            id=f"{name.lower()}-in-cublas",
            source="SGEMM worklog",
            place={
                "en": "the note on cuBLAS in fp32, RTX A6000",
                "zh": "关于 FP32 精度下 cuBLAS 的注释，RTX A6000",
            },
            form="printed",
            statement={
                "en": f"In the author's setup, {name} lets cuBLAS use the "
                f"tensor cores, which raises the rate by a factor of {gain}.",
                "zh": f"在作者的环境里，{name} 让 cuBLAS 用上张量核心，速率变为 {gain} 倍。",
            },
            expected=gain,
            measured=base / times[name].median_us,
            unit="×",
            rule="gain",
            control=(
                {"en": "fp32 beside itself", "zh": "fp32 与自己相比"},
                base / times["fp32 again"].median_us,
                (0.97, 1.03),
            ),
        )
