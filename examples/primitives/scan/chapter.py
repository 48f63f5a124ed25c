# ---
# jupyter:
#   cudatut:
#     title: {en: "Scan", zh: "前缀和"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [1_111_111, 20_011]
#       many: [268_435_456, 65_536]
#       lengths: [[100_003, 1_111_111], [20_011]]
#       shares: [[0.0, 0.0005, 0.05, 0.6], [0.0005]]
#       times: [20, 2]
#       fewer: [16_777_216, 65_536]
# ---

# %% [markdown]
# Each element becomes the sum of all elements up to it. First the whole
# program: one launch, whose blocks look back.

# %% program
import numpy as np

import cudatut as ct

n = 1_111_111
tile = 256 * 8 * 4  # elements of a block: a thread has 8 vectors of 4
tiles = ct.cdiv(n, tile)
scan = ct.Kernel(
    "primitives/scan/one_pass.cu",
    "scan_look_back",
    defines={"ELEMENT": "int", "BLOCK": 256, "VECTORS": 8},
)
x_host = ct.rng(0).integers(-9, 10, n).astype("int32")
x, out = ct.to_device(x_host), ct.empty(n, "int32")
state = ct.to_device(np.zeros(16 + tiles, "uint64"))  # a word for each tile
scan(x, out, n, state, grid=tiles, block=256)

print("elements:", x_host[:8])
print("scan:    ", out[:8].get())
print("last one:", out[n - 1 :].get()[0])
ct.check(out, np.cumsum(x_host), name="scan", rtol=0)

# %% [markdown]
# What the bytes need, at the rate of a copy.

# %% predict
many = 268_435_456
limit = ct.limits.bandwidth()
BYTES = {  # of an element: read and written by all launches together
    "a tile each, then add": 16,
    "three launches": 12,
    "one launch": 8,
}
ct.table(
    f"the bytes of {many} floats",
    {
        name: {
            "bytes of an element": size,
            "time of the bytes": many * size / limit / 1e3,
        }
        for name, size in BYTES.items()
    },
    corner="scan",
    units={"time of the bytes": "us"},
)

# %% [markdown]
# Right before fast: every kernel that this GPU can run, ragged lengths, whole
# numbers and floats, inclusive and exclusive, three launches of each.

# %% check
from cudatut.book.primitives.scan.reference import most, sums
from cudatut.book.primitives.scan.scans import Scan

EVERYWHERE = ("tree", "warps", "passes", "look_back", "in_order", "at_once")
lengths = (100_003, 1_111_111)


def numbers(m, dtype):
    chance = ct.rng(m)
    if dtype.startswith("float"):
        return chance.standard_normal(m).astype(dtype)
    return chance.integers(-(1 << 30), 1 << 30, m).astype(dtype)


def check(kind, m, dtype, exclusive):
    values = numbers(m, dtype)
    try:
        run = Scan(kind, m, dtype, exclusive)
    except ValueError:  # too long for one wave of blocks
        return
    data, result = ct.to_device(values), ct.empty(m, dtype)
    for launch in range(3):
        ct.poison(result)
        run(data, result)
        name = f"{kind}, {dtype}, n={m}, launch {launch}"
        expected = sums(values, exclusive)
        ct.check(result, expected, name=name, rtol=0, atol=most(values))


for kind in EVERYWHERE:
    for m in (*ct.RAGGED, *lengths):
        check(kind, m, "int32", exclusive=False)
    for m in lengths:
        check(kind, m, "float32", exclusive=True)
        check(kind, m, "int64", exclusive=True)

# %% [markdown]
# Segments: many, few and no heads. With few, some tiles have none.

# %% check-segments
shares = (0.0, 0.0005, 0.05, 0.6)
for m in (*ct.RAGGED, *lengths):
    values = numbers(m, "int32")
    for share in shares:
        heads = ct.rng(m + 1).random(m) < share
        total = np.cumsum(values, dtype="int64")
        place = np.where(heads, np.arange(m), 0)
        first = np.maximum.accumulate(place) if m else place
        before = np.where(first > 0, total[first - 1], 0)
        run, result = Scan("segments", m, "int32"), ct.empty(m, "int32")
        ct.poison(result)
        run(ct.to_device(values), result, ct.to_device(heads.astype("uint8")))
        expected = (total - before).astype("int32")
        ct.check(result, expected, name=f"heads {share}, n={m}", rtol=0)

# %% [markdown]
# 2^28 floats: the steps of this chapter, CUB, and PyTorch.

# %% bench
from cudatut.book.rivals import cub
from cudatut.book.rivals.torch_rival import rival

host = ct.rng(1).standard_normal(many, dtype="float32")
a, b = ct.to_device(host), ct.empty(many, "float32")
steps = {
    kind: Scan(kind, many) for kind in ("tree", "warps", "passes", "look_back")
}
bench = ct.bench(
    {
        "tree": lambda: steps["tree"](a, b),
        "warps": lambda: steps["warps"](a, b),
        "three launches": lambda: steps["passes"](a, b),
        "look-back": lambda: steps["look_back"](a, b),
        "CUB": cub.contestant("scan", "float32_InclusiveSum", a, b, many),
        "PyTorch": rival(
            lambda torch, s, t: lambda: torch.cumsum(s, 0, out=t), a, b
        ),
    },
    bytes=8 * many,
    name=f"scan of {many} float32",
    rounds=15,
)

# %% compare
if not ct.tool.running():
    ct.facts(
        "the steps, beside each other",
        {
            f"{slow} / {fast}": (
                bench[slow].median_us / bench[fast].median_us,
                "×",
            )
            for slow, fast in (
                ("tree", "look-back"),
                ("warps", "look-back"),
                ("three launches", "look-back"),
            )
        },
    )

# %% [markdown]
# Twenty scans of the same floats: how many different results?

# %% bits
times = 20
fewer = 16_777_216


def results(kind, dtype):
    values = host[:fewer]
    if dtype == "int32":
        values = (1000 * values).astype(dtype)
    data, result = ct.to_device(values), ct.empty(fewer, dtype)
    run, seen = Scan(kind, fewer, dtype), set()
    for _ in range(times):
        run(data, result)
        seen.add(result.get()[::1000].tobytes())  # some of each tile
    ct.check(result, sums(values), name=kind, rtol=0, atol=most(values))
    return len(seen)


ct.facts(
    f"different results of {times} scans",
    {
        f"{kind}, {dtype}": results(kind, dtype)
        for kind, dtype in (
            ("look_back", "int32"),
            ("look_back", "float32"),
            ("in_order", "float32"),
        )
    },
)
