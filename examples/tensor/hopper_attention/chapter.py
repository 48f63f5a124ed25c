# ---
# jupyter:
#   cudatut:
#     title: {en: "FlashAttention on Hopper", zh: "Hopper 上的 FlashAttention"}
#     requires: sm_90a
#     extra: llm
#     timeout_s: 240
#     sizes:
#       tokens: [8192, 256]
#       SHAPES: [[113, 203, 1, 239, 799, 3, 1023, 1024, 2048, 2048], [65, 197]]
#       LENGTHS: [[512, 2048, 8192, 16384], [256]]
# ---

# %% [markdown]
# Attention on Hopper. First a small one as a whole program.

# %% program
import numpy as np

import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float  # in uint16
from cudatut.book.published.attention import exact
from cudatut.book.tensor.attention import flash_hopper

# 300 queries are the last tokens of 500. 8 heads share 2 of keys and values.
rng = ct.rng(0)
q = to_bf16(rng.standard_normal((1, 300, 8, 128)))
keys, values = (to_bf16(rng.standard_normal((1, 500, 2, 128))) for _ in "kv")
out = ct.empty(q.shape, "uint16")
on_gpu = [ct.to_device(x) for x in (q, keys, values)]
flash_hopper.attention(*on_gpu, out, causal=True)

expected, mean = exact.attention(q[0], keys[0], values[0], causal=True)
ct.check(
    to_float(out.get()[0]),
    expected,
    name="300 queries, 500 keys",
    **exact.bounds(mean),
)

# %% [markdown]
# By hand, one head of 64 elements. A map sees [sequences, heads, parts of 64
# elements, tokens, 64], and with one of each that is how the arrays lie. A box
# is what one copy brings: 64 queries of a warpgroup, 128 keys or values.

# %% launch
d, q_len, k_len = 64, 300, 500
one_head = [
    to_bf16(rng.standard_normal((1, 1, 1, length, d)))
    for length in (q_len, k_len, k_len)
]
on_gpu = [ct.to_device(x) for x in one_head]  # a map keeps nothing alive
maps = [
    ct.tensor_map(x, (1, 1, 1, count, 64), swizzle=128)
    for x, count in zip(on_gpu, (64, 128, 128))
]
out = ct.empty((q_len, d), "uint16")
# Two warpgroups of consumers, two buffers of keys, of values and of queries; no
# mask; in turns, and with the softmax under products; nothing else.
kernel = ct.Kernel(
    "tensor/attention/flash_hopper.cu",
    "flash_hopper<64,2,128,2,2,false,true,true>",
    arch="sm_90a",
)
tiles = ct.cdiv(q_len, 2 * 64)  # of queries, which blocks draw
drawn = ct.to_device(np.zeros(1, "int32"))
none = np.uint64(0)  # no log-sum-exp, no cycles
power = np.log2(np.e) * d**-0.5  # the weights are powers of two
# Two tiles of keys and of values, and two of queries for each warpgroup; the
# rest is skipped, so that tiles begin at multiples of 1024 bytes.
shared = 2 * d * (2 * 2 * 128 + 2 * 2 * 64) + 1024

# One head of each, all of it at a time; rows of results are d elements apart.
kernel(
    *maps, out, d, none, drawn, 1, 1, q_len, k_len, tiles, tiles, 1, power,
    none, grid=min(tiles, ct.device().sm_count), block=3 * 128, shared=shared,
)  # fmt: skip

expected, mean = exact.attention(*(x.reshape(-1, 1, d) for x in one_head))
ct.check(
    to_float(out.get()),
    expected[:, 0],
    name="launched by hand",
    **exact.bounds(mean),
)

# %% [markdown]
# What a step of a warpgroup asks of an SM, where results are.

# %% predict
# 64 queries and 128 keys. In a cycle an SM of the H100 does 4096 FLOPs in bf16,
# 16 exponentials, and starts 128 instructions of a lane. A score takes a
# multiplication with a subtraction, an exponential, an addition, and half a
# conversion to bf16; maxima are seldom looked for.
QUERIES, KEYS = 64, 128
scores = QUERIES * KEYS
cycles = {}
for d in (128, 64):
    plan = flash_hopper.plan_for(d, False, 8192, 8192)
    cycles[f"D = {d}"] = {
        "both products": 4 * d * scores / 4096,
        "exponentials": scores / 16,
        "instructions of the softmax": 3.5 * scores / 128,
        "warpgroups": plan.consumers,
    }
ct.table("cycles of an SM for 64 queries and 128 keys", cycles, corner="heads")

