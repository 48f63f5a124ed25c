# ---
# jupyter:
#   cudatut:
#     title: {en: "Parallel thinking and nine index formulas", zh: "并行思维与九个索引公式"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# Which loops are maps, one rule from which nine index formulas follow, and where a 32-bit index ends.

# %% setup
import itertools
import re
from itertools import combinations

import numpy as np

import cudatut as ct

FILE = "basics/indexing.cu"
gpu = ct.device()


# %% dependences
class Noted:
    """An array that notes, in `log`, which of its elements the current turn of a loop reads and writes."""

    def __init__(self, values):
        self.values, self.log = list(values), []

    def __getitem__(self, i):
        self.log.append((Noted.turn, "read", i))
        return self.values[i]

    def __setitem__(self, i, value):
        self.log.append((Noted.turn, "write", i))
        self.values[i] = value


def conflicts(body, turns, *arrays):
    """Pairs of turns of which one writes an element that the other reads or writes."""
    for Noted.turn in turns:
        body(Noted.turn, *arrays)
    pairs = set()
    for array in arrays:
        for (a, how_a, i), (b, how_b, j) in combinations(array.log, 2):
            if a != b and i == j and "write" in (how_a, how_b):
                pairs.add((a, b))
    return len(pairs)


def scale(i, x, out):
    out[i] = 2 * x[i]


def smooth(i, x, out):
    out[i] = x[i - 1] + x[i + 1]


def smooth_in_place(i, x):
    x[i] = x[i - 1] + x[i + 1]


def running_sum(i, x):
    x[i] = x[i] + x[i - 1]


def histogram(i, x, bins):
    bins[x[i] % 4] = bins[x[i] % 4] + 1


def new():
    return Noted(range(12))


ct.facts(
    "pairs of turns that are in each other's way, n = 12",
    {
        "scale": conflicts(scale, range(12), new(), new()),
        "smooth": conflicts(smooth, range(1, 11), new(), new()),
        "smooth, in place": conflicts(smooth_in_place, range(1, 11), new()),
        "running sum": conflicts(running_sum, range(1, 12), new()),
        "histogram of 4 bins": conflicts(histogram, range(12), new(), Noted([0] * 4)),
    },
)

# %% in-place
smooth_kernel = ct.Kernel(FILE, "smooth")
n = ct.size(1 << 22, 1 << 12)
x_host = ct.rng(0).integers(0, 1000, n).astype("float32")  # halves of such sums are exact
expected = x_host.copy()
expected[1:-1] = 0.5 * (x_host[:-2] + x_host[2:])

x, out = ct.to_device(x_host), ct.empty(n, "float32")
smooth_kernel(x, out, n, grid=ct.cdiv(n, 256), block=256)
ct.check(out, expected, name="into another array")

runs = []
for _ in range(20):
    x = ct.to_device(x_host)
    smooth_kernel(x, x, n, grid=ct.cdiv(n, 256), block=256)
    runs.append(x.get())
ct.facts(
    "in place, twenty runs",
    {
        "elements": n,
        "fewest wrong": min(int((run != expected).sum()) for run in runs),
        "most wrong": max(int((run != expected).sum()) for run in runs),
        "different results": len({run.tobytes() for run in runs}),
    },
)


# %% rule
def chain(digits):
    """Horner's rule over (digit, extent) pairs, the slowest first: ((a * B + b) * C + c) ..."""
    text, _ = digits[0]
    for number, (digit, extent) in enumerate(digits[1:]):
        text = f"({text}) * {extent} + {digit}" if number else f"{text} * {extent} + {digit}"
    return text


LONG = {"b": "blockIdx.", "G": "gridDim.", "t": "threadIdx.", "B": "blockDim."}
SHORT = {letter: letter for letter in LONG}


def formula(grid_dims, block_dims, names=LONG):
    """The id of a thread for a grid and a block of so many dimensions, as an expression."""
    blocks = [(names["b"] + axis, names["G"] + axis) for axis in "xyz"[:grid_dims]]
    threads = [(names["t"] + axis, names["B"] + axis) for axis in "xyz"[:block_dims]]
    return chain([*reversed(blocks), *reversed(threads)])


KINDS = list(itertools.product((1, 2, 3), repeat=2))
ct.facts(
    "grid x block",
    {f"{g}-D x {b}-D": formula(g, b, SHORT) for g, b in KINDS},
)

# %% written
nine = ct.Kernel(FILE, "nine")
written = re.findall(r"return([(b][^;]*);", "".join(nine.source.split()))  # without line breaks
derived = ["".join(formula(g, b).split()) for g, b in KINDS]
ct.check(
    np.array([a == b for a, b in zip(derived, written, strict=True)], int),
    np.ones(len(KINDS), int),
    name="the nine in the .cu are the nine that were derived",
)

# %% check
GRID_EXTENTS = (1, 2, 3, 5)[: ct.size(4, 2)]  # fewer while a sanitizer runs the example
BLOCK_EXTENTS = (1, 2, 7)[: ct.size(3, 2)]


def shapes(extents, dims):
    """Every shape of `dims` dimensions with these extents, filled up with ones: (x, y, z)."""
    return [shape + (1,) * (3 - dims) for shape in itertools.product(extents, repeat=dims)]


