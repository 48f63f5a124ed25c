# ---
# jupyter:
#   cudatut:
#     title: {en: "Top-k and selection", zh: "Top-k 与选择"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       rows: [64, 2, 64]
#       n: [128_256, 9_004, 128_256]
#       counted: [64, 2]
#       some: [20_011, 5_003]
# ---

# %% [markdown]
# The 50 largest of 128,256 scores, for each of 64 rows. First the whole
# program: two blocks read a row once, and what is larger than a limit is kept.

# %% program
import numpy as np

import cudatut as ct

rows = 64
n = 128_256  # a multiple of 4: a load takes four numbers
k = 50
blocks, size = 2, 64  # blocks of a row; a power of two, no less than k
topk = ct.Kernel(
    "primitives/topk/topk.cu", "topk_stream", defines={"BLOCKS": blocks}
)
scores = ct.rng(0).standard_normal((rows, n), dtype="float32")
x = ct.to_device(scores)
values, indices = ct.empty((rows, k), "float32"), ct.empty((rows, k), "int32")
lists = ct.empty(rows * blocks * size, "uint64")
tickets = ct.to_device(np.zeros(rows, "uint32"))
room = 8 * (2048 + 4 * 1024) + 4 * 2048  # words of 8 bytes, and counters
topk(
    x, n, n, k, size, values, indices, lists, tickets,
    grid=rows * blocks, block=1024, shared=room,
)  # fmt: skip

order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
ct.check(indices, order, name="where they lie", rtol=0)
best = np.take_along_axis(scores, order, axis=1)
ct.check(values, best, name="the 50 largest", rtol=0, atol=0)
print("the largest of row 0:", values[0].get()[:4])

# %% [markdown]
# The same by a selection, which reads the rows several times.

# %% select
from cudatut.book.primitives.topk.topk import TopK, compile_ahead

TopK(rows, n, k, "select")(x, values, indices)
ct.check(indices, order, name="where they lie, by a selection", rtol=0)

# %% [markdown]
# How many numbers come in, and how often a selection reads a row: both follow
# from the data, so the host can count them.

# %% predict
DIGIT, STEP, SLACK = 11, 4096, 256  # as in the kernel


def ordered(x):
    """`order` of the kernel."""
    bits = (x + np.float32(0)).view("uint32")
    return np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))


def limit_of(first):
    """What a block keeps of its first numbers: those no smaller than this, at
    least k and few more, by one digit of their order."""
    bins = np.sort(ordered(first) >> (32 - DIGIT))[::-1]
    least = bins[k - 1]
    kept = int((bins >= least).sum())
    return first[ordered(first) >> (32 - DIGIT) >= least].min(), kept


def passes_of(row):
    """How often `select` reads a row: once for each digit of the words, until
    the k largest are known, and once to fetch them."""
    words = ordered(row).astype("uint64") << np.uint64(32)
    words |= np.uint64(0xFFFFFFFF) - np.arange(row.size, dtype="uint64")
    words = np.sort(words)[::-1]
    end, passes = 64, 0
    while True:
        end, passes = max(end - DIGIT, 0), passes + 1
        if end == 0 or words[k - 1] >> np.uint64(end) != words[k] >> np.uint64(
            end
        ):
            return passes + 1


