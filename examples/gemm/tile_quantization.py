# ---
# jupyter:
#   cudatut:
#     title: {en: "Tile quantization: waves, split-K, stream-K", zh: "分块量化：波次、split-K 与 stream-K"}
#     requires: sm_80
#     timeout_s: 120
# ---

# %% [markdown]
# How many tiles a matrix has, what that does to the last wave, and two ways to cut the work elsewhere than at tiles.

# %% setup
import numpy as np
import sgemm

import cudatut as ct
from cudatut import tool

gpu = ct.device()
SMS = gpu.sm_count
# The largest tile of the final kernel's template: one block on an SM at a time.
TILE = sgemm.Config(128, 256, 16, 8, 16, 4, 1, rate=0.9, alone=0.9)
ROWS = 11  # rows of tiles; 12 columns then make 132 tiles, one for each SM of an H100
COLUMNS = (10, 11, 12, 13, 15, 18, 22, 24, 25)
if ct.size(1, 0) == 0:
    ROWS, COLUMNS = 2, (1, 2)
m, k = ct.size(ROWS * TILE.bm, 130), ct.size(2048, 40)


# %% predict
def waves(blocks, slots):
    """How often `slots` places are filled until all blocks have had one."""
    return ct.cdiv(blocks, slots)


def efficiency(blocks, slots):
    """Part of the places that are in use, over all waves."""
    return blocks / (waves(blocks, slots) * slots)


