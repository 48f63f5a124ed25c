# ---
# jupyter:
#   cudatut:
#     title: {en: "vLLM's paged attention kernel: solutions", zh: "vLLM 的分页注意力 kernel：参考答案"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# An address in the layout of the keys, and a score by two threads.

# %% given-1
import numpy as np

KV_HEADS, D, BLOCK, X = 3, 64, 16, 8


# %% solution-1
def place(block, kv_head, token, e):
    """Elements before it in the cache."""
    chunk = (block * KV_HEADS + kv_head) * (D // X) + e // X
    return (chunk * BLOCK + token) * X + e % X


# %% check-1
import cudatut as ct

blocks = 5
shape = blocks, KV_HEADS, BLOCK, D
block, kv_head, token, e = np.indices(shape)
keys = np.arange(np.prod(shape)).reshape(shape)  # any different numbers
chunks = keys.reshape(blocks, KV_HEADS, BLOCK, D // X, X)
cache = chunks.transpose(0, 1, 3, 2, 4).reshape(-1)
found = cache[place(block, kv_head, token, e) % cache.size]
ct.check(found, keys, name="the element that is there", rtol=0)

# %% given-2
import numpy as np

D, BLOCK, X = 128, 16, 4

# %% solution-2
source = """
__global__ void scores(const float *q, const float *keys, float *out, int n) {
  const int half = threadIdx.x % 2, key = threadIdx.x / 2;
  const float *const block = keys + blockIdx.x * 16 * 128;
  float sum = 0;
  for (int i = 0; i < 32; ++i) {  // 16 bytes of the pair at a time
    const float2 k =
        *(const float2 *)(block + (i * 16 + key) * 4 + 2 * half);
    sum += q[4 * i + 2 * half] * k.x + q[4 * i + 2 * half + 1] * k.y;
  }
  sum += __shfl_xor_sync(~0u, sum, 1);
  const int j = blockIdx.x * 16 + key;
  if (half == 0 && j < n) out[j] = sum;
}
"""

# %% check-2
import cudatut as ct

kernel = ct.Kernel(source, "scores")
rng = ct.rng(0)
for n in (1, 15, 16, 17, 1000):
    q = rng.standard_normal(D, "float32")
    some = rng.standard_normal((n, D), "float32")
    blocks = -(-n // BLOCK)
    keys = np.full((blocks * BLOCK, D), np.nan, "float32")
    keys[:n] = some
    chunks = keys.reshape(blocks, BLOCK, D // X, X).transpose(0, 2, 1, 3)
    cache = ct.to_device(np.ascontiguousarray(chunks))
    out = ct.empty(n, "float32")
    kernel(ct.to_device(q), cache, out, n, grid=blocks, block=32)
    exact = some.astype("float64") @ q
    ct.check(out, exact, name=f"scores of {n} keys", atol=1e-4)