counted = 64
half = n // (4 * blocks) * 4 + 4  # numbers of a block
came, kept_first, busy = 0, 0, []
for row in scores[:counted]:
    for part in (row[:half], row[half:]):
        limit, kept = limit_of(part[:STEP])
        kept_first += kept
        later = part[STEP:] > limit
        came += int(later.sum())
        of_warps = later[: later.size // 128 * 128].reshape(-1, 128)
        busy.append(of_warps.any(axis=1).mean())
passes = np.mean([passes_of(row) for row in scores[:counted]])
ct.facts(
    f"{k} of {n} numbers",
    {
        "kept of the first 4096 of a block": kept_first / counted / blocks,
        "come in later, of a row": came / counted,
        "share that comes in later": (100 * came / counted / n, "%"),
        "steps of a warp in which one comes in": (
            float(100 * np.mean(busy)),
            "%",
        ),
        "passes of a selection over a row": float(passes),
        "time of the bytes": (4 * rows * n / ct.limits.bandwidth() / 1e3, "us"),
    },
)

# %% [markdown]
# Right before fast: ragged lengths, rising numbers, equal numbers, zeros of
# both signs, NaN, one block and several, each way.


# %% check
def expected(x, k):
    """NaN first, then the largest; of equals the smaller index."""
    nan = np.isnan(x)
    large = np.where(nan, np.inf, x)
    at = np.arange(x.shape[1])
    return np.array(
        [np.lexsort((at, -large[r], ~nan[r]))[:k] for r in range(len(x))]
    )


def data(kind, rows, n):
    x = ct.rng(n).standard_normal((rows, n), dtype="float32")
    if kind == "rising":
        x.sort(axis=1)
    if kind == "few values":
        x = np.round(x)  # many equal ones, -0.0 and 0.0 among them
    if kind == "NaN and infinity":
        x[:, ::3], x[:, 1::5], x[:, 2::7] = np.nan, np.inf, -np.inf
    return x


def check(kind, rows, n, k, way="stream", **plan):
    host = data(kind, rows, n)
    at = expected(host, k)
    values = ct.empty((rows, k), "float32")
    indices = ct.empty((rows, k), "int32")
    best = TopK(rows, n, k, way, **plan)
    for launch in ("first", "second"):
        best(ct.to_device(host), values, indices)
        name = f"{way}, {kind}, n={n}, {launch} launch"
        ct.check(indices, at, name=name, rtol=0)
    bits = np.take_along_axis(host, at, axis=1).view("uint32")
    ct.check(values.get().view("uint32"), bits, name=f"{name}: bits", rtol=0)


ways = [("stream", {"BLOCKS": 2**e}) for e in range(6)]
compile_ahead([*ways, ("select", {}), ("lanes", {})])  # side by side
some = 20_011
for kind in ("random", "rising", "few values", "NaN and infinity"):
    check(kind, 2, some, 50)
    check(kind, 2, some, 50, BLOCKS=1)
    check(kind, 2, some, 50, "select")
    check(kind, 2, some, 20, "lanes")
for m in (*ct.RAGGED, 5_003):
    check("random", 2, m, min(m, 20))
    check("random", 2, m, min(m, 20), "select")
    check("random", 2, m, min(m, 20), "lanes")

# %% [markdown]
# The ways of this chapter, and PyTorch.

# %% bench
from cudatut.book.rivals.torch_rival import rival


def best_of(way):
    best = TopK(rows, n, k, way)
    return lambda: best(x, values, indices)


bench = ct.bench(
    {
        "select": best_of("select"),
        "stream": best_of("stream"),
        "torch.topk": rival(lambda torch, s: lambda: torch.topk(s, k), x),
        "torch.amax": rival(lambda torch, s: lambda: torch.amax(s, 1), x),
    },
    bytes=4 * rows * n,
    name=f"{k} largest of {n}, {rows} rows",
    rounds=40,
)

# %% goals
if not ct.tool.running():
    ct.goals(
        "beside PyTorch",
        {"stream / torch.topk": bench.goal("stream", "torch.topk", 2.0)},
    )

# %% [markdown]
# What the profiler counts: bytes from memory, and warp instructions for 32
# numbers.

# %% counters
# The profiler runs this file again. The first two launches are those above.
counters = ct.profile_launches(
    "primitives/topk",
    kernel="regex:^topk",
    metrics=["dram__bytes_read.sum", "smsp__inst_executed.sum"],
    launches=2,
)
if counters:
    ct.table(
        "counted",
        {
            way: {
                "bytes from memory / bytes of x": dram / (4 * rows * n),
                "instructions for 32 numbers": executed / (rows * n / 32),
            }
            for way, (dram, executed) in zip(
                ("stream", "select"), (one.values() for one in counters)
            )
        },
        corner="way",
        units={"bytes from memory / bytes of x": "×"},
    )

# %% [markdown]
# One NaN in each row, behind the first step: what the kernel lets in with one
# comparison, and what with the other.

# %% comparisons
AT = 4_300  # in the part of a row's first block, behind its first step
OURS, OTHER = "if (x <= limit ||", "if (!(x > limit) ||"
path = ct.paths.examples_dir() / "primitives/topk/topk.cu"
source = path.read_text(encoding="utf-8")
source = source.replace('"select.cuh"', '"primitives/topk/select.cuh"')
assert source.count(OURS) == 1
rotten = scores.copy()
rotten[:, AT] = np.nan
y = ct.to_device(rotten)


def places(text):
    """Where the best numbers of each row lie."""
    kernel = ct.Kernel(text, "topk_stream", defines={"BLOCKS": blocks})
    kernel(
        y, n, n, k, size, values, indices, lists, tickets,
        grid=rows * blocks, block=1024, shared=room,
    )  # fmt: skip
    return indices.get()


found, other = places(source), places(source.replace(OURS, OTHER))
ct.facts(
    f"a NaN in each of {rows} rows",
    {
        "x > limit lets in": int((other == AT).sum()),
        "!(x <= limit) lets in": int((found == AT).sum()),
        "rows whose first is the NaN": int((found[:, 0] == AT).sum()),
    },
)
