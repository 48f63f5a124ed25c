# ---
# jupyter:
#   cudatut:
#     title: {en: "Scan: the contest", zh: "前缀和：比赛"}
#     requires: sm_90
#     timeout_s: 180
#     sizes:
#       many: [268_435_456, 65_536]
#       lengths: [[100_003, 1_111_111, 9_000_001], [60_001]]
#       longer: [20_000_003, 60_001]
#       huge: [2_147_483_655, 70_001]
#       repeats: [50, 2]
#       exponents: [[10, 12, 14, 16, 18, 20, 22, 24, 26, 28], [10, 12]]
#       between: [[20, 22, 24, 26, 28], [10, 12]]
#       rounds: [40, 1]
# ---

# %% [markdown]
# The scan that runs ahead and the one for short arrays, beside CUB, by size and
# type.

# %% setup
from dataclasses import replace

import numpy as np
from cudatut.book.primitives.scan import reference
from cudatut.book.primitives.scan.scans import SHAPES, WIDE, Scan, fastest
from cudatut.book.rivals import cub
from cudatut.book.rivals.torch_rival import rival

import cudatut as ct

many = 268_435_456
rounds = 40
host = ct.rng(0).standard_normal(many, dtype="float32")
x, out = ct.to_device(host), ct.empty(many, "float32")

# %% [markdown]
# Ragged lengths of each type, with few and with many tiles for each block; and
# one length again and again.

# %% check
TYPES = ("int32", "float32", "int64", "float64")
lengths = (100_003, 1_111_111, 9_000_001)


def check(run, values, name, exclusive=False):
    expected = reference.sums(values, exclusive)
    result = ct.empty(values.size, values.dtype)
    ct.poison(result)
    if ct.tool.running():  # initcheck does not see what the copy engine writes
        result = ct.to_device(np.zeros_like(values))
    run(ct.to_device(values), result)
    far = reference.most(values)
    ct.check(result, expected, name=name, rtol=0, atol=far)


for dtype in TYPES:
    for m in (*ct.RAGGED, *lengths):
        values = (100 * host[:m]).astype(dtype)
        for exclusive in (False, True):
            run = Scan("ahead", m, dtype, exclusive)
            for launch in ("first", "second"):
                check(run, values, f"{dtype}, n={m}, {launch}", exclusive)
        if m <= 4096:
            check(Scan("cluster", m, dtype), values, f"cluster, n={m}")

# %% check-again
# A block goes round its ring of buffers again and again.
longer = 20_000_003
repeats = 50
values = (100 * host[:longer]).astype("int32")
data, result = ct.to_device(values), ct.empty(longer, "int32")
run = Scan("ahead", longer, "int32")
expected = np.cumsum(values, dtype="int32")
wrong = 0
for _ in range(repeats):
    run(data, result)
    wrong += not np.array_equal(result.get(), expected)
ct.check([wrong], [0], name=f"wrong of {repeats} launches", rtol=0)

# %% [markdown]
# 2^31 + 7 elements. The difference of neighboring sums is the element.

# %% huge
huge = 2_147_483_655
PART = 1 << 26
block = (100 * host[: min(PART, many)]).astype("int32")
data, result = ct.empty(huge, "int32"), ct.empty(huge, "int32")
for begin in range(0, huge, block.size):
    end = min(huge, begin + block.size)
    data[begin:end].set(block[: end - begin])
ct.poison(result)
fastest(huge, "int32")(data, result)
own = np.cumsum(block, dtype="int32")  # wraps around, as the kernel does
before = np.int32(0)
for begin in range(0, huge, block.size):
    end = min(huge, begin + block.size)
    if begin // block.size % 8 == 0:  # what a tile lacks, all behind it lack
        with np.errstate(over="ignore"):
            expected = own[: end - begin] + before
        ct.check(result[begin:end], expected, name=f"from {begin}", rtol=0)
    with np.errstate(over="ignore"):
        before = before + own[-1]
del data, result

# %% [markdown]
# By size: with a tile for each SM all tiles run at once, and from 8 MB on the
# scan runs ahead; between them the copy engine brings tiles.

# %% sizes
exponents = (10, 12, 14, 16, 18, 20, 22, 24, 26, 28)
by_size = {}
for e in exponents:
    n = 2**e
    a, b, own = x[:n], out[:n], fastest(n)
    by_size[e] = ct.bench(
        {
            "ours": lambda own=own, a=a, b=b: own(a, b),
            "CUB": cub.contestant("scan", "float32_InclusiveSum", a, b, n),
            "PyTorch": rival(
                lambda torch, s, t: lambda: torch.cumsum(s, 0, out=t), a, b
            ),
        },
        bytes=8 * n,
        name=f"scan of 2^{e} float32",
        rounds=rounds,
    )

# %% by-size
limit = ct.limits.bandwidth()
if not ct.tool.running():
    ct.series(
        "scan, by size",
        x=("elements", ""),
        y=("read and written", "GB/s"),
        lines={
            name: [(2**e, one[name].value) for e, one in by_size.items()]
            for name in ("ours", "CUB", "PyTorch")
        },
        limit=limit,
    )
    ct.table(
        "CUB's time / ours",
        {
            f"2^{e}": {
                "ours": one["ours"].median_us,
                "CUB": one["CUB"].median_us,
                "CUB / ours": one.ratio("ours", "CUB").median,
            }
            for e, one in by_size.items()
        },
        corner="elements",
        units={"ours": "us", "CUB": "us", "CUB / ours": "×"},
    )

