# ---
# jupyter:
#   cudatut:
#     title: {en: "What a model computes for one token: solutions", zh: "一个词元要算什么：参考答案"}
#     requires: sm_80
#     extra: llm
#     alone: false
# ---

# %% [markdown]
# The size of a KV cache, a block of four-bit weights, and a batch that helps no
# more.

# %% given-1
MODELS = {  # bytes of the weights, layers, KV heads, numbers of a head
    "SmolLM2-135M": (269_030_016, 30, 3, 64),
    "Llama 3 8B": (16_060_522_496, 32, 8, 128),
    "Llama 2 7B": (13_476_831_232, 32, 32, 128),
}


# %% solution-1
def tokens_that_fit(memory, weights, layers, kv_heads, head_dim):
    """Tokens whose keys and values fit beside `weights` bytes."""
    # Keys and values, of two bytes each.
    return (memory - weights) // (2 * 2 * layers * kv_heads * head_dim)


# %% check-1
import numpy as np

import cudatut as ct

found = [tokens_that_fit(80 << 30, *sizes) for sizes in MODELS.values()]
ct.check(np.array(found), [3716593, 532827, 138134], name="tokens")

# %% given-2
import numpy as np


# %% solution-2
def dequantize(blocks):
    """float32 [n, 32] of Q4_1 blocks, uint8 [n, 20]."""
    d, m = blocks[:, :4].copy().view("float16").astype("float32").T
    q = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
    return d[:, None] * q + m[:, None]


# %% check-2
import gguf
import numpy as np

import cudatut as ct

Q4_1 = gguf.GGMLQuantizationType.Q4_1
x = ct.rng(0).standard_normal((1000, 32), dtype="float32")
blocks = gguf.quants.quantize(x, Q4_1)
expected = gguf.quants.dequantize(blocks, Q4_1)
ct.check(dequantize(blocks), expected, name="weights")

# %% given-3
import math


# %% solution-3
def smallest_batch(weights, context, kv_flops, kv_bytes, ridge):
    """The smallest batch that the tensor cores limit, or None."""
    # batch (2 weights + context kv_flops)
    #     >= ridge (2 weights + batch context kv_bytes)
    gain = 2 * weights + context * (kv_flops - ridge * kv_bytes)
    return math.ceil(2 * weights * ridge / gain) if gain > 0 else None


# %% check-3
import numpy as np

import cudatut as ct

SIZES = 134_515_008, 69_120, 23_040  # SmolLM2: weights, FLOPs, bytes
found = [
    smallest_batch(SIZES[0], context, *SIZES[1:], 200)
    for context in (0, 32, 56, 64, 1024)
]
found = np.array([-1 if batch is None else batch for batch in found])
ct.check(found, [200, 435, 3623, -1, -1], name="batches; -1: none")
