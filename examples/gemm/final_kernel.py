# ---
# jupyter:
#   cudatut:
#     title: {en: "The final kernel", zh: "最终的 kernel"}
#     requires: sm_80
#     timeout_s: 180
# ---

# %% [markdown]
# The product of this part: what its machine code promises, what its register banks and shared tiles are worth, how exact
# it is, and what it does with NaN.

# %% setup
import itertools
from statistics import median

import loops
import numpy as np
import sgemm
from ladder import Gemm

import cudatut as ct
from cudatut import paths, tool
from cudatut.profiler import profile_launches
from cudatut.timing import time_hidden
from cudatut.tuning import compile_ahead

gpu = ct.device()
SMS = gpu.sm_count
SMALL = sgemm.CONFIGS[0]  # 64 x 128, 8 x 8 results per thread
LARGE = sgemm.Config(128, 256, 16, 8, 16, 4, 1, rate=0.9, alone=0.9)

# %% variants
# The same kernel with the sum of row i at i, not at i ^ 1: two places in the source.
SOURCE = (paths.examples_dir() / "gemm/final.cu").read_text(encoding="utf-8")
PLAIN = SOURCE.replace("sum[j][i ^ 1] +=", "sum[j][i] +=").replace(
    "(y ^ 1)", "y"
)


def variant(problem, config, source):
    """A callable: whole tiles by that instance of that kernel."""
    arrays = problem.a, problem.b, problem.c
    return sgemm.prepare(*arrays, config=config, splits=1, source=source)


N = ct.size(4096, 136, profiled=4096)
problem = Gemm(N, N, N)
runs = {
    "128 x 256, i": variant(problem, LARGE, PLAIN),
    "128 x 256, i ^ 1": variant(problem, LARGE, sgemm.SOURCE),
    "64 x 128, i": variant(problem, SMALL, PLAIN),
    "64 x 128, i ^ 1": variant(problem, SMALL, sgemm.SOURCE),
    "rest shared": sgemm.prepare(problem.a, problem.b, problem.c),
}
# First of all, so that the profiler comes to these launches soon.
for name, run in runs.items():
    ct.poison(problem.c)
    run()
    if tool.running() != "ncu":
        problem.compare(f"{name}, n = {N}")

# %% check
FLAGS = list(itertools.product((False, True), repeat=2))
SHAPES = (
    ((1, 1, 1), (31, 500, 3), (257, 131, 33), (100, 36, 1000))
    if ct.size(1, 0)
    else ((9, 7, 5),)
)
flags = [(SMALL, vec, *pair) for pair in FLAGS for vec in (4, 1)]
flags += [
    (config, vec, False, False) for config in sgemm.CONFIGS for vec in (4, 1)
]
compile_ahead([("gemm/final.cu", config.name(*how)) for config, *how in flags])


def compute(m, n, k, alpha, beta, ta, tb, pad):
    """C by the kernel, and as it should be, for whole numbers in arrays with `pad` words of NaN behind every row."""
    rng = ct.rng(m + n + k)
    a, b = rng.integers(-8, 9, (m, k)), rng.integers(-8, 9, (k, n))
    stored = []
    for matrix in (a.T if ta else a, b.T if tb else b):
        wide = np.full(
            (matrix.shape[0], matrix.shape[1] + pad), np.nan, "float32"
        )
        wide[:, : matrix.shape[1]] = matrix
        stored.append(ct.to_device(wide))
    c0 = rng.integers(-8, 9, (m, n + pad)).astype("float32")
    c0[:, n:] = 77  # between the rows of C, where nothing may be written
    c = ct.to_device(c0)
    sgemm.launch(
        m, n, k, alpha, stored[0], stored[0].shape[1], stored[1], stored[1].shape[1], beta, c, n + pad,
        ta, tb, config=SMALL, splits=1 + k // 300,
    )  # fmt: skip
    expected = c0.astype("float64")
    expected[:, :n] = alpha * (a @ b) + beta * expected[:, :n]
    return c, expected


