# ---
# jupyter:
#   cudatut:
#     title: {en: "One launch: claims", zh: "一次启动：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     sizes: {n: [4194304, 4096]}
# ---

# %% [markdown]
# What another source says of sums by atomics, tried. The ones are added in
# float32; up to 2^24 no addition of them rounds.

# %% per-block-claim
import numpy as np
import pycuda.driver as cuda
import cudatut as ct

BY_ATOMICS = """
// out[0] += the sum of in[0 .. n): an atomic for each element
__global__ void per_element(const float* in, float* out, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) atomicAdd(out, in[i]);
}

// ... : a tree in each block, then an atomic for each block
__global__ void per_block(const float* in, float* out, int n) {
  __shared__ float sums[256];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  sums[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  if (t == 0) atomicAdd(out, sums[0]);
}
"""
n = 4_194_304
ones = ct.to_device(np.ones(n, "float32"))


def by_atomics(name):
    """A call that sums the ones, into a word that it sets to 0 first."""
    kernel, out = ct.Kernel(BY_ATOMICS, name), ct.empty(1, "float32")

    def run():
        cuda.memset_d32(out.gpudata, 0, 1)
        kernel(ones, out, n, grid=ct.cdiv(n, 256), block=256)

    run()
    ct.check(out, [n], name=name, rtol=0)
    return run


bench = ct.bench(
    {
        "per element": by_atomics("per_element"),
        "per block": by_atomics("per_block"),
        "per block, again": by_atomics("per_block"),
    },
    bytes=ones.nbytes,
    name="sums by atomics",
)
per_block = bench["per block"].median_us
ct.claim(
    id="reduction-atomic-per-block",
    source="CS179 notes",
    place={
        "en": "the section on synchronization (同步与并行), after the list "
        "of atomics",
        "zh": "“同步与并行”一节，原子操作的列表之后",
    },
    form="said",
    statement={
        "en": "Do not add N numbers to one variable one by one. It is better "
        "that each block sums in shared memory and then executes one "
        "atomicAdd. Time with an atomicAdd per element / per block:",
        "zh": "不要把 N 个数逐个累加到一个变量上；更好的做法是每个线程块先在共享"
        "内存里求和，再执行一次 atomicAdd。每个元素一次 atomicAdd 的时间 / "
        "每个线程块一次的时间：",
    },
    expected=1.0,
    measured=bench["per element"].median_us / per_block,
    unit="×",
    rule="above",
    control=(
        {
            "en": "per block against itself",
            "zh": "每个线程块一次，与它自己相比",
        },
        per_block / bench["per block, again"].median_us,
        (0.97, 1.03),
    ),
)

# %% [markdown]
# What such a kernel takes for granted: a tree that halves needs blocks of a
# power of two, and the output has to be 0 before the launch.

# %% linear
linear = ct.Kernel("reduction/one_launch/atomic_sum.cu", "sum_linear")
few, out = ct.to_device(np.ones(960, "int32")), ct.empty(1, "int32")


def sum_of_ones(block, runs=1):
    cuda.memset_d32(out.gpudata, 0, 1)
    for _ in range(runs):
        linear(few, out, 960, grid=960 // block, block=block, shared=4 * block)
    return int(out.get()[0])


def tree(threads):
    """What the halving tree leaves of that many ones."""
    sums, half = [1] * threads, threads // 2
    while half:
        sums[:half] = [sums[t] + sums[t + half] for t in range(half)]
        half //= 2
    return sums[0]


ct.check([sum_of_ones(32)], [960], name="blocks of 32")
ct.facts(
    "960 ones",
    {
        "blocks of 32": sum_of_ones(32),
        "blocks of 96, predicted": 10 * tree(96),
        "blocks of 96, measured": sum_of_ones(96),
        "second run, output not zeroed": sum_of_ones(32, runs=2),
    },
)
