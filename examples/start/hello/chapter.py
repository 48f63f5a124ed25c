# ---
# jupyter:
#   cudatut:
#     title: {en: "Hello from the GPU", zh: "来自 GPU 的问候"}
#     requires: sm_75
#     alone: false
#     timeout_s: 120
# ---
# %% [markdown]
# The smallest CUDA program. The CPU starts a function on the GPU, the function prints a line, and the CPU waits for it.

# %% program
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

module = SourceModule(r"""
#include <stdio.h>

__global__ void hello() {
  printf("Hello from the GPU\n");
}
""")
hello = module.get_function("hello")

hello(grid=(1, 1), block=(1, 1, 1))
cuda.Context.synchronize()

# %% [markdown]
# Three launches, and one wait for all of them.

# %% three-launches
for _ in range(3):
    hello(grid=(1, 1), block=(1, 1, 1))
cuda.Context.synchronize()

# %% [markdown]
# One launch with five threads. All five run the same code.

# %% five-threads
hello(grid=(1, 1), block=(5, 1, 1))
cuda.Context.synchronize()

# %% [markdown]
# The driver, the toolkit and PyCUDA each have a version. This program asks all three.

# %% program-2
import re
import subprocess

import pycuda.driver as cuda

cuda.init()
number = cuda.get_driver_version()  # 13020 means 13.2
print(f"driver, up to CUDA: {number // 1000}.{number % 1000 // 10}")

answer = subprocess.run(["nvcc", "--version"], capture_output=True, text=True)
print("toolkit with nvcc: ", re.search(r"release ([\d.]+)", answer.stdout)[1])

major, minor, _ = cuda.get_version()
print(f"PyCUDA built with:  {major}.{minor}")

# %% [markdown]
# Answers to 'Try it': a kernel that computes, and one with a mistake that the compiler finds.

# %% try-1
module = SourceModule(r"""
#include <stdio.h>

__global__ void compute() {
  printf("2 + 3 = %d\n", 2 + 3);
}
""")
module.get_function("compute")(grid=(1, 1), block=(1, 1, 1))
cuda.Context.synchronize()

# %% try-2
broken = """
__global__ void hello() {
  int five = 2 + 3  // expect: compile error, a semicolon is missing
}
"""
try:
    SourceModule(broken)
except cuda.CompileError as error:
    print(error.stderr)

# %% [markdown]
# The same program in CUDA C++, compiled by nvcc and run. It must print the line once.

# %% check-cpp
import tempfile

import numpy as np
import cudatut as ct

source = ct.paths.resolve_source("start/hello/hello.cu")
ct.paths.note_read(source)
with tempfile.TemporaryDirectory() as folder:
    subprocess.run(
        ["nvcc", "-arch=native", source, "-o", f"{folder}/hello"], check=True
    )
    printed = subprocess.run(
        [f"{folder}/hello"], capture_output=True, text=True, check=True
    )
print(printed.stdout)
ct.check(
    np.array([printed.stdout.count("Hello from the GPU\n")]),
    np.array([1]),
    name="lines",
)