for ta, tb in FLAGS:
    for shape in SHAPES:
        for pad, alpha, beta in ((0, 1.0, 0.0), (3, -2.0, 0.5), (4, 0.0, 1.0)):
            got, expected = compute(*shape, alpha, beta, ta, tb, pad)
            letters = "".join("T" if flag else "N" for flag in (ta, tb))
            shown = " x ".join(map(str, shape))
            name = (
                f"{letters}, {shown}, + {pad}, alpha {alpha:g}, beta {beta:g}"
            )
            ct.check(got, expected, name=name, rtol=0, atol=0)


# %% predict
clock = ct.attributes()["CLOCK_RATE"] / 1e6  # GHz
peak = SMS * 128 * 2 * clock / 1e3  # TFLOP/s, if every issue slot were an FMA
names = (
    [] if tool.running() else [name for name in runs if name != "rest shared"]
)
shares, rows = {}, {}
for name, code in zip(
    names, loops.disassemble_all(runs[name].kernel for name in names)
):
    config = LARGE if name.startswith("128") else SMALL
    kernel = runs[name].kernel
    turn = loops.main_turn(code, config.bk * config.tm * config.tn)
    counted = loops.count(turn)
    shares[name] = 100 * loops.bank_conflicts(turn) / counted["FFMA"]
    needs = kernel.resources(config.threads, runs[name].shared)
    rows |= {
        f"{name}: registers": needs.registers,
        f"{name}: blocks per SM": needs.blocks_per_sm,
        f"{name}: FFMA": (100 * loops.share(turn), "%"),
        f"{name}: bound": (loops.share(turn) * peak, "TFLOP/s"),
        f"{name}: two words of one bank": (shares[name], "%"),
    }
ct.facts("read from the machine code", rows)

# %% parts
rows = {}
for n in (1024, 2048, 4096, 8192):
    chosen = sgemm.plan(n, n, n, SMS)
    config = chosen.config
    tiles, slots = (
        ct.cdiv(n, config.bm) * ct.cdiv(n, config.bn),
        SMS * config.blocks,
    )
    rest = tiles - chosen.whole
    rows |= {
        f"{n}: tile": f"{config.bm} x {config.bn}",
        f"{n}: tiles": tiles,
        f"{n}: tiles / places": tiles / slots,
        f"{n}: shared tiles": rest,
        f"{n}: blocks on each": chosen.splits,
        f"{n}: whole tiles, of the places": (
            100 * tiles / slots / ct.cdiv(tiles, slots),
            "%",
        ),
    }
ct.facts("tiles, and who computes them", rows)

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
counted = dict(
    zip(
        runs,
        profile_launches(
            "gemm/final_kernel",
            "regex:sgemm",
            [ISSUED, *STALLS.values()],
            launches=len(runs),
        ),
    )
)

# %% stalls
rows = {}
for name, counters in counted.items():
    if name in shares:
        rows[f"{name}: two words of one bank"] = (shares[name], "%")
    rows |= {
        f"{name}: stalled, {why}": counters[metric]
        for why, metric in STALLS.items()
    }
    rows |= {
        f"{name}: slots used": (counters[ISSUED], "%"),
        f"{name}: measured": (times[name].value, "TFLOP/s"),
    }
ct.facts("per issued instruction, warps that wait for", rows)

# %% transposed
side = ct.size(2048, 100)
square = [
    ct.to_device(ct.rng(i).random((side, side), dtype="float32"))
    for i in (1, 2)
]
out, contestants = ct.empty((side, side), "float32"), {}
for ta, tb in FLAGS:
    letters = "".join("T" if flag else "N" for flag in (ta, tb))
    contestants[f"{letters}, final"] = sgemm.prepare(
        *square, out, 1.0, 0.0, ta, tb
    )
    contestants[f"{letters}, cuBLAS"] = ct.vendor.gemm(
        *square, out, 1.0, 0.0, ta, tb
    )