# %% traffic
# What a block brings from L2 in a step, if products never wait. The two data
# sheets: 132 SMs, 1.755 GHz.
traffic = {}
for d in (128, 64):
    for warpgroups in (1, 2, 3):
        step = warpgroups * 4 * d * scores / 4096  # cycles
        rate = 2 * KEYS * d * 2 / step  # bytes of keys and values in a cycle
        traffic[f"D = {d}, {64 * warpgroups} queries"] = {
            "a cycle and SM": rate,
            "all SMs": rate * 132 * 1.755e9 / 1e12,
        }
ct.table(
    "keys and values from L2",
    traffic,
    corner="a block",
    units={"a cycle and SM": "B", "all SMs": "TB/s"},
)

# %% lanes
# Scores of a lane in order, and the words that they become.
lane, n = 5, np.arange(8)
ct.table(
    "lane 5 of warp 0: scores and words",
    {
        f"s[{i}]": {
            "row": lane // 4 + i % 4 // 2 * 8,
            "column": i // 4 * 8 + lane % 4 * 2 + i % 2,
            "word": f"p[{i // 2}]",
        }
        for i in n
    },
    corner="register",
)

# %% [markdown]
# Lengths of other projects' tests, against float64. Weights and results are
# rounded to bf16.


# %% check
def compare(q_len, k_len, heads, kv_heads, d, causal):
    rng = ct.rng(q_len + k_len + d)
    q = to_bf16(rng.standard_normal((2, q_len, heads, d)))
    keys, values = (
        to_bf16(rng.standard_normal((2, k_len, kv_heads, d))) for _ in "kv"
    )
    out = ct.empty(q.shape, "uint16")
    on_gpu = [ct.to_device(x) for x in (q, keys, values)]
    flash_hopper.attention(*on_gpu, out, causal=causal)
    pairs = [exact.attention(*x, causal) for x in zip(q, keys, values)]
    expected, mean = (np.stack(x) for x in zip(*pairs))
    label = f"D = {d}, {q_len} queries, {k_len} keys"
    ct.check(
        to_float(out.get()),
        expected,
        name=f"{label}, causal" if causal else label,
        **exact.bounds(mean),
    )


SHAPES = (113, 203, 1, 239, 799, 3, 1023, 1024, 2048, 2048)
for q_len, k_len in zip(SHAPES[::2], SHAPES[1::2]):
    for d in (64, 128):
        for causal in (False, True):
            compare(q_len, k_len, 6, 2, d, causal)

# %% [markdown]
# Timed beside NVIDIA's and others' kernels, on the same arrays.

# %% bench
import functools

from cudatut.book.measure import spread
from cudatut.book.rivals import fa3, sdpa

flash = flash_hopper.flash


