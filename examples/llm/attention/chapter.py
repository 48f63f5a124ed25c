# ---
# jupyter:
#   cudatut:
#     title: {en: "Attention as it is written", zh: "照公式写的注意力"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 180
#     sizes:
#       S: [1024, 96]
#       HEADS: [32, 2]
#       N: [4096, 72]
#       LENGTHS: [[256, 512, 1024, 2048, 4096, 8192], [40, 72]]
# ---

# %% [markdown]
# Attention by three launches: a product, softmax, a product. Between them, all
# scores lie in the memory.

# %% program
import numpy as np
import cudatut as ct

heads, d = 4, 64
S = 1024  # tokens
rng = ct.rng(0)
# fp32 numbers whose lower half is 0: they are bf16 as well.
q, k, v = (
    (rng.standard_normal((heads, S, d), "float32").view("uint32") >> 16 << 16)
    for _ in range(3)
)
halves = [ct.to_device((x >> 16).astype("uint16")) for x in (q, k, v)]
q, k, v = (x.view("float32").astype("float64") for x in (q, k, v))

scores = ct.empty((heads, S, S), "float32")
weights = ct.empty((heads, S, S), "uint16")  # bf16
out = ct.empty((heads, S, d), "uint16")

name = "attention_product<true, float>"
scores_of = ct.Kernel("llm/attention/attention.cu", name)
name = "softmax_fused<float, __nv_bfloat16, 4, 64, 4>"  # up to 1024 columns
softmax = ct.Kernel("llm/kernels/softmax.cu", name)
name = "attention_product<false, __nv_bfloat16>"
mix = ct.Kernel("llm/attention/attention.cu", name)

tiles = ct.cdiv(S, 64)
on_gpu, causal, lengths = halves, S, np.uint64(0)
scores_of(
    on_gpu[0], on_gpu[1], scores, S, S, d, 1,
    grid=(tiles, tiles, heads), block=256,
)  # fmt: skip
softmax(
    scores, S, weights, S, heads * S, S, 1 / d**0.5, causal, lengths,
    grid=heads * S, block=64,
)  # fmt: skip
mix(
    weights, on_gpu[2], out, S, d, S, 1,
    grid=(ct.cdiv(d, 64), tiles, heads), block=256,
)  # fmt: skip

expected = q @ k.transpose(0, 2, 1) / d**0.5
expected[:, np.triu(np.ones((S, S), bool), 1)] = -np.inf
expected = np.exp(expected - expected.max(axis=2, keepdims=True))
expected = expected / expected.sum(axis=2, keepdims=True) @ v
found = (out.get().astype("uint32") << 16).view("float32")
ct.check(found, expected, name="causal attention", rtol=2**-7, atol=0.02)

# %% setup
from functools import partial

from cudatut.book.llm.attention import steps
from cudatut.book.llm.attention.steps import Room, on_tensor_cores, turned
from cudatut.book.measure import spread
from cudatut.book.measure.graphs import recorded, torch_recorded
from cudatut.book.llm.model.reference import attention as attention_numpy
from cudatut.book.rivals.torch_rival import rival
from cudatut.book.numbers.bf16 import to_bf16, to_float

HEADS = 32
D = 64
N = 4096  # tokens
GB = 1e9


def inputs(heads, kv_heads, m, n, d, seed=0):
    """q, k, v in bf16: on the host as float32, and on the GPU."""
    rng = ct.rng(seed)
    shapes = (heads, m, d), (kv_heads, n, d), (kv_heads, n, d)
    packed = [to_bf16(rng.standard_normal(s, dtype="float32")) for s in shapes]
    return [to_float(x) for x in packed], [ct.to_device(x) for x in packed]


# %% predict
def moved(n):
    """Bytes: scores in fp32 written and read, weights in bf16 likewise."""
    return HEADS * n * n * (4 + 4 + 2 + 2)


def needed(n):
    """Bytes of q, k, v and the result."""
    return HEADS * n * D * 2 * 4


