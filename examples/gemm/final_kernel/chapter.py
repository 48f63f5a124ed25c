# ---
# jupyter:
#   cudatut:
#     title: {en: "The final kernel", zh: "最终的 kernel"}
#     requires: sm_80
#     timeout_s: 180
#     sizes:
#       N: [4096, 136, 4096]
#       SHAPES:
#         - [[1, 1, 1], [31, 500, 3], [257, 131, 33], [100, 36, 1000]]
#         - [[9, 7, 5]]
#       DEPTHS: [[1024, 16384], [256, 256]]
# ---

# %% [markdown]
# The product of this part. First one launch of it as a whole program, then the
# same by the function that chooses the instance.

# %% program
import numpy as np
import cudatut as ct
from cudatut.book.gemm.kernels import sgemm

m, n, k = 500, 400, 300
a = ct.to_device(ct.rng(0).random((m, k), dtype="float32"))
b = ct.to_device(ct.rng(1).random((k, n), dtype="float32"))
c = ct.empty((m, n), "float32")
expected = a.get().astype("float64") @ b.get()

# 64 x 128 results per block, 8 x 8 per thread, 16 deep, in 3 stages.
kernel = ct.Kernel(
    "gemm/ladder/final.cu", "sgemm<64,128,16,8,8,3,3,4,false,false>"
)
tiles = ct.cdiv(m, 64) * ct.cdiv(n, 128)
# Each tile has a block of its own, so nothing is left for others to add up.
partials, tickets = ct.empty(4, "float32"), ct.to_device(np.zeros(1, "uint32"))
kernel(
    m, n, k, 1.0, a, k, b, n, 0.0, c, n, tiles, 1, 304, partials, tickets,
    grid=tiles, block=128, shared=3 * 16 * (64 + 4 + 128) * 4,
)  # fmt: skip
ct.check(c, expected, atol=1e-2, name="one instance")

# Any instance, any number of blocks: C = 2 A B + C.
sgemm.sgemm(a, b, c, alpha=2.0, beta=1.0)
ct.check(c, 3 * expected, atol=1e-2, name="sgemm")

# %% setup
from statistics import median

from cudatut.book.measure import loops
from cudatut.book.gemm.ladder.ladder import Gemm

gpu = ct.device()
SMS = gpu.sm_count
SMALL = sgemm.CONFIGS[0]  # 64 x 128, 8 x 8 results per thread
LARGE = sgemm.Config(128, 256, 16, 8, 16, 4, 1, rate=0.9, alone=0.9)

# %% [markdown]
# The variants: two tiles, each with the sum of row i at i and at i ^ 1. They
# are launched before anything else, so that the profiler comes to them soon.

# %% variants
# The same kernel with the sum of row i at i: two places in the source.
SOURCE = (ct.paths.examples_dir() / "gemm/ladder/final.cu").read_text(
    encoding="utf-8"
)
PLAIN = SOURCE.replace("sum[j][i ^ 1] +=", "sum[j][i] +=").replace(
    "{four.y, four.x, four.w, four.z}", "{four.x, four.y, four.z, four.w}"
)


def variant(problem, config, source):
    """A callable: whole tiles by that instance of that kernel."""
    arrays = problem.a, problem.b, problem.c
    return sgemm.prepare(*arrays, config=config, splits=1, source=source)


N = 4096
problem = Gemm(N, N, N)
runs = {
    "128 x 256, i": variant(problem, LARGE, PLAIN),
    "128 x 256, i ^ 1": variant(problem, LARGE, sgemm.SOURCE),
    "64 x 128, i": variant(problem, SMALL, PLAIN),
    "64 x 128, i ^ 1": variant(problem, SMALL, sgemm.SOURCE),
    "rest shared": sgemm.prepare(problem.a, problem.b, problem.c),
}
for name, run in runs.items():
    ct.poison(problem.c)
    run()
    if ct.tool.running() != "ncu":
        problem.compare(f"{name}, n = {N}")

# %% [markdown]
# Right before fast: all transpositions, ragged shapes, scalars, matrices that
# are windows of larger ones. Whole numbers, so not one bit may differ.

# %% check
FLAGS = {  # is A transposed, is B?
    "NN": (False, False),
    "NT": (False, True),
    "TN": (True, False),
    "TT": (True, True),
}
SHAPES = ((1, 1, 1), (31, 500, 3), (257, 131, 33), (100, 36, 1000))
flags = [(SMALL, vec, *pair) for pair in FLAGS.values() for vec in (4, 2, 1)]
flags += [
    (config, vec, False, False) for config in sgemm.CONFIGS for vec in (4, 2, 1)
]
ct.compile_ahead(
    [("gemm/ladder/final.cu", config.name(*how)) for config, *how in flags]
)


