# ---
# jupyter:
#   cudatut:
#     title: {en: "A program of .cu and .cpp", zh: "由 .cu 与 .cpp 组成的程序"}
#     requires: sm_75
#     timeout_s: 240
#     alone: false
# ---

# %% [markdown]
# The files of mixed/ in an empty folder, built by `make program`, and run with
# three threads on the host.

# %% program-of-both
import re
import subprocess

import cudatut as ct
from cudatut.book.memory.bindings.building import (
    build,
    cuda_include,
    here,
    own_arch,
    unwatched,
)


def run(program):
    """What a program printed. Its driver keeps nothing of what it compiles."""
    own = {"OMP_NUM_THREADS": "3", "CUDA_CACHE_DISABLE": "1"}
    return subprocess.run(
        [program],
        env=unwatched() | own,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout.strip()


said = run(build("program"))
print(said.splitlines()[0])
found = re.match(r"right: (\d+) of (\d+), by (\d+) threads", said)
right, elements, threads = map(int, found.groups())
assert right == elements and threads == 3

# %% [markdown]
# The same program for other GPUs. What -gencode names is what the file holds:
# machine code of one architecture (code=sm_75), or PTX (code=compute_75), which
# the driver compiles when the kernel is first called.

# %% gencode
own = own_arch()
kinds = {
    "sm_75": ["arch=compute_75,code=sm_75"],
    "compute_75": ["arch=compute_75,code=compute_75"],
    "own": [f"arch=compute_{own},code=sm_{own}"],
    "own and compute_75": [
        f"arch=compute_{own},code=sm_{own}",
        "arch=compute_75,code=compute_75",
    ],
}
if ct.tool.running():
    kinds = {"own": kinds["own"]}
rows = {}
for name, codes in kinds.items():
    flags = " ".join(f"-gencode {code}" for code in codes)
    program = build("program", here(name.replace(" ", "-")), GENCODE=flags)
    said = run(program)
    took = re.search(r"first call ([\d.]+) ms, second call ([\d.]+)", said)
    first, second = map(float, took.groups()) if took else (None, None)
    rows[name] = {
        "it says": "right" if took else said.splitlines()[0],
        "first call": first,
        "second call": second,
    }
ct.table(
    "a program for other GPUs",
    rows,
    corner="code for",
    units=dict.fromkeys(("first call", "second call"), "ms"),
)

# %% [markdown]
# Who reads <<<...>>>? The same few lines under two names, and the same launch
# without this syntax.

# %% triple
LAUNCH = """
#include <cuda_runtime.h>
extern "C" __global__ void nothing() {}
int main() { nothing<<<1, 1>>>(); return cudaDeviceSynchronize(); }
"""
BY_CALL = """
#include <cuda_runtime.h>
extern "C" void nothing();  // the kernel, as C++ sees it
int launch() {
  const void* function = reinterpret_cast<const void*>(nothing);
  return cudaLaunchKernel(function, dim3(1), dim3(1), nullptr, 0, nullptr);
}
"""


def accepted(compiler, name, source, *flags):
    """Whether it makes an object file of this source under this name."""
    folder = here("triple")
    (folder / name).write_text(source)
    command = [compiler, *flags, "-c", name, "-o", "out.o"]
    done = subprocess.run(
        command, cwd=folder, env=unwatched(), capture_output=True, timeout=60
    )
    return done.returncode == 0


nvcc = ct.find_nvcc()
include = cuda_include()
tried = {
    "<<<...>>> in main.cu": {
        "nvcc": accepted(nvcc, "main.cu", LAUNCH),
        "g++": accepted("g++", "main.cu", LAUNCH, "-x", "c++", include),
    },
    "<<<...>>> in main.cpp": {
        "nvcc": accepted(nvcc, "main.cpp", LAUNCH),
        "g++": accepted("g++", "main.cpp", LAUNCH, include),
    },
    "cudaLaunchKernel in main.cpp": {
        "nvcc": accepted(nvcc, "main.cpp", BY_CALL),
        "g++": accepted("g++", "main.cpp", BY_CALL, include),
    },
}
ct.table("who compiles it", tried, corner="the file")
