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
        "en": "99 % of the time of the API calls goes into three cudaMemcpy "
        "and three cudaMalloc (43.58 % into these), so allocation is a heavy "
        "operation. Share of the three cudaMalloc, at least 5 % (our limit) "
        "if it is heavy:",
        "zh": "API 调用的时间有 99 % 花在三次 cudaMemcpy 和三次 cudaMalloc 上"
        "（后者占 43.58 %），可见显存分配是一个比较“重”的操作。三次 cudaMalloc "
        "的占比，若是“重”，至少 5 %（我们定的界限）：",
    },
    expected=5.0,
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
        (0.0, 4.9),
    ),
)

# %% claim-launch
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
        "(Its program launches once: 50.3 µs, under nvprof.)",
        "zh": "cudaLaunchKernel 的耗时在几十微秒范围内，也就是至少 20 微秒。（它的"
        "程序只启动一次：50.3 µs，在 nvprof 下测得。）",
    },
    expected=20.0,
    depends={
        "en": "whether it is the first launch of the process, which also brings "
        "the code to the GPU",
        "zh": "是不是进程里的第一次启动：第一次还要把代码送到 GPU",
    },
    sides=(
        ({"en": "the first launch", "zh": "第一次启动"}, as_there["launch"]),
        ({"en": "a later one", "zh": "之后的一次"}, as_there["later launch"]),
    ),
    unit="us",
    rule="above",
    control=(
        {
            "en": "cudaMemcpy of 40 MB, which takes a thousand and more at the "
            "rate of any bus: were the clock's unit another, it would show",
            "zh": "复制 40 MB 的 cudaMemcpy：按任何总线的速率都要上千；若是时钟的"
            "单位不对，这里看得出来",
        },
        as_there["cudaMemcpy"],
        (1e3, 1e7) if n > 1e6 else (0, 1e7),
    ),
)
