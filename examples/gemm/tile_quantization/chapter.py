# ---
# jupyter:
#   cudatut:
#     title: {en: "Tile quantization: waves, split-K, stream-K", zh: "分块量化：波次、split-K 与 stream-K"}
#     requires: sm_80
#     timeout_s: 120
#     sizes:
#       shape: [[1000, 900, 800], [129, 260, 24]]
#       ROWS: [11, 2]
#       COLUMNS: [[10, 11, 12, 13, 15, 18, 22, 24, 25], [1, 2]]
#       STEP: [[12, 13], [1, 2]]
#       FULL: [24, 2]
#       depth: [2048, 40]
#       SMALL: [256, 64]
#       DEEP: [16384, 256]
# ---

# %% [markdown]
# How many tiles a matrix has, what that does to the last wave, and two ways to
# cut the work elsewhere. First stream-K as a whole program.

# %% program
import numpy as np
import cudatut as ct

shape = (1000, 900, 800)
m, n, k = shape
a = ct.to_device(ct.rng(0).random((m, k), dtype="float32"))
b = ct.to_device(ct.rng(1).random((k, n), dtype="float32"))
c = ct.empty((m, n), "float32")

kernel = ct.Kernel(
    "gemm/tile_quantization/stream_k.cu", "sgemm_stream_k<64,128,8,8,8,3>"
)
tiles = ct.cdiv(m, 64) * ct.cdiv(n, 128)
steps = ct.cdiv(k, 8)  # of each tile
# Blocks wait for each other, so all must fit on the GPU at the same time: one
# per SM always does. Each needs a step at least.
blocks = min(ct.device().sm_count, tiles * steps)
partials = ct.empty(blocks * 64 * 128, "float32")
flags = ct.to_device(np.zeros(blocks, "uint32"))
kernel(a, b, c, m, n, k, partials, flags, grid=blocks, block=128)

ct.check(c, a.get().astype("float64") @ b.get(), atol=1e-2)

# %% [markdown]
# The sweep: C grows to the right by one column of large tiles at a time.

# %% setup
from cudatut.book.gemm.kernels import sgemm

SMS = ct.device().sm_count
# The largest tile of the final kernel: one block per SM at a time.
TILE = sgemm.Config(128, 256, 16, 8, 16, 4, 1, rate=0.9, alone=0.9)
ROWS = 11  # rows of tiles; with 12 columns a tile for each of 132 SMs
COLUMNS = (10, 11, 12, 13, 15, 18, 22, 24, 25)
STEP = (12, 13)  # from one full wave to a few tiles more
FULL = 24  # two full waves
depth = 2048
ct.facts(
    "the sweep",
    {
        "SMs": SMS,
        "tile": f"{TILE.bm} x {TILE.bn}",
        "rows of C": ROWS * TILE.bm,
        "columns of C in 12 tiles": 12 * TILE.bn,
        "columns of C in 13 tiles": 13 * TILE.bn,
        "columns of C in 24 tiles": 24 * TILE.bn,
    },
)


# %% predict
def waves(tiles):
    """How often the SMs are filled until all tiles have had one."""
    return ct.cdiv(tiles, SMS)


def efficiency(tiles):
    """Part of the SMs at work, over all waves."""
    return tiles / (waves(tiles) * SMS)


