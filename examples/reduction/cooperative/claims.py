# ---
# jupyter:
#   cudatut:
#     title: {en: "Few blocks that walk: claims", zh: "少量线程块，走遍整个数组：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
#     sizes: {delay: [2000000, 100000]}
# ---

# %% [markdown]
# What the notes on *Learn CUDA Programming* do in the code of a sum, tried.

# %% in-place-claim
import cudatut as ct

IN_PLACE = """
__global__ void sum_pieces(const int* in, int* out, int n, long long delay) {
  __shared__ int sums[256];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  if (blockIdx.x == 0) {  // late; nothing in CUDA promises that it is not
    const long long begin = clock64();
    while (clock64() - begin < delay) {}
  }
  __syncthreads();
  sums[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  // In place: where block blockIdx.x / 256 reads, or will read.
  if (t == 0) out[blockIdx.x] = sums[0];
}
"""
sum_pieces = ct.Kernel(IN_PLACE, "sum_pieces")
# In cycles: about a millisecond.
delay = 2_000_000
pieces = 256
numbers = ct.rng(1).integers(0, 1000, pieces * 256, dtype="int32")


def error(delay, in_place=True):
    """Two launches, the second over the sums of the first: how far off."""
    data = ct.to_device(numbers)
    sums = data if in_place else ct.empty(pieces, "int32")
    sum_pieces(data, sums, data.size, delay, grid=pieces, block=256)
    sum_pieces(sums, sums, pieces, 0, grid=1, block=256)
    return int(sums.get()[0]) - int(numbers.sum())


ct.claim(
    id="reduction-in-place",
    source="Learn CUDA Programming, notes",
    place={
        "en": "'Reduction with Global Memory', the code of sharedReduction",
        "zh": "“Reduction with Global Memory”一节，sharedReduction 的代码",
    },
    form="code",
    statement={
        "en": "Several blocks write their sums over the array that they read: "
        "sharedReductionKernel(output, output, size). Error of the sum:",
        "zh": "多个线程块把和写回自己正在读的数组：sharedReductionKernel(output, "
        "output, size)。和的误差：",
    },
    expected=0,
    depends={
        "en": "the order of the blocks, which CUDA does not promise",
        "zh": "线程块的先后，而 CUDA 不保证先后",
    },
    sides=(
        ({"en": "as it runs", "zh": "照常运行"}, error(0)),
        (
            {
                "en": "with block 0 a millisecond late",
                "zh": "让线程块 0 迟到一毫秒",
            },
            error(delay),
        ),
    ),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "with a second array, block 0 as late: were the delay itself "
            "the fault, this sum would be wrong, too",
            "zh": "另用一个数组，线程块 0 同样迟到；若是迟到本身有错，这里的和也会错",
        },
        error(delay, in_place=False),
        0,
    ),
)
