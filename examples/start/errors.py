# ---
# jupyter:
#   cudatut:
#     title: {en: "Errors: at the call, later, or for good", zh: "错误：当场、稍后，或无法恢复"}
#     requires: sm_75
#     timeout_s: 120
# ---
# %% [markdown]
# A rejected call raises at once and does no harm; a fault inside a kernel is reported later, by
# whichever call comes next to hear of it, and ends the process's use of the GPU.

# %% setup
import numpy as np
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

import cudatut as ct

ct.activate()
n = 50_000
x, y = (ct.rng(seed).standard_normal(n, dtype="float32") for seed in (1, 2))
d_x, d_y, out = ct.to_device(x), ct.to_device(y), ct.empty(n, "float32")

# %% kernel
source = """
__global__ void add(const float *x, const float *y, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
"""
add = SourceModule(source).get_function("add")


# %% over-limit
def attempt(call):
    try:
        call()
        print("no error")
    except (cuda.Error, ct.CudatutError) as error:
        print(f"{type(error).__name__}: {error}")


# The launch of the notes, <<<10, 5000>>>: 10 blocks of 5000 threads for 50,000 elements.
attempt(lambda: add(d_x, d_y, out, np.int32(n), grid=(10, 1), block=(5000, 1, 1)))

# %% shared-limit
# The same mistake with another resource: twice the shared memory that a block may have.
too_much = 2 * ct.device().shared_per_block_optin
attempt(lambda: add(d_x, d_y, out, np.int32(n), grid=(196, 1), block=(256, 1, 1), shared=too_much))

# %% named-limit
# ct.Kernel compares the launch with this GPU's limits first, so it can name the limit.
guarded = ct.Kernel(source, "add")
attempt(lambda: guarded(d_x, d_y, out, n, grid=10, block=5000))
attempt(lambda: guarded(d_x, d_y, out, n, grid=0, block=256))

# %% out-of-memory
attempt(lambda: cuda.mem_alloc(2 * ct.device().memory_bytes))
attempt(lambda: ct.empty(2 * ct.device().memory_bytes, "uint8"))

# %% compile-error
misspelt = """
__global__ void add(const float *x, const float *y, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[j] + y[i];  // expect: compile error
}
"""
attempt(lambda: ct.Kernel(misspelt, "add"))

# %% recovered
# None of these calls reached a kernel. The context is unharmed: a legal launch works.
add(d_x, d_y, out, np.int32(n), grid=(ct.cdiv(n, 256), 1), block=(256, 1, 1))
ct.check(out, x + y, name="add")

# %% ragged
for length in ct.RAGGED:
    a, b = (ct.rng(seed).standard_normal(length, dtype="float32") for seed in (3, 4))
    d_a, d_b, result = ct.to_device(a), ct.to_device(b), ct.empty(length, "float32")
    add(d_a, d_b, result, np.int32(length), grid=(ct.cdiv(length, 256), 1), block=(256, 1, 1))
    ct.check(result, a + b, name=f"n = {length}")

# %% faulty-program
# A process of its own, because what follows cannot be undone. `order` names the calls to make.
program = '''
import time
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

module = SourceModule("""
__global__ void stray(float *out, long long i) {
  long long start = clock64();
  while (clock64() - start < 100000000) {}  // the host is far ahead when this ends
  out[i] = 1.0f;
}
__global__ void innocent(float *out) { out[threadIdx.x] = 2.0f; }
""")
stray, innocent = map(module.get_function, ("stray", "innocent"))
out, host = cuda.mem_alloc(4 * 32), np.empty(32, "float32")
calls = {
    "stray": lambda: stray(out, np.int64(2**40), block=(1, 1, 1)),  # 4 TiB past the array
    "innocent": lambda: innocent(out, block=(32, 1, 1)),
    "synchronize": cuda.Context.synchronize,
    "memcpy_dtoh": lambda: cuda.memcpy_dtoh(host, out),
    "mem_alloc": lambda: cuda.mem_alloc(4),
}
for name in order:
    start = time.perf_counter()
    try:
        calls[name]()
        outcome = "ok"
    except cuda.Error as error:
        outcome = f"{type(error).__name__}: {error}"
    print(f"{name:<12}{1e3 * (time.perf_counter() - start):8.2f} ms  {outcome}", flush=True)
'''


def run(order, blocking=0):
    child = ct.isolated(
        f"order = {order.split()}" + program, env={"CUDA_LAUNCH_BLOCKING": str(blocking)}
    )
    print(child.stdout or child.stderr, end="")
    return child


# %% asynchronous
later = run("stray innocent memcpy_dtoh memcpy_dtoh mem_alloc innocent synchronize")

# %% synchronize
synced = run("stray synchronize innocent memcpy_dtoh")

# %% launch-blocking
blocked = run("stray innocent memcpy_dtoh", blocking=1)


# %% where
def first_error(child):
    failed = [line.split()[0] for line in child.stdout.splitlines() if not line.endswith("ok")]
    return failed[0] if failed else "none"


def failures(child):
    return sum(not line.endswith("ok") for line in child.stdout.splitlines())


ct.facts(
    "first call to raise",
    {
        "launch, then copy": first_error(later),
        "launch, then synchronize": first_error(synced),
        "CUDA_LAUNCH_BLOCKING=1": first_error(blocked),
        "calls that failed": failures(later),
    },
)

# %% parent
# Another process's fault is not ours: this one's context still works.
ct.poison(out)
add(d_x, d_y, out, np.int32(n), grid=(ct.cdiv(n, 256), 1), block=(256, 1, 1))
ct.check(out, x + y, name="add, after the child's fault")