turned = ct.bench(
    contestants, flops=2 * side**3, name=f"op(A) op(B), n = {side}", rounds=12
)

# %% cost
# What the cost model says and what the clock says, for its choice and for the first configuration with whole tiles.
SIZES = (
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (256, 256, 16384),
    (1500, 1700, 900),
)
rows = {}
for m, n, k in SIZES if names else ():
    a, b = (
        ct.to_device(ct.rng(3).random(shape, dtype="float32"))
        for shape in ((m, k), (k, n))
    )
    c = ct.empty((m, n), "float32")
    tiles = ct.cdiv(m, SMALL.bm) * ct.cdiv(n, SMALL.bn)
    chosen, simple = sgemm.plan(m, n, k, SMS), sgemm.Plan(SMALL, 1, tiles)
    for what, plan, how in (
        ("chosen", chosen, {}),
        ("64 x 128, whole", simple, {"config": SMALL, "splits": 1}),
    ):
        run = sgemm.prepare(a, b, c, **how)
        run()
        took = median(time_hidden(run) for _ in range(11))
        rows |= {
            f"{m} x {n} x {k}, {what}: predicted": (
                sgemm.cost(plan, m, n, k, SMS) / clock / 1e3,
                "us",
            ),
            f"{m} x {n} x {k}, {what}: measured": (took, "us"),
        }
ct.facts("cost model and clock", rows)

# %% accuracy
U = (
    2.0**-24
)  # half of the distance from 1 to the next float32: the most that a rounding is off, relatively
rows = {}
for depth, splits in ((1024, 1), (16384, 1), (16384, 16)):
    depth = ct.size(depth, 256)
    left, right = (
        ct.rng(i).random(s, dtype="float32")
        for i, s in ((4, (64, depth)), (5, (depth, 128)))
    )
    exact = left.astype("float64") @ right.astype(
        "float64"
    )  # all positive: the sum of |a b| as well
    a, b, c = (
        ct.to_device(left),
        ct.to_device(right),
        ct.empty((64, 128), "float32"),
    )
    sgemm.prepare(a, b, c, config=SMALL, splits=splits)()
    roundings = sgemm.depth_of_part(depth, SMALL, splits) + (
        splits if splits > 1 else 0
    )
    error = np.abs(c.get() - exact) / exact / U
    name = f"k = {depth}, {splits} blocks"
    ct.check(
        error,
        np.zeros_like(error),
        name=f"{name}: error / u, below the bound",
        rtol=0,
        atol=roundings,
    )
    rows |= {
        f"{name}: bound": roundings,
        f"{name}: largest error": float(error.max()),
    }
    if (vendor := ct.vendor.gemm(a, b, c)) and splits == 1:
        vendor()
        rows[f"k = {depth}: cuBLAS, largest error"] = float(
            (np.abs(c.get() - exact) / exact / U).max()
        )
ct.facts("relative to the sum of |a b|, in units of u = 2^-24", rows)

# %% special
m, n, k = 130, 135, 70
left, right = (
    ct.rng(i).random(s, dtype="float32") + np.float32(0.5)
    for i, s in ((6, (m, k)), (7, (k, n)))
)
left[3, 5], left[40, 6], left[77, 69] = np.nan, np.inf, -np.inf
right[6, 10], right[7, 99], right[0, 134] = -np.inf, np.nan, np.inf
old = np.full((m, n), np.nan, "float32")
old[50] = 1.0
a, b = ct.to_device(left), ct.to_device(right)


def kinds(values):
    """0 where finite, 1 NaN, 2 infinite, 3 infinite and negative."""
    return np.select(
        [np.isnan(values), values == np.inf, values == -np.inf],
        [1.0, 2.0, 3.0],
        0.0,
    )


