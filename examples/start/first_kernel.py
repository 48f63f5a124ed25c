# ---
# jupyter:
#   cudatut:
#     title: {en: "Vector add, one thread", zh: "向量加法：一个线程"}
#     requires: sm_75
#     timeout_s: 120
# ---
# %% [markdown]
# One GPU thread adds two vectors; every byte is moved by hand, and every element is checked.

# %% setup
import statistics
import time

import numpy as np
import pycuda.autoprimaryctx  # noqa: F401  initializes CUDA and makes a context current
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

import cudatut as ct

# %% kernel
module = SourceModule("""
__global__ void add(const float *x, const float *y, float *out, int n) {
  for (int i = 0; i < n; ++i) {
    out[i] = x[i] + y[i];
  }
}
""")
add = module.get_function("add")

# %% host
n = ct.size(1_111_111, 1_000)
rng = ct.rng(0)
x = rng.standard_normal(n, dtype=np.float32)
y = rng.standard_normal(n, dtype=np.float32)
out = np.empty_like(x)

# %% device
d_x = cuda.mem_alloc(x.nbytes)  # bytes, not elements
d_y = cuda.mem_alloc(y.nbytes)
d_out = cuda.mem_alloc(out.nbytes)

cuda.memcpy_htod(d_x, x)  # host to device: as many bytes as the host array has
cuda.memcpy_htod(d_y, y)

# %% launch
add(d_x, d_y, d_out, np.int32(n), block=(1, 1, 1), grid=(1, 1))

# %% back
cuda.memcpy_dtoh(out, d_out)
ct.check(out, x + y, name="vector add", rtol=0, atol=0)

# %% python-int
try:
    add(d_x, d_y, d_out, n, block=(1, 1, 1), grid=(1, 1))
except TypeError as error:
    print(error)

# %% wrong-type
put = SourceModule("__global__ void put(float a, float *out) { *out = a; }").get_function("put")
arrived = np.empty(1, np.float32)
received = {}
for a in (np.float32(0.5), np.float64(0.5)):
    put(a, cuda.Out(arrived), block=(1, 1, 1))  # Out: allocate, and copy back afterwards
    received[str(a.dtype)] = arrived[0]
ct.facts("what arrives of 0.5", received)

# %% ragged
for length in ct.RAGGED:
    length = ct.size(length, min(length, 1_000))
    a = rng.standard_normal(length, dtype=np.float32)
    b = rng.standard_normal(length, dtype=np.float32)
    d_a, d_b = ct.to_device(a), ct.to_device(b)
    d_sum = ct.empty(length, "float32")
    add(d_a, d_b, d_sum, np.int32(length), block=(1, 1, 1), grid=(1, 1))
    ct.check(d_sum, a + b, name=f"n = {length}", rtol=0, atol=0)

# %% unwritten-tail
child = ct.isolated('''
import numpy as np
import pycuda.autoprimaryctx
from pycuda.compiler import SourceModule
import cudatut as ct

add = SourceModule("""
__global__ void add(const float *x, const float *y, float *out, int n) {
  for (int i = 0; i < n - 1; ++i) {  // one too few
    out[i] = x[i] + y[i];
  }
}
""").get_function("add")

x, y = ct.rng(0).standard_normal((2, 1000), dtype=np.float32)
d_x, d_y = ct.to_device(x), ct.to_device(y)
out = ct.empty(1000, "float32")
add(d_x, d_y, out, np.int32(1000), block=(1, 1, 1))
print("out[:10] equal:", np.array_equal(out.get()[:10], (x + y)[:10]))
try:
    ct.check(out, x + y)
except ct.CheckError as error:
    print("CheckError:", error)
''')
print(child.stdout)


# %% costs
def milliseconds(call, repeat=11):
    """Median time on the host's clock until the GPU has nothing left to do."""
    times = []
    for _ in range(ct.size(repeat, 1)):
        cuda.Context.synchronize()
        start = time.perf_counter()
        call()
        cuda.Context.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def inputs_to_device():
    cuda.memcpy_htod(d_x, x)
    cuda.memcpy_htod(d_y, y)


def run_kernel():
    add(d_x, d_y, d_out, np.int32(n), block=(1, 1, 1), grid=(1, 1))


def result_to_host():
    cuda.memcpy_dtoh(out, d_out)


result = np.empty_like(x)
ct.facts(
    "costs",
    {
        "numpy": (milliseconds(lambda: np.add(x, y, out=result)), "ms"),
        "htod_x_y": (milliseconds(inputs_to_device), "ms"),
        "kernel": (milliseconds(run_kernel), "ms"),
        "dtoh_out": (milliseconds(result_to_host), "ms"),
    },
)

# %% timeline
out.fill(np.nan)
cuda.Context.synchronize()
clock = [time.perf_counter()]
run_kernel()
clock.append(time.perf_counter())
cuda.memcpy_dtoh(out, d_out)
clock.append(time.perf_counter())
correct = np.array_equal(out, x + y)  # looked at before any synchronize
late = time.perf_counter()
cuda.Context.synchronize()
clock.append(clock[-1] + time.perf_counter() - late)

launch, copy, synchronize = 1e3 * np.diff(clock)
ct.facts(
    "timeline",
    {
        "launch": (launch, "ms"),
        "memcpy_dtoh": (copy, "ms"),
        "synchronize": (synchronize, "ms"),
        "correct_before_synchronize": correct,
    },
)