def compute(m, n, k, alpha, beta, ta, tb, pad):
    """C by the kernel, and as it should be, for whole numbers, in arrays with
    `pad` words of NaN behind each row."""
    rng = ct.rng(m + n + k)
    a, b = rng.integers(-8, 9, (m, k)), rng.integers(-8, 9, (k, n))
    stored = []
    for matrix in (a.T if ta else a, b.T if tb else b):
        rows, columns = matrix.shape
        wide = np.full((rows, columns + pad), np.nan, "float32")
        wide[:, :columns] = matrix
        stored.append(ct.to_device(wide))
    c0 = rng.integers(-8, 9, (m, n + pad)).astype("float32")
    c0[:, n:] = 77  # between the rows of C, where nothing may be written
    c = ct.to_device(c0)
    a_wide, b_wide = stored
    sgemm.launch(
        m, n, k, alpha, a_wide, a_wide.shape[1], b_wide, b_wide.shape[1],
        beta, c, n + pad, ta, tb, config=SMALL, splits=1 + k // 300,
    )  # fmt: skip
    expected = c0.astype("float64")
    expected[:, :n] = alpha * (a @ b) + beta * expected[:, :n]
    return c, expected


for which, (ta, tb) in FLAGS.items():
    for shape in SHAPES:
        for pad, alpha, beta in ((0, 1.0, 0.0), (3, -2.0, 0.5), (4, 0.0, 1.0)):
            got, right = compute(*shape, alpha, beta, ta, tb, pad)
            shown = " x ".join(map(str, shape))
            name = f"{which}, {shown}, + {pad}, "
            name += f"alpha {alpha:g}, beta {beta:g}"
            ct.check(got, right, name=name, rtol=0, atol=0)

# %% [markdown]
# Two predictions: what the machine code of the four variants promises, and how
# many tiles are left over at the end.

# %% predict
clock = ct.attributes()["CLOCK_RATE"] / 1e6  # GHz
peak = SMS * 128 * 2 * clock / 1e3  # TFLOP/s, if each issue slot were an FMA
names = [name for name in runs if name != "rest shared"]
names = [] if ct.tool.running() else names
codes = loops.disassemble_all(runs[name].kernel for name in names)
read = {}
for name, code in zip(names, codes):
    config = LARGE if name.startswith("128") else SMALL
    turn = loops.main_turn(code, config.bk * config.tm * config.tn)
    needs = runs[name].kernel.resources(config.threads, runs[name].shared)
    fmas = loops.count(turn)["FFMA"]
    read[name] = {
        "registers": needs.registers,
        "blocks per SM": needs.blocks_per_sm,
        "FFMA": 100 * loops.share(turn),
        "bound": loops.share(turn) * peak,
        "two words of one bank": 100 * loops.bank_conflicts(turn) / fmas,
    }
if read:
    ct.table(
        "read from the machine code",
        read,
        corner="tile, place of sums",
        units={"FFMA": "%", "bound": "TFLOP/s", "two words of one bank": "%"},
    )

# %% parts
rows = {}
for size in (1024, 2048, 4096, 8192):
    chosen = sgemm.plan(size, size, size, SMS)
    config = chosen.config
    tiles = ct.cdiv(size, config.bm) * ct.cdiv(size, config.bn)
    places = SMS * config.blocks
    rows[size] = {
        "tile": f"{config.bm} x {config.bn}",
        "tiles": tiles,
        "tiles / places": tiles / places,
        "shared tiles": tiles - chosen.whole,
        "blocks on each": chosen.splits,
        "places in use": 100 * tiles / places / ct.cdiv(tiles, places),
    }
ct.table(
    "tiles, and who computes them",
    rows,
    corner="n",
    units={"places in use": "%"},
)

# %% [markdown]
# The time of all variants, then the counters of the same launches.

# %% bench
times = ct.bench(
    {**runs, **problem.vendors()},
    flops=problem.flops,
    name=f"n = {N}",
    rounds=15,
)

# %% counters
ISSUED = "smsp__issue_active.avg.pct_of_peak_sustained_active"
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STALLS = {
    "dispatch": STALL.format("dispatch_stall"),
    "barrier": STALL.format("barrier"),
    "short scoreboard": STALL.format("short_scoreboard"),
}
counted = ct.profile_launches(
    "gemm/final_kernel",
    "regex:sgemm",
    [ISSUED, *STALLS.values()],
    launches=len(runs),
    skip=2,  # those of the program
)

