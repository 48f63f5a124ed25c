# ---
# jupyter:
#   cudatut:
#     title: {en: "Errors: tools that find what nobody reports", zh: "错误：找出没人报告的错误"}
#     requires: sm_75
#     timeout_s: 180
#     alone: false
# ---
# %% [markdown]
# An overrun by one element and an element that was never written raise nothing. Here are the tools that see them:
# compute-sanitizer, the red zones and poison of this book's helper package, and the macros of CUDA C++.

# %% setup
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pycuda.driver as cuda

import cudatut as ct

# %% [markdown]
# The program with one thread too many, without the elements behind the array. compute-sanitizer watches it.

# %% memcheck
overrun = '''
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

twice = SourceModule("""
__global__ void twice(int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) out[i] = 2 * i;  // one thread too many
}
""", options=["-lineinfo"]).get_function("twice")
n = 1000
out = np.full(n, -1, np.int32)
twice(cuda.InOut(out), np.int32(n), grid=(4, 1), block=(256, 1, 1))
'''
report = ct.sanitize(overrun, tool="memcheck")
log = [
    line.removeprefix("=========").rstrip() for line in report.log.splitlines()
]
for number, line in enumerate(log):
    if "Invalid __global__" in line:
        print("\n".join(log[number : number + 5]))

# %% [markdown]
# The driver says that an argument is invalid, but not which. Here it is the memory that the threads of a block share:
# the launch asks for twice as much as a block may have. `ct.Kernel` compares a launch with the limits of this GPU and
# names the one that was exceeded.

# %% limits
fill = ct.Kernel(
    "__global__ void fill(int *out) { out[threadIdx.x] = 1; }", "fill"
)
out = ct.empty(1024, "int32")


def attempt(call):
    try:
        call()
        print("no error")
    except (cuda.Error, ct.CudatutError) as error:
        print(f"{type(error).__name__}: {error}")


attempt(lambda: fill(out, grid=10, block=5000))
attempt(lambda: fill(out, grid=0, block=256))
attempt(
    lambda: fill(
        out, grid=1, block=32, shared=2 * ct.device().shared_per_block_optin
    )
)
attempt(lambda: ct.empty(2 * ct.device().memory_bytes, "uint8"))

# %% [markdown]
# `ct.empty` puts a red zone on both sides of every array, and `ct.check` looks at them. The program runs in a process
# of its own, because the sanitizers of this book would rightly object to it.

# %% red-zone
program = '''
import numpy as np
import cudatut as ct

kernel = ct.Kernel("""
__global__ void square(const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) out[i] = x[i] * x[i];  // one thread too many
}
""", "square")
n = 1000
x = ct.rng().standard_normal(n, dtype="float32")
out = ct.empty(n, "float32")
kernel(ct.to_device(x), out, n, grid=4, block=256)
print("values correct:", np.array_equal(out.get(), x * x))
try:
    ct.check(out, x * x)
except ct.CheckError as error:
    print("CheckError:", error)
'''
child = ct.isolated(program)
print(child.stdout or child.stderr, end="")

# %% [markdown]
# Two kernels, the second of which forgets the last element. It gets the memory that the first one gave back, and that
# memory still holds the right answer. `ct.empty` overwrites old contents with poison.

# %% stale
program = '''
import numpy as np
import pycuda.driver as cuda
import cudatut as ct

right, short = (ct.Kernel("""
__global__ void twice(const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n - SKIP) out[i] = 2.0f * x[i];
}
""", "twice", defines={"SKIP": skip}) for skip in (0, 1))
n = 1000
x = ct.rng().standard_normal(n, dtype="float32")
d_x, host = ct.to_device(x), np.empty_like(x)

for name, kernel in {"right": right, "short": short}.items():
    out = cuda.mem_alloc(x.nbytes)  # the second gets the memory of the first
    kernel(d_x, out, n, grid=4, block=256)
    cuda.memcpy_dtoh(host, out)
    print(name, "values correct:", np.array_equal(host, 2 * x))
    out.free()

poisoned = ct.empty(n, "float32")
short(d_x, poisoned, n, grid=4, block=256)
try:
    ct.check(poisoned, 2 * x)
except ct.CheckError as error:
    print("CheckError:", error)
'''
child = ct.isolated(program)
print(child.stdout or child.stderr, end="")

# %% [markdown]
# The macros of CUDA C++ need a C++ program: nvcc compiles one, and a process of its own runs it.

# %% macro
source = ct.paths.resolve_source("start/errors/errors_tools.cu")
ct.paths.note_read(source)
compiler = ct.find_nvcc()
binary = Path(tempfile.mkdtemp()) / "errors_tools"
command = [
    compiler,
    f"-arch={ct.device().arch}",
    *ct.nvcc_flags(compiler),
    "-o",
    binary,
]
subprocess.run([*command, source.name], cwd=source.parent, check=True)
child = ct.isolated(
    f"import subprocess; print(subprocess.getoutput({str(binary)!r}))"
)
print(child.stdout or child.stderr, end="")
