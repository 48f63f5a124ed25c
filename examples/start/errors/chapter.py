# ---
# jupyter:
#   cudatut:
#     title: {en: "Errors: at the call, later, or never", zh: "错误：当场、稍后，或永远不报"}
#     requires: sm_75
#     alone: false
#     timeout_s: 180
# ---
# %% [markdown]
# Three requests that the driver refuses, and one that it accepts. Each refusal comes at the call itself, and the
# program goes on.

# %% program
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

twice = SourceModule("""
__global__ void twice(int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * i;
}
""").get_function("twice")
n = 50_000
out = np.zeros(n, np.int32)

for blocks, threads in [(10, 5000), (0, 256), (196, 256)]:
    shape = {"grid": (blocks, 1), "block": (threads, 1, 1)}
    try:
        twice(cuda.Out(out), np.int32(n), **shape)
        print(blocks, "x", threads, "-> no error")
    except cuda.Error as error:
        print(blocks, "x", threads, "->", error)
try:
    cuda.mem_alloc(2 * cuda.mem_get_info()[1])  # twice the memory
except cuda.Error as error:
    print("twice the memory ->", error)
print("correct:", np.array_equal(out, 2 * np.arange(n)))

# %% [markdown]
# The next program makes an error that cannot be undone: from then on its process cannot use the GPU. So it does not
# run in this notebook's process. Its text stands in a string, and a new process runs it.

# %% program-2
late = '''
import time
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

module = SourceModule("""
__global__ void stray(float *out, long long far) {
  float sum = 0.0f;
  for (int k = 0; k < 20000000; ++k) sum += 1.0f;  // takes a while
  out[far] = sum;
}
__global__ void innocent(float *out) { out[0] = 1.0f; }
""")
stray = module.get_function("stray")
innocent = module.get_function("innocent")
out, host = cuda.mem_alloc(4), np.empty(1, np.float32)
one = {"grid": (1, 1), "block": (1, 1, 1)}  # one thread

steps = [
    ("stray", lambda: stray(out, np.int64(2**40), **one)),
    ("innocent", lambda: innocent(out, **one)),
    ("copy", lambda: cuda.memcpy_dtoh(host, out)),
    ("mem_alloc", lambda: cuda.mem_alloc(4)),
]
for name, call in steps:
    start = time.perf_counter()
    try:
        call()
        outcome = "ok"
    except cuda.Error as error:
        outcome = error
    ms = 1e3 * (time.perf_counter() - start)
    print(f"{name:10} {ms:7.2f} ms  {outcome}", flush=True)
'''

# %% late
import cudatut as ct

child = ct.isolated(late)
print(child.stdout or child.stderr, end="")


# %% [markdown]
# What the text of the chapter says about this output must hold: the copy is the first call that fails, and all calls
# after it fail too.


# %% check-late
def failed(printed):
    """Names of the steps that did not end with ok."""
    return [
        line[:10].strip()
        for line in printed.splitlines()
        if not line.endswith("ok")
    ]


assert failed(child.stdout) == ["copy", "mem_alloc"], (
    child.stdout + child.stderr
)
ct.facts(
    "late.py",
    {"first step that fails": 3, "steps that fail": len(failed(child.stdout))},
)

# %% [markdown]
# One thread too many. The array has four more elements behind it, so the stray write stays inside memory of our own,
# and we can see it.

# %% program-3
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

source = """
__global__ void twice(int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) out[i] = 2 * i;  // one thread too many
}
"""
module = SourceModule(source, options=["-lineinfo"])
twice = module.get_function("twice")
n, guard = 1000, 4
out = np.full(n + guard, -1, np.int32)  # the kernel writes no -1
twice(cuda.InOut(out), np.int32(n), grid=(4, 1), block=(256, 1, 1))

print("values correct:", np.array_equal(out[:n], 2 * np.arange(n)))
print("behind the array:", out[n:])

# %% [markdown]
# Answers to 'Try it'. First `late.py` with a synchronization behind the first launch, then as it is with
# `CUDA_LAUNCH_BLOCKING=1`.

# %% try-1
line = '    ("innocent", '
child = ct.isolated(
    late.replace(line, f'    ("wait", cuda.Context.synchronize),\n{line}')
)
print(child.stdout or child.stderr, end="")
assert failed(child.stdout)[0] == "wait"

# %% try-2
child = ct.isolated(late, env={"CUDA_LAUNCH_BLOCKING": "1"})
print(child.stdout or child.stderr, end="")
assert failed(child.stdout)[0] == "stray"

# %% [markdown]
# A kernel that forgets the last element: the -1 that stood there before is still there.

# %% try-3
short = SourceModule("""
__global__ void twice(int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n - 1) out[i] = 2 * i;  // one thread too few
}
""").get_function("twice")
out = np.full(n + guard, -1, np.int32)
short(cuda.InOut(out), np.int32(n), grid=(4, 1), block=(256, 1, 1))

print("values correct:", np.array_equal(out[:n], 2 * np.arange(n)))
print("never written:", np.flatnonzero(out[:n] == -1))

# %% [markdown]
# Checks of this page. The faults happened in other processes, so this one still works; and the correct kernel is
# correct at other lengths too.

# %% check-alive
twice = SourceModule("""
__global__ void twice(int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * i;
}
""").get_function("twice")
for length in ct.RAGGED:
    result = ct.empty(length, "int32")
    grid = (ct.cdiv(length, 256), 1)
    twice(result, np.int32(length), grid=grid, block=(256, 1, 1))
    ct.check(result, 2 * np.arange(length, dtype="int32"), name=f"n = {length}")
