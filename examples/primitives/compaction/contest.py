# ---
# jupyter:
#   cudatut:
#     title: {en: "Compaction and partition: the contest", zh: "压缩与划分：比赛"}
#     requires: sm_90
#     timeout_s: 180
#     sizes:
#       many: [268_435_456, 65_536]
#       lengths: [[100_003, 1_111_111, 5_000_003], [20_011]]
#       exponents: [[10, 12, 14, 16, 18, 20, 22, 24, 26], [10, 12]]
#       rounds: [40, 1]
# ---

# %% [markdown]
# The kernel whose blocks stay and carry along what precedes their tiles, beside
# CUB and the kernel that looks back.

# %% setup
import numpy as np
from cudatut.book.primitives.compaction.compactions import Compaction, fastest
from cudatut.book.rivals import cub
from cudatut.book.rivals.torch_rival import rival

import cudatut as ct

many = 268_435_456
rounds = 40
limit = ct.limits.bandwidth()
host = ct.rng(0).standard_normal(many, dtype="float32")
# A number that must be added so that this share is above 0.
SHIFTS = {"1 %": -2.3263, "10 %": -1.2816, "50 %": 0.0, "99 %": 2.3263}
x, out = ct.empty(many, "float32"), ct.empty(many, "float32")
count = ct.empty(1, "int64")
mask = ct.rng(1).random(many, dtype="float32") < 0.5
flags = ct.to_device(mask.astype("uint8"))

# %% [markdown]
# Ragged lengths, with some and with many tiles for each block.

# %% check
lengths = (100_003, 1_111_111, 5_000_003)
for m in (*ct.RAGGED, *lengths):
    own, of_own = host[:m] + np.float32(0), mask[:m]
    a, f = ct.to_device(own), ct.to_device(of_own.astype("uint8"))
    for partition in (False, True):
        for given in (False, True):
            run = Compaction(
                m, kind="carried", flags=given, partition=partition
            )
            target = ct.empty(m, "float32")
            ct.poison(target)
            run(a, target, count, f if given else None)
            stays = of_own if given else own > 0
            expected = own[stays]
            if partition:
                expected = np.concatenate([expected, own[~stays][::-1]])
            name = "flags" if given else "condition"
            ct.check(count, [stays.sum()], name=f"{name}: count", rtol=0)
            if expected.size:
                got = target[: expected.size]
                ct.check(got, expected, name=f"{name}, n={m}", rtol=0, atol=0)

# %% [markdown]
# What the bytes need at the measured limit: an element is read, and written if
# it stays.


# %% predict
def moved(share, flags=0):
    return many * (4 + flags + 4 * share)


ct.table(
    f"the bytes of {many} floats",
    {
        name: {"bytes": each, "time of the bytes": many * each / limit / 1e3}
        for name, each in {
            "1 % stay": 4.04,
            "50 % stay": 6.0,
            "99 % stay": 7.96,
            "flags": 7.0,
            "partition": 8.0,
        }.items()
    },
    corner="compaction",
    units={"time of the bytes": "us"},
)

# %% [markdown]
# By the share that stays.

# %% shares
looks = Compaction(many)
engine = Compaction(many, kind="bulk")
carries = fastest(many)
by_share = {}
for name, shift in SHIFTS.items():
    x.set(host + np.float32(shift))
    kept = int((host + np.float32(shift) > 0).sum())
    by_share[name] = ct.bench(
        {
            "looks back": lambda: looks(x, out, count),
            "copy engine": lambda: engine(x, out, count),
            "carries": lambda: carries(x, out, count),
            "CUB": cub.contestant(
                "select", "float32_SelectIf", x, out, count, many
            ),
        },
        bytes=4 * (many + kept),
        name=f"{many} floats, {name} stay",
        rounds=rounds,
    )

# %% [markdown]
# By flags, and with the rest behind them.

# %% others
x.set(host)
by_flags, parts = fastest(many, flags=True), fastest(many, partition=True)
flagged = ct.bench(
    {
        "carries": lambda: by_flags(x, out, count, flags),
        "CUB": cub.contestant(
            "select", "float32_SelectFlagged", x, flags, out, count, many
        ),
    },
    bytes=moved(0.5, flags=1),
    name=f"{many} floats, by flags",
    rounds=rounds,
)
partition = ct.bench(
    {
        "carries": lambda: parts(x, out, count),
        "CUB": cub.contestant(
            "select", "float32_PartitionIf", x, out, count, many
        ),
    },
    bytes=8 * many,
    name=f"{many} floats, partition",
    rounds=rounds,
)

# %% [markdown]
# By size, half of the elements stay. Up to 2^21 a block for each tile looks
# back; beyond, blocks stay.

# %% sizes
exponents = (10, 12, 14, 16, 18, 20, 22, 24, 26)
by_size = {}
for e in exponents:
    n = 2**e
    a, b = x[:n], out[:n]
    own = fastest(n)
    by_size[e] = ct.bench(
        {
            "ours": lambda own=own, a=a, b=b: own(a, b, count),
            "CUB": cub.contestant("select", "float32_SelectIf", a, b, count, n),
            "PyTorch": rival(
                lambda torch, s: lambda: torch.masked_select(s, s > 0), a
            ),
        },
        bytes=6 * n,
        name=f"2^{e} float32, half stay",
        rounds=rounds,
    )

# %% by-size
if not ct.tool.running():
    ct.series(
        "compaction, by size",
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

# %% goals
if not ct.tool.running():
    large = {f"{name} stay": one for name, one in by_share.items()}
    large |= {"by flags": flagged, "partition": partition}
    ct.goals(
        "as fast as CUB",
        {name: one.goal("carries", "CUB", 1.0) for name, one in large.items()}
        | {
            f"2^{e} elements": by_size[e].goal("ours", "CUB", 1.0)
            for e in (16, 20, 24)
        },
    )
