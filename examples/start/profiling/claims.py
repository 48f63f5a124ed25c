# ---
# jupyter:
#   cudatut:
#     title: {en: "Timing and profiling: claims of other sources", zh: "计时与性能分析：其他资料的说法"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [10000000, 1000]
# ---
# %% [markdown]
# A tutorial profiles a vector add of ten million elements by one thread, in CUDA C++. Here is such a program, whose calls
# are timed by the host's clock: as the tutorial has it, and with two calls more, one that makes the context and one that
# waits for the kernel.

# %% calls
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import cudatut as ct

n = 10_000_000
source = ct.paths.resolve_source("start/profiling/profiling_claims.cu")
ct.paths.note_read(source)
nvcc = ct.find_nvcc()
program = Path(tempfile.mkdtemp()) / "profiling_claims"
command = [nvcc, f"-arch={ct.device().arch}", *ct.nvcc_flags(nvcc)]
subprocess.run([*command, "-o", program, source], check=True)


def run(*words):
    """Microseconds of each call of the C++ program, in a process of its own."""
    call = [str(word) for word in (program, n, *words)]
    child = ct.isolated(
        f"import subprocess; print(subprocess.check_output({call}, text=True))"
    )
    assert child.returncode == 0, child.stderr
    found = json.loads(child.stdout)
    wrong = np.array([found.pop("wrong")])
    ct.check(wrong, np.array([0]), name="wrong elements")
    return found


CALLS = ("context", "cudaMalloc", "cudaMemcpy", "launch", "wait", "cudaFree")
APART = "with two calls more"
runs = {"as in the tutorial": run(), APART: run("apart")}
ct.table(
    "What the calls take",
    {
        call: {name: us[call] / 1e3 or None for name, us in runs.items()}
        for call in CALLS
    },
    corner="call",
    units=dict.fromkeys(runs, "ms"),
)


def share(us):
    """Share of cudaMalloc and cudaMemcpy in the time of all calls."""
    both = us["cudaMalloc"] + us["cudaMemcpy"]
    return 100 * both / sum(us[call] for call in CALLS)


shares = {name: share(us) for name, us in runs.items()}

# %% claim-share
ct.claim(
    id="allocating-and-copying-99-percent",
    source="CUDATutorial 03",
    place={
        "en": "the paragraph below the output of nvprof",
        "zh": "nvprof 的输出之后的一段",
    },
    form="said",
    statement={
        "en": "99 % of the time of the API calls goes into three cudaMemcpy "
        "and three cudaMalloc, so allocation is a heavy operation. "
        "Share of all other calls, at most 1 % if that is so; here one "
        "call before makes the context, and one between waits for the "
        "kernel:",
        "zh": "API 调用的时间有 99 % 花在三次 cudaMemcpy 和三次 cudaMalloc 上，"
        "可见显存分配是一个比较“重”的操作。若是如此，其余调用的占比至"
        "多 1 %；这里先由一个调用创建上下文，再由一个调用等待 kernel：",
    },
    expected=1.0,  # 99 after rounding
    measured=100 - shares[APART],
    unit="%",
    rule="below",
    control=(
        {
            "en": "without these two calls",
            "zh": "没有这两个调用",
        },
        100 - shares["as in the tutorial"],
        ("TODO", "what it has to be"),
    ),
    depends={
        "en": "which call is the first of the process, and which is the first "
        "that waits",
        "zh": "哪个调用是进程里的第一个，哪个调用最先等待",
    },
)

# %% claim-launch
first = runs["as in the tutorial"]["launch"]
later = runs["as in the tutorial"]["later launch"]
ct.claim(
    id="launch-tens-of-microseconds",
    source="CUDATutorial 03",
    place={
        "en": "list of calls, cudaLaunchKernel",
        "zh": "API 列表，cudaLaunchKernel",
    },
    form="said",
    statement={
        "en": "cudaLaunchKernel takes some tens of microseconds, so at least 20. "
        "A launch after the first:",
        "zh": "cudaLaunchKernel 的耗时在几十微秒范围内，也就是至少 20 微秒。第一次"
        "之后的一次启动：",
    },
    expected=20.0,
    measured=later,
    unit="us",
    rule="above",
    control=(
        {
            "en": "the first launch of the process, as in the tutorial",
            "zh": "进程里的第一次启动，教程里就是如此",
        },
        first,
        ("TODO", "what it has to be"),
    ),
    depends={
        "en": "whether it is the first launch, which also brings the code to "
        "the GPU and may take far longer (the source's 50.3 us is a "
        "first launch, under nvprof)",
        "zh": "是不是第一次启动：第一次还要把代码送到 GPU，可能长得多（原文"
        "的 50.3 us 是第一次启动，且在 nvprof 下测得）",
    }
    if later < 20 <= first
    else None,
)
