# ---
# jupyter:
#   cudatut:
#     title: {en: "Radix sort: the contest", zh: "基数排序：比赛"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       many: [268_435_456, 65_536]
#       fewer: [16_777_216, 16_384]
#       rounds: [20, 1]
#       exponents: [[10, 12, 13, 14, 16, 18, 20, 22, 24], [10, 12]]
# ---

# %% [markdown]
# Our sorts beside CUB: keys and pairs, other types, and other sizes.

# %% setup
import numpy as np
from cudatut.book.primitives.sort.data import Keys
from cudatut.book.primitives.sort.sort import Sweep, compile_ahead, fastest
from cudatut.book.rivals import cub
from cudatut.book.rivals.torch_rival import rival

import cudatut as ct

many = 268_435_456
rounds = 20
compile_ahead(  # side by side
    [Sweep("uint32", pairs=True)]
    + [Sweep(name) for name in ("uint32", "int32", "float32", "uint64")]
)
data = Keys(many)
host, keys, out = data.host, data.keys, ct.empty(many, "uint32")


# %% keys
theirs = ct.empty(many, "uint32")
sort = Sweep("uint32")
contest = {
    "sweep": lambda: sort(keys, out),
    "CUB": cub.contestant("sort", "uint32_SortKeys", keys, theirs, many),
    "PyTorch": rival(
        lambda torch, k: lambda: torch.sort(k.view(torch.int32)), keys
    ),
}
sort(keys, out)
ct.check(out, data.order(), name=f"{many} keys", rtol=0)
by_keys = ct.bench(
    contest, bytes=36 * many, name=f"{many} keys", rounds=rounds, limit=False
)

# %% pairs
values = ct.to_device(np.arange(many, dtype="uint32"))
moved, their_values = ct.empty(many, "uint32"), ct.empty(many, "uint32")
sort = Sweep("uint32", pairs=True)
contest = {
    "sweep": lambda: sort(keys, out, values, moved),
    "CUB": cub.contestant(
        "sort", "uint32_SortPairs", keys, theirs, values, their_values, many
    ),
}
sort(keys, out, values, moved)
ct.check(out, data.order(), name=f"{many} pairs: keys", rtol=0)
ct.check(moved, data.where(), name=f"{many} pairs: values", rtol=0)
by_pairs = ct.bench(
    contest, bytes=68 * many, name=f"{many} pairs", rounds=rounds, limit=False
)


# %% types
def beside(values, rounds=rounds):
    """The sort of these values beside CUB's, checked."""
    name, word = str(values.dtype), f"uint{8 * values.itemsize}"
    own, result = ct.to_device(values), ct.empty(values.size, name)
    theirs, sort = ct.empty(values.size, name), fastest(values.size, name)
    sort(own, result)
    order = np.sort(values).view(word)
    ct.check(result.get().view(word), order, name=name, rtol=0)
    call = f"{name}_SortKeys"
    return ct.bench(
        {
            "ours": lambda: sort(own, result),
            "CUB": cub.contestant("sort", call, own, theirs, values.size),
        },
        bytes=values.nbytes * (1 + 2 * values.itemsize),
        name=f"{values.size} {name}",
        rounds=rounds,
        limit=False,
    )


fewer = 16_777_216
chance = ct.rng(1)
by_type = {
    "int32": beside(host[:fewer].view("int32")),
    "float32": beside(chance.standard_normal(fewer, dtype="float32")),
    "uint64": beside(chance.integers(0, 1 << 64, fewer // 2, dtype="uint64")),
}

# %% sizes
exponents = (10, 12, 13, 14, 16, 18, 20, 22, 24)
by_size = {e: beside(host[: 1 << e]) for e in exponents}

# %% by-size
if not ct.tool.running():
    ct.table(
        "random keys, by size",
        {
            f"2^{e}": {
                "ours": one["ours"].median_us,
                "CUB": one["CUB"].median_us,
                "CUB / ours": one.ratio("ours", "CUB").median,
            }
            for e, one in by_size.items()
        },
        corner="keys",
        units={"ours": "us", "CUB": "us", "CUB / ours": "×"},
    )

# %% goals
if not ct.tool.running():
    ct.goals(
        "as fast as CUB",
        {
            "2^28 keys": by_keys.goal("sweep", "CUB", 1.0),
            "2^28 pairs": by_pairs.goal("sweep", "CUB", 1.0),
        },
    )
    ct.facts(
        "keys each second",
        {
            "sweep": (many / by_keys["sweep"].median_us / 1e3, "10^9 keys/s"),
            "CUB": (many / by_keys["CUB"].median_us / 1e3, "10^9 keys/s"),
        },
    )