def flops(n):
    return HEADS * 4 * n * n * D


rows = {}
for n in (512, 2048, 8192, 32768, 131072):
    rows[f"{n}"] = {
        "scores and weights": HEADS * n * n * 6 / GB,
        "moved": moved(n) / GB,
        "q, k, v, result": needed(n) / GB,
        "FLOPs per byte moved": flops(n) / (moved(n) + needed(n)),
        "FLOPs per byte needed": flops(n) / needed(n),
    }
ct.table(
    "32 heads of 64",
    rows,
    corner="tokens",
    units=dict.fromkeys(
        ("scores and weights", "moved", "q, k, v, result"), "GB"
    ),
)

# %% memory
memory = ct.device().memory_bytes
ct.facts(
    "the longest sequence whose scores and weights fit",
    {
        "memory of this GPU": (memory / GB, "GB"),
        "32 heads at once": (int((memory / (6 * 32)) ** 0.5), "tokens"),
        "9 heads at once": (int((memory / (6 * 9)) ** 0.5), "tokens"),
        "one head at a time": (int((memory / 6) ** 0.5), "tokens"),
    },
)

# %% check
for heads, kv_heads, m, n, d in (
    (4, 4, 64, 64, 64),
    (6, 2, 33, 65, 64),
    (3, 1, 1, 31, 80),
    (2, 2, 129, 200, 128),
):
    on_host, on_gpu = inputs(heads, kv_heads, m, n, d)
    q, k, v = (x.transpose(1, 0, 2).astype("float64") for x in on_host)
    for causal in (False, True):
        room, out = Room(heads, m, n), ct.empty((heads, m, d), "uint16")
        last = np.full(m, n - 1)
        seen_to = np.arange(n - m, n) if causal else last
        expected = attention_numpy(q, k, v, seen_to).reshape(m, heads, d)
        expected = expected.transpose(1, 0, 2)
        steps.attention(*on_gpu, out, room, causal)
        shape = f"{m} queries, {n} keys, {'causal' if causal else 'no mask'}"
        bound = {"rtol": 2**-7, "atol": 0.02}
        ct.check(to_float(out.get()), expected, name=shape, **bound)
        if n % 8 == 0:
            out = ct.empty((heads, m, d), "uint16")
            on_tensor_cores(*on_gpu[:2], turned(on_gpu[2]), out, room, causal)
            name = f"{shape}, linear.cu"
            ct.check(to_float(out.get()), expected, name=name, **bound)

# %% [markdown]
# All contestants are recorded as CUDA graphs: between the launches of one there
# is no Python.

# %% bench
_, (q, k, v) = inputs(HEADS, HEADS, N, N, D)
v_turned, room = turned(v), Room(HEADS, N, N)
out = ct.empty((HEADS, N, D), "uint16")


def by_linear(*arrays, causal=False):
    """All launches of `on_tensor_cores`, on a stream."""
    return lambda stream: on_tensor_cores(*arrays, causal, stream)


def torch_attention(backend, causal=False):
    """PyTorch's attention by one of its backends, on q, k and v."""

    def prepare(torch, q, k, v):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        def call():
            with sdpa_kernel(getattr(SDPBackend, backend)):
                return torch.nn.functional.scaled_dot_product_attention(
                    q[None], k[None], v[None], is_causal=causal
                )

        return torch_recorded(torch, call)

    return rival(prepare, q, k, v)


times = ct.bench(
    {
        "attention.cu": recorded(
            lambda stream: steps.attention(q, k, v, out, room, stream=stream)
        ),
        "linear.cu": recorded(by_linear(q, k, v_turned, out, room)),
        "PyTorch, math": torch_attention("MATH"),
        "PyTorch, fused": torch_attention("FLASH_ATTENTION"),
    },
    name="32 heads of 64, 4096 tokens, no mask",
)