def tail(tiles):
    """(whole, splits): full waves by a block per tile, the tiles that are left by as many blocks each as fill one more."""
    rest = tiles % SMS
    return tiles - rest, max(1, SMS // rest) if rest else 1


def with_tail(tiles):
    """Efficiency if the tiles left over are split: their wave is that much shorter."""
    whole, splits = tail(tiles)
    return tiles / SMS / (whole // SMS + (tiles > whole) / splits)


tiles = [ROWS * c for c in COLUMNS]
ct.facts(
    "waves",
    {"SMs": SMS, "tile": f"{TILE.bm} x {TILE.bn}"}
    | {
        f"{t} tiles: {what}": value
        for t in tiles
        for what, value in (
            ("waves", waves(t, SMS)),
            ("efficiency", (100 * efficiency(t, SMS), "%")),
            ("splits of the rest", tail(t)[1]),
            ("efficiency, rest split", (100 * with_tail(t), "%")),
        )
    },
)

# %% stream
stream_k = ct.Kernel("gemm/stream_k.cu", "sgemm_stream_k<64,128,8,8,8,3>")
BM, BN, BK, THREADS = 64, 128, 8, 128
needs = stream_k.resources(THREADS)
ct.show(needs)
RESIDENT = needs.blocks_per_sm * SMS
partials = ct.empty(ct.size(RESIDENT, 8) * BM * BN, "float32")
flags = ct.empty(max(RESIDENT, 8), "uint32")
flags.fill(0)


def stream(a, b, c, blocks):
    """A callable: C = A B by `blocks` blocks; None: a block for each tile."""
    (rows, depth), columns = a.shape, b.shape[1]
    all_tiles = ct.cdiv(rows, BM) * ct.cdiv(columns, BN)
    # Never more blocks than steps (each needs a piece) nor, where they share tiles, than fit at a time.
    grid = min(blocks, all_tiles * ct.cdiv(depth, BK)) if blocks else all_tiles
    arguments = a, b, c, rows, columns, depth, partials, flags
    return lambda: stream_k(*arguments, grid=grid, block=THREADS)


# %% check
rng = ct.rng(0)
for shape in ((1, 1, 1), (31, 33, 65), (129, 257, 300)):
    i, j, d = shape
    left, right = (
        rng.standard_normal(s, dtype="float32") for s in ((i, d), (d, j))
    )
    expected = left.astype("float64") @ right
    x, y, out = (
        ct.to_device(left),
        ct.to_device(right),
        ct.empty((i, j), "float32"),
    )
    for blocks in (None, 1, 5, 7):
        ct.poison(out)
        stream(x, y, out, blocks)()
        ct.check(
            out,
            expected,
            name=f"stream-K, {i} x {j} x {d}, {blocks or 'tiles'}",
            rtol=1e-4,
        )

# %% deterministic
first = out.get()
stream(x, y, out, 7)()
ct.check(out, first, rtol=0, atol=0, name="the same bits again")
whole = ct.empty(out.shape, "float32")
stream(x, y, whole, None)()
difference = float(np.abs(whole.get() - first).max())
ct.facts("order", {"stream-K and whole tiles, largest difference": difference})

# %% sweep
widest = max(COLUMNS) * TILE.bn
host_a = rng.random((m, k), dtype="float32") - np.float32(0.5)
a = ct.to_device(host_a)
words = ct.to_device(rng.random(k * widest, dtype="float32") - np.float32(0.5))
c_words = ct.empty(m * widest, "float32")
host_words = words.get()
measured = {}


def sweep_at(columns):
    """A benchmark of all contestants for a C of `columns` columns of tiles."""
    n = columns * TILE.bn
    b, c = words[: k * n].reshape(k, n), c_words[: m * n].reshape(m, n)
    rows = [0, m // 2, m - 1]
    expected = host_a[rows].astype("float64") @ host_words[: k * n].reshape(
        k, n
    )
    arguments = m, n, k, 1.0, a, k, b, n, 0.0, c, n
    whole, splits = tail(ROWS * columns)
    runs = {
        "a block per tile": sgemm.launcher(*arguments, config=TILE, splits=1),
        "rest split": sgemm.launcher(
            *arguments, config=TILE, splits=splits, whole=whole
        ),
        "final, as it chooses": sgemm.launcher(*arguments),
        "simple, whole tiles": stream(a, b, c, None),
        "simple, stream-K": stream(a, b, c, ct.size(RESIDENT, 7)),
    }
    for name, run in runs.items():
        ct.poison(c_words)
        run()
        got = np.stack([c_words[row * n : (row + 1) * n].get() for row in rows])
        ct.check(got, expected, name=f"{name}, n = {n}, 3 rows", rtol=1e-4)
    runs["cuBLAS"] = ct.vendor.gemm(a, b, c)
    return ct.bench(
        runs, flops=2 * m * n * k, name=f"{ROWS * columns} tiles", rounds=12
    )


for columns in COLUMNS:
    measured[ROWS * columns] = sweep_at(columns)


# %% series
def line(name):
    return [(t, bench[name].value) for t, bench in measured.items()]


names = [] if tool.running() else [row.name for row in measured[tiles[0]].rows_]
if names:
    ct.series(
        f"C of {m} rows, depth {k}",
        x=("tiles", f"{TILE.bm} x {TILE.bn}"),
        y=("rate", "TFLOP/s"),
        lines={name: line(name) for name in names},
        limit=ct.limits.fma(),
    )

# %% steps
full = max((t for t in tiles if t % SMS == 0), default=tiles[-1])
if names:
    best = measured[full]["a block per tile"].value
    rows = {}
    for t in tiles:
        for name, by in (
            ("a block per tile", efficiency(t, SMS)),
            ("rest split", with_tail(t)),
        ):
            rows |= {
                f"{t} tiles, {name}: predicted": (
                    best * by / efficiency(full, SMS),
                    "TFLOP/s",
                ),
                f"{t} tiles, {name}: measured": (
                    measured[t][name].value,
                    "TFLOP/s",
                ),
            }
    ct.facts("predicted and measured", rows)

# %% tail
if names:
    before, behind = (
        tiles[COLUMNS.index(12)] if 12 in COLUMNS else tiles[0],
        tiles[-1],
    )
    behind = tiles[COLUMNS.index(13)] if 13 in COLUMNS else behind
    gains = {
        f"{name}, time of {behind} tiles / of {before}": measured[behind][
            name
        ].median_us
        / measured[before][name].median_us
        for name in names
    }
    ct.facts("one column of tiles more", {"work": behind / before} | gains)

# %% small
SMALL, DEPTH = ct.size(256, 64), ct.size(16384, 256)
thin_a = ct.to_device(
    rng.random((SMALL, DEPTH), dtype="float32") - np.float32(0.5)
)
thin_b = ct.to_device(
    rng.random((DEPTH, SMALL), dtype="float32") - np.float32(0.5)
)
thin_c = ct.empty((SMALL, SMALL), "float32")
plan = sgemm.plan(SMALL, SMALL, DEPTH, SMS)
blocks_of_c = ct.cdiv(SMALL, plan.config.bm) * ct.cdiv(SMALL, plan.config.bn)
SPLITS = (1, 2, 4, 8, 16, 32)
ct.facts(
    "splits",
    {
        "tile": f"{plan.config.bm} x {plan.config.bn}",
        "tiles": blocks_of_c,
        "SMs": SMS,
        "splits of the cost model": plan.splits,
    }
    | {
        f"{s} splits: SMs at work": (100 * min(1.0, blocks_of_c * s / SMS), "%")
        for s in SPLITS
    },
)

# %% splits
reference = thin_a.get().astype("float64") @ thin_b.get()
candidates = {}
for s in SPLITS:
    run = sgemm.launcher(
        SMALL, SMALL, DEPTH, 1.0, thin_a, DEPTH, thin_b, SMALL, 0.0, thin_c, SMALL,
        config=plan.config, splits=s,
    )  # fmt: skip
    run()
    ct.check(thin_c, reference, name=f"splits = {s}", rtol=1e-4)
    candidates[f"{s} splits"] = run
candidates["simple, stream-K"] = stream(
    thin_a, thin_b, thin_c, ct.size(RESIDENT, 7)
)
candidates["simple, stream-K"]()
ct.check(thin_c, reference, name="stream-K", rtol=1e-4)
split = ct.bench(
    {**candidates, "cuBLAS": ct.vendor.gemm(thin_a, thin_b, thin_c)},
    flops=2 * SMALL * SMALL * DEPTH,
    name=f"{SMALL} x {SMALL} x {DEPTH}",
    rounds=20,
)

# %% gain
if names:
    gain = split["1 splits"].median_us / min(
        split[f"{s} splits"].median_us for s in SPLITS
    )
    ct.claim(
        id="split-k-small-c",
        source="SGEMM worklog, notes on cuBLAS",
        statement={
            "en": "For a small C and a long k it pays to cut k among several blocks. Times as fast as one block per tile.",
            "zh": "C 很小而 k 很长时，把 k 分给几个线程块更快。下面是相对每个分块只用一个线程块的加速倍数。",
        },
        predicted="> 1",
        measured=round(gain, 2),
        unit="times",
        verdict="confirmed" if gain > 1.1 else "refuted",
    )
