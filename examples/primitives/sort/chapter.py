# ---
# jupyter:
#   cudatut:
#     title: {en: "Radix sort", zh: "基数排序"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       n: [1_111_111, 20_011]
#       many: [268_435_456, 65_536, 16_777_216]
#       rounds: [10, 1]
#       lengths: [[100_003, 1_111_111], [20_011]]
# ---

# %% [markdown]
# Sort by one digit after the other, from the lowest on. First the whole
# program: one launch counts all digits, and each digit takes one sweep.

# %% program
import numpy as np

import cudatut as ct

n = 1_111_111
threads, items = 256, 32  # of a block; keys of a thread
tile = threads * items
tiles = ct.cdiv(n, tile)
count, first, sweep = (
    ct.Kernel(
        "primitives/sort/onesweep.cu",
        name,
        defines={"THREADS": 256, "ITEMS": 32},
    )
    for name in ("count_digits", "first_places", "sweep")
)
host = ct.rng(0).integers(0, 1 << 32, n, dtype="uint32")
keys = ct.to_device(host)
other, out = ct.empty(n, "uint32"), ct.empty(n, "uint32")
counts = ct.to_device(np.zeros((4, 256), "uint32"))
places = ct.empty((4, 256), "uint32")
states = [ct.to_device(np.zeros((tiles, 256), "uint32")) for _ in range(2)]
tickets = [ct.to_device(np.zeros(1, "uint32")) for _ in range(2)]

