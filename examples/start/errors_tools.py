# ---
# jupyter:
#   cudatut:
#     title: {en: "Errors that raise nothing", zh: "不报错的错误"}
#     requires: sm_75
#     timeout_s: 120
#     alone: false
# ---
# %% [markdown]
# "No error" is not "right": an overrun by one element and an element never written raise nothing.
# Red zones, poison and compute-sanitizer see them.

# %% setup
import subprocess
import tempfile
from pathlib import Path

import cudatut as ct
from cudatut import nvcc, paths

folder = Path(tempfile.mkdtemp())

# %% overrun-program
overrun = '''
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
kernel(ct.to_device(x), out, n, grid=ct.cdiv(n + 1, 256), block=256)
ct.synchronize()
print("CUDA error:     none")
print("values correct:", np.array_equal(out.get(), x * x))
'''
overrun_child = ct.isolated(overrun)
print(overrun_child.stdout or overrun_child.stderr, end="")

# %% red-zone
verdict = """
try:
    ct.check(out, x * x)
except ct.CheckError as error:
    print("CheckError:", error)
"""
red_zone_child = ct.isolated(overrun + verdict)
print(red_zone_child.stdout or red_zone_child.stderr, end="")

# %% stale
stale = '''
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

for kernel in (right, short):       # the second forgets the last element
    out = cuda.mem_alloc(x.nbytes)  # and gets the memory that the first gave back
    kernel(d_x, out, n, grid=4, block=256)
    cuda.memcpy_dtoh(host, out)
    print("plain memory, values correct:", np.array_equal(host, 2 * x))
    out.free()

poisoned = ct.empty(n, "float32")
short(d_x, poisoned, n, grid=4, block=256)
try:
    ct.check(poisoned, 2 * x)
except ct.CheckError as error:
    print("CheckError:", error)
'''
stale_child = ct.isolated(stale)
print(stale_child.stdout or stale_child.stderr, end="")

# %% build
# The macros of CUDA C++ need a C++ program: nvcc compiles one, and a process of its own runs it.
source = paths.resolve_source("start/errors_tools.cu")
paths.note_read(source)
program, compiler = folder / "errors_tools", nvcc.find_nvcc()
command = [compiler, f"-arch={ct.device().arch}", *nvcc.nvcc_flags(compiler), "-o", program]
built = subprocess.run([*command, source.name], cwd=source.parent, check=True)

# %% macro
macro = ct.isolated(f"import subprocess; print(subprocess.getoutput({str(program)!r}))")
print(macro.stdout or macro.stderr, end="")

# %% memcheck
# The first program, watched by compute-sanitizer. cudatut then leaves the red zones away, so that
# the tool sees arrays of exactly n elements.
report = ct.sanitize(overrun, tool="memcheck")
log = [line.removeprefix("=========").rstrip() for line in report.log.splitlines()]
for number, line in enumerate(log):
    if "Invalid __global__" in line:
        print("\n".join(log[number : number + 5]))
