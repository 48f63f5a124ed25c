# ---
# jupyter:
#   cudatut:
#     title: {en: "Two elements per thread: solutions", zh: "每个线程两个元素：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     sizes: {n: [33554432, 16384]}
# ---

# %% [markdown]
# More elements per thread, and a tree for any number of threads.

# %% given-1
import numpy as np
import cudatut as ct

# %% solution-1
several = ct.Kernel(
    """
__global__ void several(const int* in, int* out, int n) {
  __shared__ int sums[256];
  int t = threadIdx.x;
  long long i = (long long)blockIdx.x * (8 * 256) + t;
  int sum = 0;
#pragma unroll  // all loads may start before the first addition waits
  for (int k = 0; k < 8; ++k)
    if (i + k * 256 < n) sum += in[i + k * 256];
  sums[t] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
""",
    "several",
)

# %% check-1
import cudatut as ct

for n in ct.RAGGED:
    x = ct.rng(n).integers(-1000, 1001, n, dtype="int32")
    blocks = ct.cdiv(n, 8 * 256)
    out = ct.empty(blocks, "int32")
    several(ct.to_device(x), out, n, grid=blocks, block=256)
    sums = np.add.reduceat(x, np.arange(0, n, 8 * 256))
    ct.check(out, sums, name=f"n={n}")

# %% [markdown]
# Where does the gain end? The same kernel as a rung, and its first launch,
# which does nearly all of the work, with 1 to 16 elements per thread.

# %% bench-1
from dataclasses import replace

from cudatut.book.reduction.ladder.ladder import LADDER, Sum

n = 33_554_432
block = 256
FILE = "reduction/idle_threads/idle_threads_solutions.cu"
rung = replace(ct.read_rung(FILE), name="several")
problem = Sum(n, "int32")
launches = {}
for per_thread in (1, 2, 4, 8, 16):
    kernel = ct.Kernel(
        FILE,
        "reduce_several",
        defines={"BLOCK": block, "ELEMENT": "int", "PER_THREAD": per_thread},
    )
    grid = ct.cdiv(n, per_thread * block)
    partial = ct.empty(grid, "int32")

    def launch(kernel=kernel, partial=partial, grid=grid):
        kernel(problem.x, partial, n, grid=grid, block=block)

    launch()
    total = partial.get().sum(dtype="int64").astype("int32")
    ct.check(
        np.array([total]), problem.expected, name=f"{per_thread} per thread"
    )
    launches[f"{per_thread} per thread"] = launch
ct.bench(launches, bytes=problem.bytes, name="elements per thread", rounds=30)

# %% rung-1
for dtype in ("float32", "int32"):
    for m in (n, 0, *ct.RAGGED):
        Sum(m, dtype).check(rung)
LADDER.bench(
    ["sequential", "two_per_thread", rung],
    n=n,
    name=f"sum of {n} float32",
    rounds=30,
)

# %% given-2
import numpy as np
import cudatut as ct

# %% solution-2
any_block = ct.Kernel(
    """
__global__ void any_block(const int* in, int* out, int n) {
  extern __shared__ int sums[];
  int t = threadIdx.x;
  long long i = 2ll * blockDim.x * blockIdx.x + t;
  int sum = i < n ? in[i] : 0;
  if (i + blockDim.x < n) sum += in[i + blockDim.x];
  sums[t] = sum;
  __syncthreads();
  for (int left = blockDim.x; left > 1;) {
    int half = (left + 1) / 2;  // rounded up: the middle one waits
    if (t < left - half) sums[t] += sums[t + half];
    __syncthreads();
    left = half;
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}
""",
    "any_block",
)

# %% check-2
import cudatut as ct

for threads in (1, 31, 33, 48, 100, 256, 1000):
    for n in (1, 31, 33, 2 * threads + 1, ct.RAGGED[-1]):
        x = ct.rng(n).integers(-1000, 1001, n, dtype="int32")
        grid = ct.cdiv(n, 2 * threads)
        out = ct.empty(grid, "int32")
        size = 4 * threads
        any_block(
            ct.to_device(x), out, n, grid=grid, block=threads, shared=size
        )
        sums = np.add.reduceat(x, np.arange(0, n, 2 * threads))
        ct.check(out, sums, name=f"block={threads}, n={n}")
