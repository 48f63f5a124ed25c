# ---
# jupyter:
#   cudatut:
#     title: {en: "Hello from the GPU", zh: "来自 GPU 的问候"}
#     requires: sm_75
#     timeout_s: 120
# ---
# %% [markdown]
# Eight GPU threads print one line each, the host waits for them, and every version involved is read out.

# %% setup
import json
import re
import shutil
import subprocess
import tempfile

import numpy as np
import pycuda.autoprimaryctx  # initializes CUDA and makes a context current
import pycuda.compiler
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

import cudatut as ct
from cudatut import paths

# %% kernel
module = SourceModule(r"""
#include <stdio.h>

__global__ void hello() {
  printf("hello from block %u, thread %u\n", blockIdx.x, threadIdx.x);
}
""")
hello = module.get_function("hello")

# %% launch
hello(block=(4, 1, 1), grid=(2, 1))  # returns at once
cuda.Context.synchronize()  # waits for the GPU; now its output is complete

# %% program
source = paths.resolve_source("start/hello.cu")
paths.note_read(source)
with tempfile.TemporaryDirectory() as folder:
    subprocess.run(["nvcc", "-arch=native", source, "-o", f"{folder}/hello"], check=True)
    lines = subprocess.run([f"{folder}/hello"], capture_output=True, text=True, check=True).stdout
print(lines)

# %% check
pairs = sorted(tuple(map(int, re.findall(r"\d+", line))) for line in lines.splitlines())
ct.check(np.array(pairs), np.array([(b, t) for b in range(2) for t in range(4)]), name="lines")

# %% late
LATE = r'''
import json
import os
import tempfile
import time
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

late = SourceModule("""
#include <stdio.h>
__global__ void late(long long cycles) {
  long long start = clock64();
  while (clock64() - start < cycles) {}
  printf("thread %u\\n", threadIdx.x);
}
""").get_function("late")


def launch(cycles=200_000_000):  # a tenth of a second or so
    late(np.int64(cycles), block=(4, 1, 1))
'''

watched = ct.isolated(
    LATE
    + r"""
terminal = os.dup(1)
printed = tempfile.TemporaryFile()
os.dup2(printed.fileno(), 1)  # what is printed now goes to a file


def lines():
    return os.pread(printed.fileno(), 1_000_000, 0).count(b"\n")


def milliseconds(call):
    start = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - start)


launch(0)  # the first launch also loads the kernel
cuda.Context.synchronize()
seen, before = {}, lines()
seen["launch"] = milliseconds(launch)
seen["lines_after_launch"] = lines() - before
seen["synchronize"] = milliseconds(cuda.Context.synchronize)
seen["lines_after_synchronize"] = lines() - before

before = lines()
launch()
time.sleep(1)  # longer than the kernel needs, and no call of CUDA meanwhile
seen["lines_after_pause"] = lines() - before

cuda.Context.synchronize()
os.dup2(terminal, 1)
print(json.dumps(seen))
"""
)
assert watched.returncode == 0, watched.stderr

ended = ct.isolated(LATE + "launch()\nos._exit(0)  # nobody has waited\n")
assert ended.returncode == 0, ended.stderr

seen = json.loads(watched.stdout)
seen["lines_after_exit"] = ended.stdout.count("thread")
units = {"launch": "ms", "synchronize": "ms"}
ct.facts("what had arrived", {name: (value, units.get(name)) for name, value in seen.items()})

# %% arrived
certain = ("lines_after_launch", "lines_after_synchronize", "lines_after_exit")
ct.check(np.array([seen[name] for name in certain]), np.array([0, 4, 0]), name="arrived")


# %% versions
def answer(command, pattern):
    """First group of `pattern` in what a program prints."""
    if shutil.which(command[0]) is None:
        return "not on PATH"
    match = re.search(pattern, subprocess.run(command, capture_output=True, text=True).stdout)
    return match[1] if match else "not found"


def dotted(number):
    return f"{number // 1000}.{number % 1000 // 10}"  # 13000 means 13.0


versions = {
    "nvidia_smi_driver": answer(["nvidia-smi"], r"(?:Driver|KMD) Version: *([\d.]+)"),
    "nvidia_smi_cuda": answer(["nvidia-smi"], r"CUDA (?:UMD )?Version: *([\d.]+)"),
    "cuDriverGetVersion": dotted(cuda.get_driver_version()),
    "nvcc": answer(["nvcc", "--version"], r"release ([\d.]+)"),
    "pycuda": ".".join(map(str, cuda.get_version())),
}
ct.facts("versions", versions)

# %% ptx
code = "__global__ void answer(int *out) { *out = 42; }"
ptx = pycuda.compiler.compile(code, target="ptx").decode()
print(ptx[ptx.index(".version") :])

# %% cubin
cubin = pycuda.compiler.compile(code, target="cubin")
ct.facts(
    "code",
    {
        "ptx_version": re.search(r"\.version (\S+)", ptx)[1],
        "ptx_target": re.search(r"\.target (\S+)", ptx)[1],
        "ptx": (len(ptx), "B"),
        "cubin": (len(cubin), "B"),
    },
)

# %% no-toolkit
child = ct.isolated(
    f"ptx = {ptx!r}"
    + r"""
import json, os, re, shutil

folders = os.environ["PATH"].split(os.pathsep)
os.environ["PATH"] = os.pathsep.join(f for f in folders if not shutil.which("nvcc", path=f))

import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda

def run(text):
    function = cuda.module_from_buffer(text.encode()).get_function("answer")  # the driver compiles
    out = np.zeros(1, np.int32)
    function(cuda.Out(out), block=(1, 1, 1))
    return str(out[0])

try:
    newer = f"answer {run(re.sub(r'[.]version [0-9.]+', '.version 99.0', ptx))}"
except cuda.Error as error:
    newer = re.sub(" - |; ", "\n", str(error).splitlines()[0])

version = cuda.get_driver_version()
print(json.dumps({
    "nvcc": str(shutil.which("nvcc")),
    "cuDriverGetVersion": f"{version // 1000}.{version % 1000 // 10}",
    "answer": run(ptx),
    "version_99": newer,
}))
"""
)
assert child.returncode == 0, child.stderr
seen = json.loads(child.stdout)
print(seen.pop("version_99"))
ct.facts("no toolkit", seen)