rows = {}
for alpha, beta in ((1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)):
    found = {}
    for name, call in (
        ("final", sgemm.prepare(a, b, (c := ct.to_device(old)), alpha, beta)),
        ("cuBLAS", ct.vendor.gemm(a, b, (d := ct.to_device(old)), alpha, beta)),
    ):
        if call:
            call()
            found[name] = kinds((c if name == "final" else d).get())
    with np.errstate(invalid="ignore"):
        product = left.astype("float64") @ right if alpha else np.zeros((m, n))
        ieee = kinds(
            (alpha * product + (beta * old if beta else 0.0)).astype("float32")
        )
    for name, got in found.items():
        ct.check(
            got,
            ieee,
            name=f"NaN and infinity, alpha {alpha:g}, beta {beta:g}: {name}",
            rtol=0,
        )
    key = f"alpha {alpha:g}, beta {beta:g}"
    rows |= {
        f"{key}: NaN": int((ieee == 1).sum()),
        f"{key}: infinite": int((ieee >= 2).sum()),
    }
    if "cuBLAS" in found:
        rows[f"{key}: places where cuBLAS differs"] = int(
            (found["cuBLAS"] != ieee).sum()
        )
ct.facts("special values among the results", rows)

# %% zeroed-tail
# One thread per result. Depth is rounded up to 32; the words of B beyond it are zeros, those of A what stands there.
TAIL = """
extern "C" __global__ void zeroed_tail(const float* A, const float* B, float* C, int m, int n, int k) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < (k + 31) / 32 * 32; ++i) {
    const int place = row * k + i;  // past the end of the row: a word of the next one
    sum += (place < m * k ? A[place] : 0.0f) * (i < k ? B[i * n + column] : 0.0f);
  }
  C[row * n + column] = sum;
}
"""
tail = ct.Kernel(TAIL, "zeroed_tail")
left = ct.rng(8).random((20, 40), dtype="float32")
right = ct.rng(9).random((40, 20), dtype="float32")
for bad in (0.0, np.nan):
    left[10, 3] = bad
    c = ct.empty((20, 20), "float32")
    tail(
        ct.to_device(left),
        ct.to_device(right),
        c,
        20,
        20,
        40,
        grid=(1, 20),
        block=32,
    )
    if not bad:
        ct.check(
            c,
            left.astype("float64") @ right,
            name="zeroed tail, finite data",
            rtol=1e-5,
        )
touched = int(np.isnan(c.get()).any(axis=1).sum())
ct.claim(
    id="gemm-zeroed-tail",
    source="CUDATutorial 07",
    statement={
        "en": "Past the end of the depth it does not matter which words of A a thread reads, if those of B are replaced by 0. "
        "Rows of C that one NaN in A reaches.",
        "zh": "越过深度末尾之后，只要 B 的元素换成 0，读到 A 的哪个元素都无所谓。下面是 A 中一个 NaN 影响到的 C 的行数。",
    },
    predicted=1,
    measured=touched,
    unit="rows",
    verdict="confirmed" if touched == 1 else "refuted",
)

# %% exact-compare
left, right = (ct.rng(i).random((256, 256), dtype="float32") for i in (10, 11))
c = ct.empty((256, 256), "float32")
# One block for each tile, so that products are added in order of depth, as on the CPU.
sgemm.prepare(
    ct.to_device(left), ct.to_device(right), c, config=SMALL, splits=1
)()
on_cpu = np.zeros((256, 256), "float32")
for i in range(
    256
):  # as a loop on the CPU adds: one product after another, each operation rounded
    on_cpu += left[:, i : i + 1] * right[i : i + 1]
equal = 100 * float((c.get() == on_cpu).mean())
ct.claim(
    id="gemm-exact-compare",
    source="CUDATutorial 06",
    statement={
        "en": "A product is right when each element equals that of the CPU exactly (it was tested with small whole numbers). "
        "Equal elements for random numbers in [0, 1), n = 256.",
        "zh": "每个元素都与 CPU 的结果完全相等，才算正确（原文用的是小整数）。下面是 [0, 1) 随机数、n = 256 时相等元素的比例。",
    },
    predicted=100.0,
    measured=round(equal, 1),
    unit="% equal",
    verdict="confirmed" if equal == 100 else "depends",
)
