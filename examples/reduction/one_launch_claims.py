# ---
# jupyter:
#   cudatut:
#     title: {en: "One launch: claims", zh: "一次启动：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# What other sources do with sums by atomics, tried.

# %% setup
import numpy as np
import pycuda.driver as cuda
import cudatut as ct

# %% linear
linear = ct.Kernel("reduction/atomic_sum.cu", "sum_linear")
ones, out = ct.to_device(np.ones(960, "int32")), ct.empty(1, "int32")


def sum_of_ones(block, runs=1):
    cuda.memset_d32(out.gpudata, 0, 1)
    for _ in range(runs):
        linear(ones, out, 960, grid=960 // block, block=block, shared=4 * block)
    return int(out.get()[0])


def tree(threads):
    """What the halving tree leaves of that many ones."""
    sums, half = [1] * threads, threads // 2
    while half:
        sums[:half] = [sums[t] + sums[t + half] for t in range(half)]
        half //= 2
    return sums[0]


ct.facts(
    "960 ones",
    {
        "blocks of 32": sum_of_ones(32),
        "blocks of 96, predicted": 10 * tree(96),
        "blocks of 96, measured": sum_of_ones(96),
        "second run, output not zeroed": sum_of_ones(32, runs=2),
    },
)
for id, block, runs, english, chinese in (
    (
        "atomic-any-block",
        96,
        1,
        "sums for any block size; here 960 ones in blocks of 96",
        "线程块多大都能求和；这里是 960 个 1，每块 96 个线程",
    ),
    (
        "atomic-any-output",
        32,
        2,
        "leaves the sum in its output, whatever was there",
        "不管输出里原来是什么，运行之后就是总和",
    ),
):
    measured = sum_of_ones(block, runs)
    ct.claim(
        id=f"reduction-{id}",
        source="CS179 notes: cudaSum_linear_kernel",
        statement={
            "en": f"The kernel with one atomic addition per block {english}.",
            "zh": f"每块做一次原子加的 kernel，{chinese}。",
        },
        predicted=960,
        measured=measured,
        verdict="confirmed" if measured == 960 else "refuted",
    )