# %% stalls
rows = {}
for name, counters in zip(runs, counted):
    rows[name] = {
        "two words of one bank": read.get(name, {}).get(
            "two words of one bank"
        ),
        **{why: counters[metric] for why, metric in STALLS.items()},
        "slots used": counters[ISSUED],
        "rate": times[name].value,
    }
if rows:
    ct.table(
        "warps that wait, per issued instruction",
        rows,
        corner="tile, place of sums",
        units={
            "two words of one bank": "%",
            "slots used": "%",
            "rate": "TFLOP/s",
        },
    )


def cycles_per_fma(name):
    """Cycles of a scheduler for each FMA of a warp, at the highest clock."""
    cycles = times[name].median_us * clock * 1e3 * 4 * SMS
    return cycles / (N**3 / 32)


if read:
    pair = "128 x 256, i", "128 x 256, i ^ 1"
    slower = cycles_per_fma(pair[0]) - cycles_per_fma(pair[1])
    more = [read[name]["two words of one bank"] / 100 for name in pair]
    small = "64 x 128, i ^ 1"
    gain = times["rest shared"].value / times[small].value
    found = {
        "cycles for two words of one bank": slower / (more[0] - more[1]),
        "rest shared: faster by": (100 * (gain - 1), "%"),
    }
    if rows:
        slots = rows["rest shared"]["slots used"] * read[small]["FFMA"] / 100
        found["rest shared: slots with an FMA"] = slots, "%"
    ct.facts("derived from these", found)

# %% [markdown]
# What the cost model says and what the clock says, for the plan that it chooses
# and for whole tiles of the first configuration.

# %% cost
SIZES = (
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (256, 256, 16384),
    (1500, 1700, 900),
)
rows = {}
for m, n, k in () if ct.tool.running() else SIZES:
    a, b = (
        ct.to_device(ct.rng(3).random(shape, dtype="float32"))
        for shape in ((m, k), (k, n))
    )
    c = ct.empty((m, n), "float32")
    tiles = ct.cdiv(m, SMALL.bm) * ct.cdiv(n, SMALL.bn)
    chosen, simple = sgemm.plan(m, n, k, SMS), sgemm.Plan(SMALL, 1, tiles)
    row = rows[f"{m} x {n} x {k}"] = {}
    for what, plan, how in (
        ("chosen", chosen, {}),
        ("64 x 128 whole", simple, {"config": SMALL, "splits": 1}),
    ):
        run = sgemm.prepare(a, b, c, **how)
        run()
        cycles = sgemm.cost(plan, m, n, k, SMS)
        row[f"{what}: predicted"] = cycles / clock / 1e3
        row[f"{what}: measured"] = median(
            ct.time_hidden(run) for _ in range(11)
        )
if rows:
    units = dict.fromkeys(row, "us")
    ct.table("cost model and clock", rows, corner="m x n x k", units=units)

# %% [markdown]
# The error of a long sum, against the bound.

# %% accuracy
DEPTHS = (1024, 16384)
# Half of the distance from 1 to the next float32: the most that a rounding is
# off, relatively.
U = 2.0**-24
rows = {}
for depth, splits in ((DEPTHS[0], 1), (DEPTHS[1], 1), (DEPTHS[1], 16)):
    left, right = (
        ct.rng(i).random(s, dtype="float32")
        for i, s in ((4, (64, depth)), (5, (depth, 128)))
    )
    # All positive: the sum of |a b| as well.
    exact = left.astype("float64") @ right.astype("float64")
    a, b = ct.to_device(left), ct.to_device(right)
    c = ct.empty((64, 128), "float32")
    sgemm.prepare(a, b, c, config=SMALL, splits=splits)()
    roundings = sgemm.depth_of_part(depth, SMALL, splits)
    roundings += splits if splits > 1 else 0
    error = np.abs(c.get() - exact) / exact / U
    name = f"k = {depth}, blocks = {splits}"
    ct.check(
        error,
        np.zeros_like(error),
        name=f"{name}: error / u, below the bound",
        rtol=0,
        atol=roundings,
    )
    rows[name] = {"bound": roundings, "final": float(error.max())}
    if (vendor := ct.vendor.gemm(a, b, c)) and splits == 1:
        vendor()
        error = np.abs(c.get() - exact) / exact / U
        rows[name]["cuBLAS"] = float(error.max())
ct.table("largest error, in units of u = 2^-24", rows, corner="depth")
