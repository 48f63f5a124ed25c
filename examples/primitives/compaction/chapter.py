# ---
# jupyter:
#   cudatut:
#     title: {en: "Compaction and partition", zh: "压缩与划分"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       n: [1_111_111, 20_011]
#       many: [268_435_456, 65_536]
#       fewer: [16_777_216, 65_536]
#       lengths: [[100_003, 1_111_111], [20_011]]
# ---

# %% [markdown]
# Keep the elements that fulfill a condition, in their order. First the whole
# program: one launch, whose blocks look back as those of the scan do.

# %% program
import numpy as np

import cudatut as ct

n = 1_111_111
tile = 256 * 8 * 4  # elements of a block: a thread has 8 vectors of 4
tiles = ct.cdiv(n, tile)
compact = ct.Kernel(
    "primitives/compaction/compact.cu",
    "compact",
    defines={"BLOCK": 256, "VECTORS": 8, "KEEP(x)": "((x) > 0)"},
)
x_host = ct.rng(0).standard_normal(n, dtype="float32")
x, out = ct.to_device(x_host), ct.empty(n, "float32")
flags = np.uint64(0)  # none: the condition decides
count = ct.empty(1, "int64")
state = ct.to_device(np.zeros(16 + tiles, "uint64"))  # for the look-back
compact(
    x, flags, out, count, n, state,
    grid=tiles, block=256, shared=4 * tile,
)  # fmt: skip

kept = int(count.get()[0])
print(f"{kept} of {n} elements stay")
print("first:", out[:4].get())
ct.check(out[:kept], x_host[x_host > 0], name="what stays", rtol=0, atol=0)

# %% [markdown]
# What the bytes need, at the measured limit, for three shares that stay.

# %% predict
many = 268_435_456
limit = ct.limits.bandwidth()


def bytes_of(share, reads=1):
    """Each element is read so often, and those that stay are written."""
    return 4 * many * (reads + share)


rows = {}
for share in (0.01, 0.5, 0.99):
    one = bytes_of(share) / limit / 1e3
    three = bytes_of(share, reads=2) / limit / 1e3
    rows[f"{100 * share:.0f} %"] = {
        "one launch": one,
        "three launches": three,
        "three / one": three / one,
    }
ct.table(
    f"the bytes of {many} floats",
    rows,
    corner="stay",
    units={"one launch": "us", "three launches": "us", "three / one": "×"},
)

# %% [markdown]
# Right before fast: ragged lengths, all, some or none that stay, NaN, by a
# condition and by flags, with and without the rest.

# %% check
from cudatut.book.primitives.compaction.compactions import (
    Atomic,
    Compaction,
    ThreeLaunches,
)


def numbers(m, dtype, share, seed=0):
    """Data of which so many are above 0; and which these are."""
    chance = ct.rng(seed)
    size = chance.uniform(1, 1e6, m)
    stays = chance.random(m) < share
    values = np.where(stays, size, -size).astype(dtype)
    if dtype.startswith("float"):
        values[~stays & (size < 1e5)] = np.nan  # above nothing
    return values, stays


def words(values):
    """Bits, since NaN is not equal to itself."""
    return values.view(f"uint{8 * values.itemsize}")


def check(m, dtype, share, **options):
    values, stays = numbers(m, dtype, share)
    target, number = ct.empty(m, dtype), ct.empty(1, "int64")
    ct.poison(target)
    run = Compaction(m, dtype, **options)
    mask = ct.to_device(stays.astype("uint8")) if run.flags else None
    run(ct.to_device(values), target, number, mask)
    expected = values[stays]
    if run.partition:  # behind them the rest, last one first
        expected = np.concatenate([expected, values[~stays][::-1]])
    name = f"{dtype}, n={m}"
    ct.check(number, [stays.sum()], name=f"{name}: count", rtol=0)
    if expected.size:
        got = words(target[: expected.size].get())
        ct.check(got, words(expected), name=name, rtol=0, atol=0)


lengths = (100_003, 1_111_111)
for m in (*ct.RAGGED, *lengths):
    for share in (0, 0.02, 0.5, 1):
        check(m, "float32", share)
for m in lengths:
    check(m, "float32", 0.5, partition=True)
    check(m, "float32", 0.5, flags=True)
    check(m, "int64", 0.5, flags=True, partition=True)

# %% [markdown]
# 2^28 floats, of which half stay: the steps of this chapter, CUB, and PyTorch.

# %% bench
from cudatut.book.rivals import cub
from cudatut.book.rivals.torch_rival import rival

host = ct.rng(1).standard_normal(many, dtype="float32")
half = int((host > 0).sum())
a, b, number = (
    ct.to_device(host),
    ct.empty(many, "float32"),
    ct.empty(1, "int64"),
)
total = ct.to_device(np.zeros(1, "uint64"))
atomic, three, one = Atomic(many), ThreeLaunches(many), Compaction(many)


def by_atomics():
    total.fill(0)
    atomic(a, b, total)


bench = ct.bench(
    {
        "atomic": by_atomics,
        "three launches": lambda: three(a, b, number),
        "one launch": lambda: one(a, b, number),
        "CUB": cub.contestant("select", "float32_SelectIf", a, b, number, many),
        "PyTorch": rival(
            lambda torch, s: lambda: torch.masked_select(s, s > 0), a
        ),
    },
    bytes=4 * (many + half),
    name=f"{many} floats, half stay",
    rounds=15,
)

# %% compare
if not ct.tool.running():
    us = {row.name: row.median_us for row in bench.rows}
    ct.facts(
        "one launch, beside the others",
        {
            "three launches / one launch": (
                us["three launches"] / us["one launch"],
                "×",
            ),
            "atomic / one launch": (us["atomic"] / us["one launch"], "×"),
            "time of the bytes / one launch": (
                bytes_of(half / many) / limit / 1e3 / us["one launch"],
                "×",
            ),
        },
    )

# %% [markdown]
# The atomic kernel finds the right number of elements. In which order?

# %% order
fewer = 16_777_216
by_atomics = Atomic(fewer)
expected = host[:fewer][host[:fewer] > 0]
total.fill(0)
by_atomics(a[:fewer], b[:fewer], total)
found = b[: expected.size].get()
ct.check(total, [expected.size], name="count, by atomics", rtol=0)
ct.check(
    np.sort(found), np.sort(expected), name="sorted, by atomics", rtol=0, atol=0
)
in_order = Compaction(fewer)
in_order(a[:fewer], b[:fewer], number)
there = b[: expected.size].get()
ct.facts(
    f"of {fewer} elements",
    {
        "at their place, by atomics": (
            100 * float((found == expected).mean()),
            "%",
        ),
        "at their place, one launch": (
            100 * float((there == expected).mean()),
            "%",
        ),
    },
)
