# ---
# jupyter:
#   cudatut:
#     title: {en: "Atomics and the histogram: solutions", zh: "原子操作与直方图：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# A largest float by an atomic on integers, and a histogram of more values than
# 32 copies have room for.

# %% given-1
import numpy as np
import cudatut as ct


def largest(x):
    """The largest element of float32 x, which holds no NaN."""
    key = ct.to_device(np.zeros(1, "uint32"))  # below the key of every number
    largest_key(x, key, x.size, grid=ct.cdiv(x.size, 256), block=256)
    return np.array([bits_of(key.get()[0])], "uint32").view("float32")


# %% solution-1
largest_key = ct.Kernel(
    """
__device__ unsigned key_of(float x) {
  unsigned bits = __float_as_uint(x);  // flip all bits, or only the highest
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__global__ void largest_key(const float* in, unsigned* out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  unsigned best = i < n ? key_of(in[i]) : 0;
  for (int distance = 16; distance > 0; distance /= 2)
    best = max(best, __shfl_xor_sync(0xffffffffu, best, distance));
  if (threadIdx.x % 32 == 0) atomicMax(out, best);
}
""",
    "largest_key",
)


def bits_of(key):
    """The bits of the float that has this key."""
    return key ^ np.uint32(0x80000000) if key >> 31 else ~key


# %% check-1
import cudatut as ct


def between(x):
    """A view between two infinities: who reads past an end finds them."""
    return ct.to_device(np.pad(x, 1, constant_values=np.inf))[1:-1]


for m in ct.RAGGED:
    x = ct.rng(m).standard_normal(m, dtype="float32")
    for sign, shift in ((1, 0), (-1, 0), (1, -1e6)):
        y = np.float32(sign) * x + np.float32(shift)
        got, right = largest(between(y)), y.max(keepdims=True)
        ct.check(got, right, name=f"n={m}", rtol=0)
pairs = ([-0.0, 0.0], [-np.inf, -1.0], [np.inf, 1.0], [-1e-45, -3e-45])
for k, pair in enumerate(pairs):
    x = np.array(pair, "float32")
    got, right = largest(between(x)), x.max(keepdims=True)
    ct.check(got, right, name=f"pair {k}", rtol=0)

# %% given-2
import numpy as np
import cudatut as ct


def histogram(x, copies):
    """Counts of the values of uint16 x, all below 1024."""
    counts = ct.to_device(np.zeros(1024, "uint32"))
    shared, n = 4 * 1024 * copies, x.size
    histogram_copies(x, counts, n, copies, grid=64, block=512, shared=shared)
    return counts


# %% solution-2
histogram_copies = ct.Kernel(
    """
__global__ void histogram_copies(const unsigned short* in, unsigned* counts,
                                 int n, int copies) {
  extern __shared__ unsigned mine[];  // 1024 * copies words
  for (int word = threadIdx.x; word < 1024 * copies; word += blockDim.x)
    mine[word] = 0;
  __syncthreads();
  unsigned* copy = mine + threadIdx.x % copies;
  long long i = blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(copy + copies * in[i], 1u);
  __syncthreads();
  for (int bin = threadIdx.x; bin < 1024; bin += blockDim.x) {
    unsigned sum = 0;  // a warp begins at different copies: different banks
    for (int k = 0; k < copies; ++k)
      sum += mine[copies * bin + (bin + k) % copies];
    if (sum) atomicAdd(counts + bin, sum);
  }
}
""",
    "histogram_copies",
)

# %% check-2
import cudatut as ct

optin = ct.device().shared_per_block_optin
fits = max(c for c in (1, 2, 4, 8, 16, 32) if 4 * 1024 * c <= optin)
for copies in sorted({1, 8, fits}):
    for m in ct.RAGGED:
        random = ct.rng(m).integers(0, 1024, m, dtype="uint16")
        same = np.full(m, 1023, "uint16")
        for name, x in (("random", random), ("one value", same)):
            right = np.bincount(x, minlength=1024).astype("uint32")
            got = histogram(ct.to_device(x), copies)
            ct.check(got, right, name=f"{copies} copies, {name}, n={m}")

# %% [markdown]
# The prediction: passes of 20,000 warps with random values.

# %% passes-2
drawn = ct.rng(0).integers(0, 1024, (20_000, 32))
lanes = np.arange(32)


def passes(copies):
    """Mean of the most lanes in a bank, if lane l keeps to copy l % copies."""
    word = copies * drawn + lanes % copies
    banks = np.zeros((len(word), 32), "int32")
    np.add.at(banks, (np.arange(len(word))[:, None], word % 32), 1)
    return float(banks.max(axis=1).mean())


ct.table(
    "1024 counters",
    {
        copies: {"passes": passes(copies), "memory": 4 * copies}
        for copies in (1, 2, 4, 8, 16, 32)
    },
    corner="copies",
    units={"memory": "KiB"},
)
