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
                {
                    "en": "fp32 beside itself; other work on the GPU would show",
                    "zh": "fp32 与自己相比；GPU 上有别的工作时会看出来",
                },
                base / times["fp32 again"].median_us,
                (0.93, 1.07),
            ),
        )

# %% claim-bound
# What has to be read and written of the three matrices, at the rate of this
# GPU's memory, beside the time of the product.
thin = ct.to_device(host_a[:, :16].copy()), ct.to_device(host_b[:16].copy())
thin_run = cublas_types.tf32(*thin, c)
if "TF32" in able and not ct.tool.running():
    name = f"cuBLAS, {n} x {n} x 16"
    thin_us = ct.bench({"TF32": thin_run}, name=name)["TF32"].median_us
    memory = 1e3 * ct.limits.bandwidth()  # bytes a microsecond
    moved, thin_moved = 12 * n * n / memory, 4 * n * (n + 32) / memory
    ct.claim(
        id="tensor-cores-memory-bound",
        source="SGEMM worklog",
        place={"en": "note 16", "zh": "注 16"},
        form="said",
        statement={
            "en": "With tensor cores a product of 4092 x 4092 fp32 matrices "
            "would take 0.44 ms on an RTX A6000, and an optimized kernel would "
            "almost certainly still be bound by memory. Time that memory takes "
            "here, over that of the product in TF32.",
            "zh": "在 RTX A6000 上用张量核心做 4092 x 4092 的 fp32 矩阵乘法只需 0.44 ms，优化后的 kernel "
            "几乎肯定仍受内存限制。这里是本机的显存所需时间与 TF32 乘法用时之比。",
        },
        # Bound by memory: most of the time goes to it.
        expected=0.5,
        measured=moved / times["TF32"].median_us,
        unit="×",
        rule="above",
        elsewhere=True,
        control=(
            {
                "en": "a product with K = 16, which is bound by memory",
                "zh": "K = 16 的乘法，它受内存限制",
            },
            thin_moved / thin_us,
            (0.5, 2.0),
        ),
    )