blocks, room = ct.device().sm_count, 4 * 4 * 128 * 32
count(keys, np.uint32(n), counts, grid=blocks, block=1024, shared=room)
first(counts, places, grid=4, block=threads)
room = 4 * tile + 4 * 256 + 4 * 256 * (threads // 32)
for step in range(4):
    here = (keys, other, out, other)[step]
    there = (other, out, other, out)[step]
    now, then = step % 2, 1 - step % 2
    sweep(
        here, there, here, there, np.uint32(n), 8 * step, places[step],
        states[now], states[then], tickets[now], tickets[then],
        grid=tiles, block=threads, shared=room,
    )  # fmt: skip

ct.check(out, np.sort(host), rtol=0)
print("first keys:", out[:3].get())

# %% [markdown]
# The bytes of each way, and how many sectors a warp writes: the host can follow
# the keys of one tile.

# %% predict
limit = ct.limits.bandwidth()
many = 268_435_456
BYTES = {  # read and written for each key of 4 bytes
    "three launches for a digit": 4 * (4 + 4 + 4),
    "one sweep for a digit": 4 + 4 * (4 + 4),
}
ct.table(
    f"the bytes of {many} keys",
    {
        name: {"bytes of a key": each, "time": each * many / limit / 1e3}
        for name, each in BYTES.items()
    },
    corner="way",
    units={"time": "us"},
)


def sectors(places):
    """Sectors of 32 bytes that a warp's store of 32 keys touches, on average."""
    places = places[: places.size // 32 * 32].reshape(-1, 32) // 8
    return np.mean([np.unique(warp).size for warp in places])


some = ct.rng(2).integers(0, 256, 100 * tile)  # digits
goes = np.argsort(np.argsort(some, kind="stable"), kind="stable")
digit, there = some[:tile], goes[:tile]
in_order = there[np.argsort(digit, kind="stable")]
ct.facts(
    "a store of 32 keys",
    {
        "keys of a digit in a tile": tile / 256,
        "sectors, each key on its own": sectors(there),
        "sectors, in order": sectors(in_order),
    },
)

# %% [markdown]
# Right before fast: ragged lengths; every type, NaN and zeros of both signs
# included; pairs, whose values tell whether the sort is stable.

# %% check
from cudatut.book.primitives.sort.sort import (
    Direct,
    OneTile,
    Passes,
    Sweep,
    compile_ahead,
)

OTHERS = ("int32", "float32", "uint64", "int64", "float64")
compile_ahead(  # side by side
    [way("uint32", p) for way in (Direct, Passes, Sweep) for p in (False, True)]
    + [Sweep(dtype, pairs=True) for dtype in OTHERS]
)


def numbers(m, dtype, few=False):
    """Random keys of any bits; few: with many that are equal."""
    kind = np.dtype(dtype)
    chance = ct.rng(m)
    if few:
        whole = np.round(2 * chance.standard_normal(m))  # -0.0, too
        return (whole if kind.kind == "f" else whole.astype("int64")).astype(
            dtype
        )
    return chance.integers(0, 256, m * kind.itemsize, dtype="uint8").view(kind)


def check(sort, host, name):
    m, word = host.size, f"uint{8 * host.itemsize}"
    keys, out = ct.to_device(host), ct.empty(m, host.dtype)
    ct.poison(out)
    order = np.argsort(host, kind="stable")
    if sort.pairs:
        values = ct.to_device(np.arange(m, dtype="uint32"))
        moved = ct.empty(m, "uint32")
        sort(keys, out, values, moved)
        ct.check(moved, order, name=f"{name}: values", rtol=0)
    else:
        sort(keys, out)
    bits = host[order].view(word)
    ct.check(out.get().view(word), bits, name=name, rtol=0)


lengths = (100_003, 1_111_111)
for way in (Direct, Passes, Sweep):
    for pairs in (False, True):
        for m in (*ct.RAGGED, *lengths):
            name = f"{way.__name__}, n={m}"
            check(way("uint32", pairs), numbers(m, "uint32"), name)
for dtype in ("uint32", *OTHERS):
    for pairs in (False, True):
        alone = OneTile(dtype, pairs)
        for m in (*(m for m in ct.RAGGED if m < alone.most), alone.most):
            check(alone, numbers(m, dtype), f"one block, {dtype}, n={m}")
for dtype in OTHERS:
    for m in lengths:
        sort = Sweep(dtype, pairs=True)
        check(sort, numbers(m, dtype), f"{dtype}, n={m}")
        check(sort, numbers(m, dtype, few=True), f"{dtype}, n={m}, few")

# %% [markdown]
# 2^28 random keys: each way of this chapter, and CUB.

# %% bench
from cudatut.book.primitives.sort.data import Keys
from cudatut.book.rivals import cub

rounds = 10
random = Keys(many).keys
ordered = ct.empty(many, "uint32")
ways = {"direct": Direct(), "staged": Passes(), "sweep": Sweep()}
bench = ct.bench(
    {name: (lambda s=s: s(random, ordered)) for name, s in ways.items()}
    | {"CUB": cub.contestant("sort", "uint32_SortKeys", random, ordered, many)},
    bytes=BYTES["one sweep for a digit"] * many,
    name=f"{many} random keys",
    rounds=rounds,
    limit=False,
)

# %% steps
# Each step of the sweeps by itself. In this order, each clears the states that
# the next one needs.
sort = ways["sweep"]
sort(random, ordered)
parts = {"count": lambda: sort.count(random)}
for step, *arrays in sort.steps(random, ordered, None, None):
    parts[f"sweep {step}"] = lambda step=step, arrays=arrays: sort.one_digit(
        step, *arrays
    )
taken = {name: [] for name in parts}
for _ in range(5):
    for name, part in parts.items():
        taken[name].append(ct.time_once(part, flushes=4))
ct.facts(
    "the steps of one sort, medians",
    {name: (float(np.median(us)), "us") for name, us in taken.items()},
)

# %% [markdown]
# What if equal digits come in any order? Each pass counts right, and the result
# is no sort.

# %% any-order
careless = Sweep("uint32", plan={"MATCH": 3})
fewer = host.size
careless(keys, out)
got = out.get()
ct.check(np.sort(got), np.sort(host), name="the same keys", rtol=0)
ct.facts(
    f"equal digits in any order, {fewer} keys",
    {
        "keys larger than the next": int((got[1:] < got[:-1]).sum()),
        "of them by the highest digit": int(
            (got[1:] >> 24 < got[:-1] >> 24).sum()
        ),
    },
)