def arrays(d, length, tokens=16384):
    """q, keys, values and room for results: sequences of `length`."""
    heads = 16 if d == 128 else 32
    shape = (max(1, tokens // length), length, heads, d)
    rng = ct.rng(d)
    three = (to_bf16(rng.standard_normal(shape, "float32")) for _ in range(3))
    return *(ct.to_device(x) for x in three), ct.empty(shape, "uint16")


def ours(q, keys, values, out, causal, **options):
    return functools.partial(
        flash_hopper.attention,
        *(q, keys, values, out),
        causal=causal,
        **options,
    )


def contestants(four, causal):
    q, keys, values, out = four
    return {
        "FlashAttention-2": sdpa.rival(
            "FLASH_ATTENTION", q, keys, values, causal
        ),
        "cuDNN": sdpa.rival("CUDNN_ATTENTION", q, keys, values, causal),
        "FlashAttention-3": fa3.rival(q, keys, values, causal),
        "flash.cu": functools.partial(
            flash.contiguous, q, keys, values, out, causal=causal
        ),
        "flash_hopper.cu": ours(*four, causal),
    }


def flops(four, causal):
    sequences, length, heads, d = four[0].shape
    return 4 * sequences * heads * d * length**2 // (2 if causal else 1)


tokens = 8192
contests = {}
for d in (128, 64):
    four = arrays(d, tokens, 2 * tokens)
    for causal in (False, True):
        mask = "causal" if causal else "no mask"
        contests[f"D = {d}, {mask}"] = (
            ct.bench(
                contestants(four, causal),
                name=f"{four[0].shape[2]} heads of {d}, 8192 tokens, {mask}",
            ),
            flops(four, causal),
        )

# %% speeds
NAMES = ["FlashAttention-2", "flash.cu", "cuDNN", "FlashAttention-3"]
speeds = {}
for name, (bench, work) in contests.items():
    rates = {row.name: work / row.median_us / 1e6 for row in bench.rows}
    speeds[name] = {rival: rates.get(rival) for rival in NAMES}
    speeds[name]["flash_hopper.cu"] = rates["flash_hopper.cu"]
    best = max((rates[rival] for rival in NAMES if rival in rates), default=0)
    if best:
        speeds[name]["beside the best"] = rates["flash_hopper.cu"] / best
ct.table(
    "attention, 8192 tokens, bf16",
    speeds,
    corner="heads",
    units=dict.fromkeys((*NAMES, "flash_hopper.cu"), "TFLOP/s"),
)

# %% lengths
LENGTHS = (512, 2048, 8192, 16384)
BESIDE = ("cuDNN", "FlashAttention-3")
by_length = {}
for d in (128, 64):
    for causal in (False, True):
        for length in LENGTHS:
            four = arrays(d, length)
            runs = contestants(four, causal)
            runs = {name: runs[name] for name in (*BESIDE, "flash_hopper.cu")}
            found = spread.medians(runs, 15)
            work = flops(four, causal)
            mask = "causal" if causal else "no mask"
            by_length[f"D = {d}, {mask}, {length} tokens"] = {
                name: work / us / 1e6 for name, us in found.items()
            }
if all(by_length.values()):
    for row in by_length.values():
        for rival in BESIDE:
            row.setdefault(rival, None)
            row[f"beside {rival}"] = (
                row["flash_hopper.cu"] / row[rival] if row[rival] else None
            )
    ct.table(
        "attention by length, bf16",
        by_length,
        corner="heads",
        units=dict.fromkeys((*BESIDE, "flash_hopper.cu"), "TFLOP/s"),
    )

# %% ideas
# What each idea is worth: the same kernel without it; and with others that no
# plan uses.
WITHOUT = {
    "all ideas": {},
    "no turns": {"pingpong": False},
    "no softmax under own products": {"overlap": False},
    "neither": {"pingpong": False, "overlap": False},
    "128 keys in a step": {"bn": 128, "q_stages": 2},
    "queries in one buffer": {"q_stages": 1},
    "maxima in every step": {"maxima": True},
    "pairs of blocks": {"cluster": 2},
}
worth = {}
for d in (128, 64):
    four = arrays(d, tokens, 2 * tokens)
    plan = flash_hopper.plan_for(d, False, tokens, tokens)
    plan = plan._replace(pingpong=True)  # also where plans do without turns
    plans = {name: plan._replace(**of) for name, of in WITHOUT.items()}
    runs = {
        name: ours(*four, False, plan=other)
        for name, other in plans.items()
        if (other != plan or not WITHOUT[name])  # else it is the plan's
        and (d == 128 or other.cluster == 1)
    }
    for name, us in spread.medians(runs, 15).items():
        column = f"D = {d}"
        worth.setdefault(name, {})[column] = flops(four, False) / us / 1e6
if worth:
    units = {"D = 128": "TFLOP/s", "D = 64": "TFLOP/s"}
    ct.table("without a mask, 8192 tokens", worth, corner="plan", units=units)

# %% [markdown]
# The cycles of a step.

# %% cycles
# Each warpgroup of block 0 notes the cycle of five events of its steps.
EVENTS = (
    "starts products",
    "scores arrive",
    "first exponentials",
    "all weights",
)
steps = {}
for d in (128, 64):
    four = arrays(d, tokens, 2 * tokens)
    for pingpong in (True, False):
        plan = flash_hopper.plan_for(d, False, tokens, tokens)
        plan = plan._replace(timed=True, pingpong=pingpong)
        times = ct.to_device(np.zeros((plan.consumers, 64, 5), "uint32"))
        for _ in range(2):
            ours(*four, False, plan=plan, times=times)()
        some = times.get().astype("int64")[:, 8 : tokens // plan.bn - 2]
        if not some.size:
            continue  # too few steps, as under a sanitizer
        gaps = np.median(np.diff(some, axis=2), axis=(0, 1))
        whole = np.median(np.diff(some[:, :, 0], axis=1))
        label = "in turns" if pingpong else "no turns"
        steps[f"D = {d}, {label}"] = {
            **dict(zip(EVENTS, gaps.astype(int).tolist())),
            "whole step": int(whole),
            "products alone": plan.consumers
            * (4 * d * QUERIES * plan.bn // 4096),
        }
if steps:
    ct.table("cycles of a step of a warpgroup", steps, corner="heads")