def coordinates(grid, block):
    """What thread 0, 1, 2, ... of a launch must have written: its six coordinates, 5 bits each."""
    extents = (
        *reversed(grid),
        *reversed(block),
    )  # slowest first: z, y, x of the grid, then of the block
    packed = np.zeros(extents, "uint32")
    for axis, extent in enumerate(extents):
        line = np.arange(extent, dtype="uint32").reshape([-1 if a == axis else 1 for a in range(6)])
        packed = packed << 5 | line
    return packed.reshape(-1)


launches = {}
for grid_dims, block_dims in KINDS:
    launch_shapes = [
        (grid, block)
        for grid in shapes(GRID_EXTENTS, grid_dims)
        for block in shapes(BLOCK_EXTENTS, block_dims)
    ]
    expected = [coordinates(grid, block) for grid, block in launch_shapes]
    offsets = np.cumsum([0, *(len(ids) for ids in expected)])
    out = ct.empty(int(offsets[-1]), "uint32")  # poisoned: a slot that nobody writes is found
    for (grid, block), offset in zip(launch_shapes, offsets):
        nine(out, 10 * grid_dims + block_dims, int(offset), grid=grid, block=block)
    kind = f"{grid_dims}-D grid, {block_dims}-D block"
    ct.check(out, np.concatenate(expected), name=f"{kind}: {len(launch_shapes)} launches")
    launches[kind] = len(launch_shapes)
ct.facts("launches that were checked", {"all": sum(launches.values())})

# %% limits
count_blocks = ct.Kernel(FILE, "count_blocks")
blocks, threads = ct.size(100_000, 70), 1024
ran, present = (ct.to_device(np.zeros(1, "int32")) for _ in range(2))
sm_used = ct.to_device(np.zeros(1024, "int32"))
count_blocks(ran, present, sm_used, grid=blocks, block=threads)
ct.check(ran, np.array([blocks], "int32"), name="blocks that ran")
ct.check(present, np.array([threads], "int32"), name="threads of a block")
sms = int(sm_used.get().sum())

old_limit = 65_535 * 512
ct.claim(
    id="grid-limits",
    source="CUDATutorial 05",
    statement={
        "en": "A launch has at most 65535 blocks of at most 512 threads",
        "zh": "一次启动最多 65535 个线程块，每块最多 512 个线程",
    },
    predicted=old_limit,
    measured=blocks * threads,
    unit="threads",
    verdict="refuted" if blocks * threads > old_limit else "confirmed",
)
ct.claim(
    id="grid-within-sm",
    source="CUDATutorial 05",
    statement={
        "en": "An SM is divided into 2 or 3 grids, so a grid lies within one SM",
        "zh": "一个 SM 划分成 2 到 3 个网格，即一个网格只在一个 SM 之内",
    },
    predicted=1,
    measured=sms,
    unit="SMs",
    verdict="refuted" if sms > 1 else "confirmed",
)

# %% overflow
last_ids = ct.Kernel(FILE, "last_ids")
for exponent in (31, 32):
    last = (
        ct.size(2**exponent, 512) // 256
    )  # the number of the block whose first thread is 2 ** exponent
    ids = last * 256 + np.arange(256)
    types = ("int32", "uint32", "int64")
    out = [ct.empty(256, dtype) for dtype in types]
    last_ids(*out, last, grid=last + 1, block=256)
    for array, dtype in zip(out, types):
        ct.check(array, ids.astype(dtype), name=f"thread 2^{exponent} and on, as {dtype}")
    ct.facts(
        f"first thread of block {last}",
        {
            "predicted": last * 256,
            "int": int(out[0].get()[0]),
            "unsigned": int(out[1].get()[0]),
            "long long": int(out[2].get()[0]),
        },
    )

# %% predict
n = ct.size(1 << 24, 1 << 12)
bytes_moved = 2 * 4 * n  # read x, write out
bandwidth = ct.limits.bandwidth()
predicted_us = bytes_moved / bandwidth / 1e3
ct.facts(
    "prediction",
    {
        "bytes": (bytes_moved / 1e6, "MB"),
        "bandwidth": (bandwidth, "GB/s"),
        "time": (predicted_us, "us"),
    },
)

# %% bench
scale_int = ct.Kernel(FILE, "scale", defines={"INDEX": "int"})
scale_long = ct.Kernel(FILE, "scale", defines={"INDEX": "long long"})
x_host = ct.rng(1).standard_normal(n, dtype="float32")
x, out = ct.to_device(x_host), ct.empty(n, "float32")
grid = ct.cdiv(n, 256)
for name, kernel in (("int", scale_int), ("long long", scale_long)):
    ct.poison(out)
    kernel(x, out, n, grid=grid, block=256)
    ct.check(out, 2 * x_host, name=name)
times = ct.bench(
    {
        "int": lambda: scale_int(x, out, n, grid=grid, block=256),
        "long long": lambda: scale_long(x, out, n, grid=grid, block=256),
    },
    bytes=bytes_moved,
    name="scale",
)
ct.facts(
    "scale",
    {
        "predicted": (predicted_us, "us"),
        "measured, int": (times["int"].median_us, "us"),
        "measured, long long": (times["long long"].median_us, "us"),
        "long long / int": times["long long"].median_us / times["int"].median_us,
    },
)
