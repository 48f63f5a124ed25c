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


def share(us, call):
    """Share of a call in the time of all calls, per cent."""
    return 100 * us[call] / sum(us[one] for one in CALLS)


as_there, apart = runs["as in the tutorial"], runs[APART]

# %% claim-share
ct.claim(
    id="allocating-is-heavy",
    source="CUDATutorial 03",
    place={
        "en": "the output of nvprof and the paragraph below it",
        "zh": "nvprof 的输出及其后的一段",
    },
    form="said",
    statement={
        "en": "43.58 % of the time of the API calls goes into three cudaMalloc, "
        "from which it concludes that allocation is heavy. Only the share is "
        "tested (at least half of it), not the advice to allocate rarely: beside "
        "a launch, one cudaMalloc takes long, too.",
        "zh": "API 调用的时间有 43.58 % 花在三次 cudaMalloc 上，由此得出显存分配是比较"
        "“重”的操作。这里只检验这个占比（至少一半），不检验“尽量少分配”的建议：与一次"
        "启动相比，一次 cudaMalloc 确实也久。",
    },
    expected=43.58 / 2,
    depends={
        "en": "whether cudaMalloc is the first call of the process, which makes "
        "the context",
        "zh": "cudaMalloc 是不是进程里的第一个调用：第一个调用要创建上下文",
    },
    sides=(
        (
            {
                "en": "the first call, as in the tutorial",
                "zh": "第一个调用，与教程相同",
            },
            share(as_there, "cudaMalloc"),
        ),
        (
            {"en": "another call before it", "zh": "在它之前另有一个调用"},
            share(apart, "cudaMalloc"),
        ),
    ),
    unit="%",
    rule="above",
    control=(
        {
            "en": "cudaFree, which makes no context in either run",
            "zh": "cudaFree，两次运行中都不创建上下文",
        },
        share(as_there, "cudaFree"),
        (0.0, 20.0),
    ),
)


# %% claim-launch
def digits(us):
    """How many digits a time has, in words."""
    return "ones" if us < 10 else "tens" if us < 100 else "hundreds or more"


ct.claim(
    id="launch-tens-of-microseconds",
    source="CUDATutorial 03",
    place={
        "en": "list of calls, cudaLaunchKernel",
        "zh": "API 列表，cudaLaunchKernel",
    },
    form="said",
    statement={
        "en": "cudaLaunchKernel takes some tens of microseconds. (Its program "
        "launches once: 50.3 µs, under nvprof, on a V100.) Here without a "
        "profiler:",
        "zh": "cudaLaunchKernel 的耗时在几十微秒范围内。（它的程序只启动一次：50.3 µs，在 "
        "V100 上，用 nvprof 测得。）这里不用性能分析器：",
    },
    expected="tens",
    depends={
        "en": "whether it is the first launch of the process, which also brings "
        "the code to the GPU",
        "zh": "是不是进程里的第一次启动：第一次还要把代码送到 GPU",
    },
    sides=(
        (
            {
                "en": "the first launch, microseconds",
                "zh": "第一次启动，微秒数",
            },
            digits(as_there["launch"]),
        ),
        (
            {"en": "a later one, microseconds", "zh": "之后的一次，微秒数"},
            digits(as_there["later launch"]),
        ),
    ),
    rule="equal",
    found="measured",
    elsewhere=True,
    control=(
        {
            "en": "cudaMemcpy of 40 MB: hundreds and more at the rate of any bus; "
            "were the clock's unit another, it would show",
            "zh": "复制 40 MB 的 cudaMemcpy：按任何总线的速率都是几百以上；若是时钟的"
            "单位不对，这里看得出来",
        },
        digits(as_there["cudaMemcpy"]),
        "hundreds or more" if n > 1e6 else digits(as_there["cudaMemcpy"]),
    ),
)
