# ---
# jupyter:
#   cudatut:
#     title: {en: "Decoding and the KV cache: any number of keys", zh: "解码与 KV 缓存：任意数目的键"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 120
# ---

# %% [markdown]
# Right for any number of keys, of parts, and of query heads that share keys.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.kernels.attention import decode, exact
from cudatut.book.numbers.bf16 import to_bf16, to_float


def random(rng, shape):
    """Numbers in bf16."""
    return to_bf16(rng.standard_normal(shape, dtype="float32"))


# %% check
RAGGED = (1, 31, 33, 511, 512, 513, 1300)


def decoded(q, keys, values, lengths, split=decode.SPLIT):
    s, heads, d = q.shape
    longest = int(max(lengths))
    out = ct.empty(q.shape, "uint16")
    lse = ct.empty((s, heads), "float32")
    need = decode.sizes(s, heads, keys.shape[2], d, longest, split)
    partials = ct.empty(need.partials, "float32")
    tickets = ct.to_device(np.zeros(need.tickets, "uint32"))
    arrays = [ct.to_device(np.ascontiguousarray(x)) for x in (q, keys, values)]
    lengths = ct.to_device(np.asarray(lengths, "int32"))
    decode.contiguous(
        *arrays, lengths, out, lse, partials, tickets, longest, split
    )
    return to_float(out.get())


for group in (1, 3, 8, 9):
    rng = ct.rng(group)
    shape = len(RAGGED), max(RAGGED), 2, 64
    q = random(rng, (len(RAGGED), 2 * group, 64))
    keys, values = (random(rng, shape) for _ in "kv")
    expected = [
        exact.attention(q[i, None], keys[i, :n], values[i, :n])[0]
        for i, n in enumerate(RAGGED)
    ]
    for split in (64, 512):
        got = decoded(q, keys, values, RAGGED, split)
        ct.check(
            got, np.reshape(expected, q.shape), rtol=0, atol=0.02,
            name=f"{group} query heads share keys, parts of {split}",
        )  # fmt: skip

# %% alone
together = decoded(q, keys, values, RAGGED)
alone = np.concatenate(
    [
        decoded(*(x[i : i + 1] for x in (q, keys, values)), [n])
        for i, n in enumerate(RAGGED)
    ]
)
halves = decoded(q, keys, values, RAGGED, 256)
ct.facts(
    "results that differ",
    {
        "alone and in a batch": int((alone != together).sum()),
        "parts of 512 and of 256": int((halves != together).sum()),
    },
)