def tail(tiles):
    """(whole, splits): the tiles of full waves, with a block each; and how many
    blocks share each of the others, to fill one wave more."""
    rest = tiles % SMS
    return tiles - rest, max(1, SMS // rest) if rest else 1


def with_tail(tiles):
    """Efficiency with the rest split: its wave is that much shorter."""
    whole, splits = tail(tiles)
    return tiles / SMS / (whole // SMS + (tiles > whole) / splits)


tiles = [ROWS * c for c in COLUMNS]
WHOLE, REST = "a block per tile", "rest split"
ct.table(
    "part of the SMs at work",
    {
        str(t): {
            "waves": waves(t),
            WHOLE: 100 * efficiency(t),
            "blocks per tile of the rest": tail(t)[1],
            REST: 100 * with_tail(t),
        }
        for t in tiles
    },
    corner="tiles",
    units={WHOLE: "%", REST: "%"},
)

# %% [markdown]
# Stream-K, with as many blocks as the GPU holds at a time.

# %% stream
stream_k = ct.Kernel(
    "gemm/tile_quantization/stream_k.cu", "sgemm_stream_k<64,128,8,8,8,3>"
)
BM, BN, BK, THREADS = 64, 128, 8, 128
RESIDENT = stream_k.resources(THREADS).blocks_per_sm * SMS
partials = ct.empty(RESIDENT * BM * BN, "float32")
flags = ct.to_device(np.zeros(RESIDENT, "uint32"))


def stream(a, b, c, blocks=None):
    """A callable that computes C = A B; by default with a block per tile."""
    (m, k), n = a.shape, b.shape[1]
    tiles = ct.cdiv(m, BM) * ct.cdiv(n, BN)
    # Each block needs a step at least.
    grid = min(blocks, tiles * ct.cdiv(k, BK)) if blocks else tiles
    arguments = a, b, c, m, n, k, partials, flags
    return lambda: stream_k(*arguments, grid=grid, block=THREADS)


# %% resident
ct.facts(
    "stream-K",
    {
        "tile": f"{BM} x {BN}",
        "blocks per SM": RESIDENT // SMS,
        "blocks": RESIDENT,
        "tiles in 198 large ones": 198 * TILE.bm * TILE.bn // (BM * BN),
    },
)

# %% check
rng = ct.rng(0)
for m, n, k in ((1, 1, 1), (31, 33, 65), (129, 257, 300)):
    left = rng.standard_normal((m, k), dtype="float32")
    right = rng.standard_normal((k, n), dtype="float32")
    expected = left.astype("float64") @ right
    x, y = ct.to_device(left), ct.to_device(right)
    out = ct.empty((m, n), "float32")
    for blocks in (None, 1, 5, 7):
        ct.poison(out)
        stream(x, y, out, blocks)()
        name = f"stream-K, {m} x {n} x {k}, {blocks or 'all'} blocks"
        ct.check(out, expected, name=name, rtol=1e-4)

# %% deterministic
first = out.get()
stream(x, y, out, 7)()
ct.check(out, first, rtol=0, atol=0, name="the same bits again")
by_tiles = ct.empty(out.shape, "float32")
stream(x, y, by_tiles)()
difference = float(np.abs(by_tiles.get() - first).max())
ct.facts(
    "7 blocks and a block per tile",
    {"largest difference": difference},
)

# %% [markdown]
# All contestants at every size.

# %% sweep
m, k = ROWS * TILE.bm, depth
widest = max(COLUMNS) * TILE.bn
host_a = rng.random((m, k), dtype="float32") - np.float32(0.5)
a = ct.to_device(host_a)
words = ct.to_device(rng.random(k * widest, dtype="float32") - np.float32(0.5))
c_words = ct.empty(m * widest, "float32")
host_words = words.get()


def sweep_at(columns):
    """A benchmark of all contestants, for so many columns of tiles."""
    n = columns * TILE.bn
    b, c = words[: k * n].reshape(k, n), c_words[: m * n].reshape(m, n)
    whole, splits = tail(ROWS * columns)
    arguments = m, n, k, 1.0, a, k, b, n, 0.0, c, n
    runs = {
        WHOLE: sgemm.launcher(*arguments, config=TILE, splits=1),
        REST: sgemm.launcher(
            *arguments, config=TILE, splits=splits, whole=whole
        ),
        "final, as it chooses": sgemm.launcher(*arguments),
        "simple, whole tiles": stream(a, b, c),
        "simple, stream-K": stream(a, b, c, RESIDENT),
    }
    rows = [0, m // 2, m - 1]
    right = host_words[: k * n].reshape(k, n)
    expected = host_a[rows].astype("float64") @ right
    for name, run in runs.items():
        ct.poison(c_words)
        run()
        got = np.stack([c_words[row * n : (row + 1) * n].get() for row in rows])
        ct.check(got, expected, name=f"{name}, n = {n}, 3 rows", rtol=1e-4)
    runs["cuBLAS"] = ct.vendor.gemm(a, b, c)
    return ct.bench(
        runs, flops=2 * m * n * k, name=f"{ROWS * columns} tiles", rounds=12
    )


measured = {ROWS * columns: sweep_at(columns) for columns in COLUMNS}
names = [row.name for row in measured[tiles[0]].rows]

# %% series
ct.series(
    f"C of {m} rows, depth {k}",
    x=("tiles", f"{TILE.bm} x {TILE.bn}"),
    y=("rate", "TFLOP/s"),
    lines={
        name: [(t, bench[name].value) for t, bench in measured.items()]
        for name in names
    },
    limit=ct.limits.fma(),
)

# %% steps
full = ROWS * FULL
# The only number that the prediction takes from a measurement.
best = measured[full][WHOLE].value / efficiency(full)
ct.table(
    "predicted and measured",
    {
        str(t): {
            f"{WHOLE}, predicted": best * efficiency(t),
            f"{WHOLE}, measured": measured[t][WHOLE].value,
            f"{REST}, predicted": best * with_tail(t),
            f"{REST}, measured": measured[t][REST].value,
        }
        for t in tiles
    },
    corner="tiles",
    units={
        f"{kind}, {what}": "TFLOP/s"
        for kind in (WHOLE, REST)
        for what in ("predicted", "measured")
    },
)

# %% tail
before, behind = (measured[ROWS * columns] for columns in STEP)
ct.facts(
    f"{STEP[1]} columns of tiles, in times of {STEP[0]}",
    {"work": STEP[1] / STEP[0]}
    | {
        f"time, {name}": behind[name].median_us / before[name].median_us
        for name in names
    },
)

# %% [markdown]
# A small C with a long k: there are fewer tiles than SMs.

# %% small
SMALL = 256
DEEP = 16384
plan = sgemm.plan(SMALL, SMALL, DEEP, SMS)
small_tiles = ct.cdiv(SMALL, plan.config.bm) * ct.cdiv(SMALL, plan.config.bn)
SPLITS = (1, 2, 4, 8, 16, 32)
ct.facts(
    f"{SMALL} x {SMALL} x {DEEP}",
    {
        "tile": f"{plan.config.bm} x {plan.config.bn}",
        "tiles": small_tiles,
        "SMs": SMS,
        "blocks per tile, by the cost model": plan.splits,
    },
)
ct.table(
    "part of the SMs at work",
    {
        str(s): {
            "blocks": small_tiles * s,
            "SMs at work": 100 * min(1.0, small_tiles * s / SMS),
        }
        for s in SPLITS
    },
    corner="blocks per tile",
    units={"SMs at work": "%"},
)

# %% splits
thin_a, thin_b = (
    ct.to_device(rng.random(s, dtype="float32") - np.float32(0.5))
    for s in ((SMALL, DEEP), (DEEP, SMALL))
)
thin_c = ct.empty((SMALL, SMALL), "float32")
reference = thin_a.get().astype("float64") @ thin_b.get()
thin = SMALL, SMALL, DEEP, 1.0, thin_a, DEEP, thin_b, SMALL, 0.0, thin_c, SMALL
candidates = {
    f"{s} per tile": sgemm.launcher(*thin, config=plan.config, splits=s)
    for s in SPLITS
} | {"simple, stream-K": stream(thin_a, thin_b, thin_c, RESIDENT)}
for name, run in candidates.items():
    ct.poison(thin_c)
    run()
    ct.check(thin_c, reference, name=name, rtol=1e-4)
split = ct.bench(
    candidates | {"cuBLAS": ct.vendor.gemm(thin_a, thin_b, thin_c)},
    flops=2 * SMALL * SMALL * DEEP,
    name=f"{SMALL} x {SMALL} x {DEEP}",
    rounds=20,
)
fastest = min(split[f"{s} per tile"].median_us for s in SPLITS)
ct.facts(
    "the fastest split",
    {"times as fast as 1 per tile": split["1 per tile"].median_us / fastest},
)