# %% limits
gbps = ct.limits.bandwidth()
by_bytes = (moved(N) + needed(N)) / gbps / 1e3
linear_us = times["linear.cu"].median_us
facts = {
    "bytes moved": ((moved(N) + needed(N)) / GB, "GB"),
    "time of these bytes": (by_bytes, "us"),
    "time of the bytes that are needed": (needed(N) / gbps / 1e3, "us"),
    "linear.cu, of the speed of its bytes": (100 * by_bytes / linear_us, "%"),
}
names = [row.name for row in times.rows]
if "PyTorch, fused" in names:
    fused = times["PyTorch, fused"].median_us
    facts["time, linear.cu / PyTorch, fused"] = linear_us / fused
    facts["time, attention.cu / linear.cu"] = (
        times["attention.cu"].median_us / linear_us
    )
ct.facts("attention of 4096 tokens", facts)

# %% parts
parts = {
    "scores": partial(steps.scores_by_linear, q, k, room),
    "softmax": partial(steps.weigh, room, D, False),
    "weighted sums": partial(steps.mix_by_linear, room, v_turned, out),
}
parts = {name: recorded(work) for name, work in parts.items()}
pairs, small = HEADS * N * N, HEADS * N * D * 2
part_bytes = {
    "scores": 4 * pairs + 2 * small,
    "softmax": 6 * pairs,
    "weighted sums": 2 * pairs + 2 * small,
}
ct.bench(
    parts, bytes=part_bytes, name="the three steps, linear.cu, without a mask"
)

# %% [markdown]
# The same by length, in TFLOP/s of attention without a mask.

# %% lengths
LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
del room, q, k, v, v_turned, out
lines = {"linear.cu": [], "PyTorch, math": [], "PyTorch, fused": []}
for n in LENGTHS:
    _, (q, k, v) = inputs(HEADS, HEADS, n, n, D)
    v_turned, room = turned(v), Room(HEADS, n, n)
    out = ct.empty((HEADS, n, D), "uint16")
    runs = {
        "linear.cu": recorded(by_linear(q, k, v_turned, out, room)),
        "PyTorch, math": n <= 4096 and torch_attention("MATH"),
        "PyTorch, fused": torch_attention("FLASH_ATTENTION"),
    }
    if ct.tool.running():
        runs["linear.cu"]()
        continue
    for name, us in spread.medians(runs, 7).items():
        lines[name].append((n, flops(n) / us / 1e6))
    del runs, room, q, k, v, v_turned, out
if not ct.tool.running():
    ct.series(
        "attention by length",
        x=("tokens", ""),
        y=("rate", "TFLOP/s"),
        lines={name: line for name, line in lines.items() if line},
    )

# %% [markdown]
# What a causal mask saves: half of the pairs are not needed.

# %% mask
_, (q, k, v) = inputs(HEADS, HEADS, N, N, D)
v_turned, room = turned(v), Room(HEADS, N, N)
out = ct.empty((HEADS, N, D), "uint16")
runs = {}
for label, causal in (("no mask", False), ("causal", True)):
    work = by_linear(q, k, v_turned, out, room, causal=causal)
    runs[f"linear.cu, {label}"] = recorded(work)
    runs[f"PyTorch, fused, {label}"] = torch_attention(
        "FLASH_ATTENTION", causal
    )
masked = ct.bench(runs, name="with and without a causal mask")
facts = {"of the pairs, needed": (50 * (N + 1) / N, "%")}
# The first product writes all scores, softmax reads half of them and writes
# all weights, the second product reads all.
facts["of the bytes, moved"] = (100 * (4 + 2 + 2 + 2) / 12, "%")
us = {row.name: row.median_us for row in masked.rows}
for name in ("linear.cu", "PyTorch, fused"):
    if f"{name}, no mask" in us:
        share = 100 * us[f"{name}, causal"] / us[f"{name}, no mask"]
        facts[f"of the time, {name}"] = (share, "%")
ct.facts("causal, of what it takes without a mask", facts)
