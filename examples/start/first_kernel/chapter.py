# ---
# jupyter:
#   cudatut:
#     title: {en: "Vector add, one thread", zh: "向量加法：一个线程"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {n: [1111111, 1000]}
# ---
# %% [markdown]
# Two vectors are added, first by a loop on the CPU, then by the same loop on the GPU. This is the CPU program.

# %% program
import numpy as np

n = 1_111_111
rng = np.random.default_rng(0)
x = rng.random(n, dtype=np.float32)
y = rng.random(n, dtype=np.float32)
out = np.zeros_like(x)

for i in range(n):
    out[i] = x[i] + y[i]

print(np.array_equal(out, x + y))

# %% [markdown]
# The GPU program: the loop is now a kernel. Around it, the arrays are copied to the GPU and back.

# %% program-2
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

module = SourceModule("""
__global__ void add(const float *x, const float *y, float *out, int n) {
  for (int i = 0; i < n; ++i) {
    out[i] = x[i] + y[i];
  }
}
""")
add = module.get_function("add")

n = 1_111_111
rng = np.random.default_rng(0)
x = rng.random(n, dtype=np.float32)
y = rng.random(n, dtype=np.float32)
out = np.zeros_like(x)

d_x = cuda.mem_alloc(x.nbytes)
d_y = cuda.mem_alloc(y.nbytes)
d_out = cuda.mem_alloc(out.nbytes)

cuda.memcpy_htod(d_x, x)
cuda.memcpy_htod(d_y, y)
add(d_x, d_y, d_out, np.int32(n), grid=(1, 1), block=(1, 1, 1))
cuda.memcpy_dtoh(out, d_out)

print(np.array_equal(out, x + y))

# %% [markdown]
# How long do NumPy and the one GPU thread need? NumPy adds a few times before the clock is read, because its first
# additions are slower. The clock is read after the GPU has finished.

# %% look
from time import perf_counter

for _ in range(5):
    x + y  # not timed: the first few are slower

t0 = perf_counter()
x + y
t1 = perf_counter()
add(d_x, d_y, d_out, np.int32(n), grid=(1, 1), block=(1, 1, 1))
cuda.Context.synchronize()
t2 = perf_counter()

print(f"NumPy on the CPU  {1e3 * (t1 - t0):8.3f} ms")
print(f"one GPU thread    {1e3 * (t2 - t1):8.3f} ms")

# %% [markdown]
# PyCUDA can also make the copies: In copies before the launch, Out after it, InOut does both.

# %% short
out[:] = 0
arguments = cuda.In(x), cuda.In(y), cuda.Out(out), np.int32(n)
add(*arguments, grid=(1, 1), block=(1, 1, 1))
print(np.array_equal(out, x + y))

# %% [markdown]
# An argument of the wrong type. A Python int is refused. A float64 for a float is not, and a wrong number arrives.

# %% python-int
try:
    add(d_x, d_y, d_out, n, grid=(1, 1), block=(1, 1, 1))
except TypeError as error:
    print("TypeError:", error)

# %% wrong-type
module = SourceModule("""
__global__ void put(float a, float *out) {
  *out = a;
}
""")
put = module.get_function("put")

for a in (np.float32(0.5), np.float64(0.5)):
    arrived = np.zeros(1, np.float32)
    put(a, cuda.Out(arrived), grid=(1, 1), block=(1, 1, 1))
    print(a.dtype, "0.5 arrives as", arrived[0])

# %% [markdown]
# Answers to 'Try it': the result stays on the GPU, and two threads that do the same.

# %% try-1
out = np.zeros_like(x)
add(d_x, d_y, d_out, np.int32(n), grid=(1, 1), block=(1, 1, 1))
print(np.array_equal(out, x + y))

# %% try-2
add(d_x, d_y, d_out, np.int32(n), grid=(1, 1), block=(2, 1, 1))
cuda.memcpy_dtoh(out, d_out)
print(np.array_equal(out, x + y))

# %% [markdown]
# The book's own checks. First the kernel at four lengths, with all elements compared, then a kernel with a mistake
# that looking at a few elements does not find.

# %% check-lengths
import cudatut as ct

for length in ct.RAGGED:
    a, b = rng.random((2, length), dtype=np.float32)
    d_a, d_b = ct.to_device(a), ct.to_device(b)
    d_sum = ct.empty(length, "float32")
    add(d_a, d_b, d_sum, np.int32(length), grid=(1, 1), block=(1, 1, 1))
    ct.check(d_sum, a + b, name=f"n = {length}", rtol=0, atol=0)

# %% check-unwritten-tail
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
add(d_x, d_y, out, np.int32(1000), grid=(1, 1), block=(1, 1, 1))
print("first ten equal:", np.array_equal(out.get()[:10], (x + y)[:10]))
try:
    ct.check(out, x + y)
except ct.CheckError as error:
    print("CheckError:", error)
''')
print(child.stdout)

# %% [markdown]
# What each step costs: the median of several runs, each until the GPU has nothing left to do.

# %% check-costs
import statistics


def milliseconds(call, repeat=11):
    times = []
    for _ in range(repeat):
        cuda.Context.synchronize()
        start = perf_counter()
        call()
        cuda.Context.synchronize()
        times.append(1e3 * (perf_counter() - start))
    return statistics.median(times)


def inputs_to_device():
    cuda.memcpy_htod(d_x, x)
    cuda.memcpy_htod(d_y, y)


def run_kernel():
    add(d_x, d_y, d_out, np.int32(n), grid=(1, 1), block=(1, 1, 1))


result = np.empty_like(x)
times = {
    "NumPy": milliseconds(lambda: np.add(x, y, out=result)),
    "copies to the GPU": milliseconds(inputs_to_device),
    "kernel": milliseconds(run_kernel),
    "copy back": milliseconds(lambda: cuda.memcpy_dtoh(out, d_out)),
}
copies = times["copies to the GPU"] + times["copy back"]
ct.facts(
    "what each step costs",
    {name: (time, "ms") for name, time in times.items()}
    | {
        "all copies": (copies, "ms"),
        "kernel, per element": (1e6 * times["kernel"] / n, "ns"),
        "kernel / NumPy": times["kernel"] / times["NumPy"],
    },
)

# %% [markdown]
# What does the copy back wait for? The kernel is launched, the result is copied, and only then does the host
# synchronize.

# %% check-timeline
out.fill(np.nan)
cuda.Context.synchronize()
clock = [perf_counter()]
run_kernel()
clock.append(perf_counter())
cuda.memcpy_dtoh(out, d_out)
clock.append(perf_counter())
correct = np.array_equal(out, x + y)  # looked at before any synchronize
late = perf_counter()
cuda.Context.synchronize()
clock.append(clock[-1] + perf_counter() - late)

launch, copy, synchronize = 1e3 * np.diff(clock)
ct.facts(
    "how long each call takes",
    {
        "launch": (launch, "ms"),
        "memcpy_dtoh": (copy, "ms"),
        "synchronize": (synchronize, "ms"),
        "result correct before synchronize": correct,
    },
)