# %% [markdown]
# Each of the scans in one launch, by size; and sums that run ahead and are
# written by the copy engine.

# %% kinds
KINDS = ("look_back", "in_order", "bulk", "ahead")
between = (20, 22, 24, 26, 28)
by_kind = {}
for e in between:
    n = 2**e
    a, b = x[:n], out[:n]
    scans = {kind: Scan(kind, n) for kind in KINDS}
    stores = replace(SHAPES["ahead"], more=(("LOOKERS", 3), ("BULK_STORES", 1)))
    scans["the engine stores"] = Scan("ahead", n, shape=stores)
    by_kind[e] = ct.bench(
        {
            kind: lambda scan=scan, a=a, b=b: scan(a, b)
            for kind, scan in scans.items()
        }
        | {"CUB": cub.contestant("scan", "float32_InclusiveSum", a, b, n)},
        bytes=8 * n,
        name=f"scan of 2^{e} float32",
        rounds=rounds,
    )

# %% by-kind
if not ct.tool.running():
    ct.table(
        "CUB's time / that of each scan",
        {
            f"2^{e}": {
                kind: one.ratio(kind, "CUB").median
                for kind in (*KINDS, "the engine stores")
            }
            for e, one in by_kind.items()
        },
        corner="elements",
        units=dict.fromkeys((*KINDS, "the engine stores"), "×"),
    )

# %% types
by_type = {}
for dtype in ("int32", "int64"):
    n = many * 4 // np.dtype(dtype).itemsize
    a = ct.to_device((100 * host[:n]).astype(dtype))
    b, own = ct.empty(n, dtype), fastest(n, dtype)
    by_type[dtype] = ct.bench(
        {
            "ours": lambda own=own, a=a, b=b: own(a, b),
            "CUB": cub.contestant("scan", f"{dtype}_InclusiveSum", a, b, n),
        },
        bytes=8 * many,
        name=f"{n} {dtype}",
        rounds=rounds,
    )
del a, b

# %% [markdown]
# Sums of 8 bytes have words of 16 bytes, and twice the shuffles. What could make
# their scan faster; what it should gain was written down before it ran.


# %% wide
def ahead8(*more, **changes):
    return replace(WIDE["ahead"], more=more, **changes)


STORES, THREE, FIVE = ("BULK_STORES", 1), ("LOOKERS", 3), ("LOOKERS", 5)
SMALL = {"vectors": 4, "buffers": 14}
WIDER = {  # and how many times as fast as the first
    "three warps look, the engine stores": (ahead8(THREE, STORES), None),
    # Sums of 4 bytes gain by it.
    "three warps look": (ahead8(THREE), 1.05),
    # Words of 16 bytes take a warp longer to look at.
    "five warps look, the engine stores": (ahead8(FIVE, STORES), 1.02),
    # A smaller tile is told earlier.
    "five warps look, the engine stores, tiles of 16 KB": (
        ahead8(FIVE, STORES, **SMALL),
        1.07,
    ),
}
n = many // 2
y = ct.to_device((100 * host[:n]).astype("int64"))
sums = ct.to_device(np.zeros(n, "int64"))
longs = {
    name: Scan("ahead", n, "int64", shape=shape)
    for name, (shape, _) in WIDER.items()
}
expected = np.cumsum(y.get())
for name, run in longs.items():
    ct.poison(sums)
    run(y, sums)
    ct.check(sums, expected, name=name, rtol=0)

# %% of-longs
of_longs = ct.bench(
    {name: lambda run=run: run(y, sums) for name, run in longs.items()}
    | {"CUB": cub.contestant("scan", "int64_InclusiveSum", y, sums, n)},
    bytes=8 * many,
    name=f"{n} int64",
    rounds=rounds,
)
del expected

# %% by-wide
if not ct.tool.running():
    base = next(iter(WIDER))
    ct.table(
        "sums of 8 bytes, predicted and measured",
        {
            name: {
                "predicted": predicted,
                "measured": of_longs.ratio(name, base).median,
                "CUB / ours": of_longs.ratio(name, "CUB").median,
            }
            for name, (_, predicted) in WIDER.items()
        },
        corner="variant",
        units={"predicted": "×", "measured": "×", "CUB / ours": "×"},
    )

# %% segments
SHARE = 0.01
chance = ct.rng(1).random(many, dtype="float32")
heads = (chance < SHARE).astype("uint8")
keys = ct.to_device(np.cumsum(heads, dtype="int32"))
flags, segmented = ct.to_device(heads), Scan("segments", many)
by_key = ct.bench(
    {
        "ours, heads": lambda: segmented(x, out, flags),
        "CUB, keys": cub.contestant(
            "scan", "float32_InclusiveSumByKey", keys, x, out, many
        ),
    },
    name=f"{many} float32, segmented",
    rounds=rounds,
)

# %% goals
if not ct.tool.running():
    ct.goals(
        "as fast as CUB, and faster where the array is short",
        {
            f"2^{e} float32": one.goal("ours", "CUB", 1.2 if e <= 20 else 1.0)
            for e, one in by_size.items()
        }
        | {
            f"{dtype}, 1 GiB": one.goal("ours", "CUB", 1.0)
            for dtype, one in by_type.items()
        }
        | {"segmented": by_key.goal("ours, heads", "CUB, keys", 1.0)},
    )
