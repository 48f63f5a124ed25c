# ---
# jupyter:
#   cudatut:
#     title: {en: "Parallel thinking and nine index formulas", zh: "并行思维与九个索引公式"}
#     requires: sm_75
#     timeout_s: 60
#     sizes:
#       length: [4194304, 4096]
#       many: [16777216, 4096]
#       EXPONENTS: [[31, 32], [9, 10]]
#       GRID_EXTENTS: [[1, 2, 3, 5], [1, 2]]
#       BLOCK_EXTENTS: [[1, 2, 7], [1, 2]]
# ---

# %% [markdown]
# A launch, its data and its indices in one, two and three dimensions. First the
# program that you know, in plain PyCUDA.

# %% program
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

source = """
__global__ void scale(const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * x[i];
}
"""
scale = SourceModule(source).get_function("scale")

n, threads = 1_000_000, 256
blocks = (n + threads - 1) // threads
x = np.random.default_rng(0).standard_normal(n, dtype="float32")
out = np.empty_like(x)
scale(
    cuda.In(x),
    cuda.Out(out),
    np.int32(n),
    grid=(blocks, 1),
    block=(threads, 1, 1),
)
print("right:", np.array_equal(out, 2 * x))

# %% [markdown]
# The same with the helper package: shorter, and checked.

# %% program-2
import cudatut as ct

source = """
__global__ void scale(const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * x[i];
}
"""
scale = ct.Kernel(source, "scale")

n = 1_000_000
x = ct.rng(0).standard_normal(n, dtype="float32")
d_x, out = ct.to_device(x), ct.empty(n, "float32")
scale(d_x, out, n, grid=ct.cdiv(n, 256), block=256)
ct.check(out, 2 * x, name="scale")

# %% [markdown]
# Now two dimensions. Each thread writes four digits: the y and x of its block,
# then its own y and x in the block.

# %% program-3
import cudatut as ct

source = """
__global__ void who(int *out, int rows, int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && column < columns)
    out[row * columns + column] = 1000 * blockIdx.y + 100 * blockIdx.x
                                + 10 * threadIdx.y + threadIdx.x;
}
"""
who = ct.Kernel(source, "who")

rows, columns = 3, 6
out = ct.empty((rows, columns), "int32")
grid = ct.cdiv(columns, 4), ct.cdiv(rows, 2)  # x first: 2 across, 2 down
who(out, rows, columns, grid=grid, block=(4, 2))
for line in out.get():
    print(" ".join(f"{digits:04d}" for digits in line))

# %% [markdown]
# A kernel from a `.cu` file: an image mirrored left to right, with rows and
# columns that do not fill the blocks.

# %% check
flip = ct.Kernel("basics/indexing/indexing.cu", "flip")

for rows in (1, 31, 33, 100):
    for columns in (1, 31, 33, 1000):
        image = ct.rng(rows).random((rows, columns), dtype="float32")
        out = ct.empty(image.shape, "float32")
        grid = ct.cdiv(columns, 32), ct.cdiv(rows, 8)
        flip(ct.to_device(image), out, rows, columns, grid=grid, block=(32, 8))
        ct.check(
            out, image[:, ::-1], name=f"{rows} x {columns}", rtol=0, atol=0
        )

# %% [markdown]
# What happens if rows and columns change places in `grid`? The output begins as
# NaN, so the elements that nobody wrote can be counted.

# %% try-1
rows, columns = 100, 1000
image = ct.rng(0).random((rows, columns), dtype="float32")
out = ct.to_device(np.full(image.shape, np.nan, "float32"))
wrong = ct.cdiv(rows, 32), ct.cdiv(columns, 8)  # should be columns, rows
flip(ct.to_device(image), out, rows, columns, grid=wrong, block=(32, 8))
unwritten = int(np.isnan(out.get()).sum())
ct.facts(
    "rows and columns exchanged in grid",
    {"elements": image.size, "elements that nobody wrote": unwritten},
)

# %% [markdown]
# Threads have numbers beyond 2^31. Which integer type holds them?

# %% overflow-check
last_ids = ct.Kernel("basics/indexing/indexing.cu", "last_ids")

EXPONENTS = (31, 32)
first = {}
for exponent in EXPONENTS:
    block = 2**exponent // 256  # its first thread has the number 2 ** exponent
    ids = block * 256 + np.arange(256)
    out = {name: ct.empty(256, name) for name in ("int32", "uint32", "int64")}
    last_ids(*out.values(), block, grid=block + 1, block=256)
    for name, array in out.items():
        ct.check(array, ids.astype(name), name=f"from 2^{exponent} on, {name}")
    first[f"2^{exponent}"] = [int(array.get()[0]) for array in out.values()]

# %% overflow
types = ("int", "unsigned", "long long")
ct.table(
    "the number of a thread, in three types",
    {name: dict(zip(types, values)) for name, values in first.items()},
    corner="thread number",
)

# %% [markdown]
# Does the wider index cost time? A prediction from the bytes, then the time.

# %% wide
many = 1 << 24
bytes_moved = 2 * 4 * many  # read x, write out
predicted_us = bytes_moved / ct.limits.bandwidth() / 1e3

FILE = "basics/indexing/indexing.cu"
scales = {
    "int": ct.Kernel(FILE, "scale", defines={"INDEX": "int"}),
    "long long": ct.Kernel(FILE, "scale", defines={"INDEX": "long long"}),
}
x = ct.rng(1).standard_normal(many, dtype="float32")
d_x, out = ct.to_device(x), ct.empty(many, "float32")
grid = ct.cdiv(many, 256)
for name, kernel in scales.items():
    ct.poison(out)
    kernel(d_x, out, many, grid=grid, block=256)
    ct.check(out, 2 * x, name=name)

# %% bench
times = ct.bench(
    {
        "int": lambda: scales["int"](d_x, out, many, grid=grid, block=256),
        "long long": lambda: scales["long long"](
            d_x, out, many, grid=grid, block=256
        ),
    },
    bytes=bytes_moved,
    name="scale",
)
int_us, long_us = times["int"].median_us, times["long long"].median_us
ct.facts(
    "scale, by the type of the index",
    {
        "predicted from the bytes": (predicted_us, "us"),
        "long long / int": long_us / int_us,
        "int / predicted": int_us / predicted_us,
    },
)

# %% [markdown]
# The nine formulas: one rule writes all of them. `b` and `t` stand for
# `blockIdx` and `threadIdx`, `G` and `B` for `gridDim` and `blockDim`.


# %% rule
def chain(digits):
    """Digits, slowest first, as one number: ((a * B + b) * C + c) ..."""
    text, _ = digits[0]
    for number, (digit, extent) in enumerate(digits[1:]):
        text = f"({text})" if number else text
        text = f"{text} * {extent} + {digit}"
    return text


LONG = {"b": "blockIdx.", "G": "gridDim.", "t": "threadIdx.", "B": "blockDim."}
SHORT = {letter: letter for letter in LONG}


def formula(grid_dims, block_dims, names=LONG):
    """The id of a thread, for a grid and a block of so many dimensions."""
    blocks = [(names["b"] + a, names["G"] + a) for a in "xyz"[:grid_dims]]
    threads = [(names["t"] + a, names["B"] + a) for a in "xyz"[:block_dims]]
    return chain([*reversed(blocks), *reversed(threads)])


KINDS = [(grid, block) for grid in (1, 2, 3) for block in (1, 2, 3)]
ct.facts(
    "the id of a thread",
    {f"{g}-D grid, {b}-D block": formula(g, b, SHORT) for g, b in KINDS},
)

# %% [markdown]
# Are the nine in the `.cu` file those that the rule writes?

# %% written
import re

nine = ct.Kernel("basics/indexing/indexing.cu", "nine")
written = re.findall(r"return([(b][^;]*);", "".join(nine.source.split()))
derived = ["".join(formula(g, b).split()) for g, b in KINDS]
ct.check(
    np.array([a == b for a, b in zip(derived, written, strict=True)], int),
    np.ones(len(KINDS), int),
    name="formulas in the .cu that are as derived",
)

# %% [markdown]
# Every formula with every grid and block that it claims, one launch each. Two
# threads with the same id leave a place that nobody writes: `ct.check` sees it.

# %% launches
from itertools import product

GRID_EXTENTS = (1, 2, 3, 5)
BLOCK_EXTENTS = (1, 2, 7)


def shapes(extents, dims):
    """Every shape (x, y, z) with these extents, ones beyond `dims`."""
    return [
        shape + (1,) * (3 - dims) for shape in product(extents, repeat=dims)
    ]


def coordinates(grid, block):
    """The six coordinates of thread 0, 1, 2, ... of a launch, 5 bits each."""
    extents = (*reversed(grid), *reversed(block))  # slowest first
    packed = np.zeros(extents, "uint32")
    for axis, along in enumerate(np.indices(extents, sparse=True)):
        packed = packed | along.astype("uint32") << 5 * (5 - axis)
    return packed.reshape(-1)


launches = 0
for grid_dims, block_dims in KINDS:
    chosen = list(
        product(
            shapes(GRID_EXTENTS, grid_dims), shapes(BLOCK_EXTENTS, block_dims)
        )
    )
    expected = [coordinates(grid, block) for grid, block in chosen]
    offsets = np.cumsum([0, *(len(ids) for ids in expected)])
    out = ct.empty(int(offsets[-1]), "uint32")
    for (grid, block), offset in zip(chosen, offsets):
        number = 10 * grid_dims + block_dims
        nine(out, number, int(offset), grid=grid, block=block)
    name = f"{grid_dims}-D grid, {block_dims}-D block: {len(chosen)} launches"
    ct.check(out, np.concatenate(expected), name=name)
    launches += len(chosen)

# %% launches-all
ct.facts("launches that were checked", {"all": launches})

# %% [markdown]
# Which loops may become a kernel with one thread per turn? A list that notes
# who reads and writes which element can tell.


# %% dependences
class Noted:
    """A list that notes which of its elements each turn reads and writes."""

    def __init__(self, values):
        self.values, self.log = list(values), []

    def __getitem__(self, i):
        self.log.append((Noted.turn, "read", i))
        return self.values[i]

    def __setitem__(self, i, value):
        self.log.append((Noted.turn, "write", i))
        self.values[i] = value


def conflicts(body, turns, *lists):
    """Pairs of turns of which one writes what the other reads or writes."""
    for Noted.turn in turns:
        body(Noted.turn, *lists)
    pairs = set()
    for noted in lists:
        for a, how_a, i in noted.log:
            for b, how_b, j in noted.log:
                if a < b and i == j and "write" in (how_a, how_b):
                    pairs.add((a, b))
    return len(pairs)


# %% loops
def double(i, x, out):
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


pairs = {
    "double": conflicts(double, range(12), new(), new()),
    "smooth": conflicts(smooth, range(1, 11), new(), new()),
    "smooth, in place": conflicts(smooth_in_place, range(1, 11), new()),
    "running sum": conflicts(running_sum, range(1, 12), new()),
    "histogram of 4 bins": conflicts(
        histogram, range(12), new(), Noted([0] * 4)
    ),
}
ct.facts("pairs of turns in each other's way, 12 elements", pairs)

# %% [markdown]
# A loop with such pairs, launched all the same: once into another array, which
# is right, then twenty times in place.

# %% in-place
smooth_kernel = ct.Kernel("basics/indexing/indexing.cu", "smooth")
length = 1 << 22
x = ct.rng(0).integers(0, 1000, length).astype("float32")  # exact sums
expected = x.copy()
expected[1:-1] = 0.5 * (x[:-2] + x[2:])
grid = ct.cdiv(length, 256)

d_x, out = ct.to_device(x), ct.empty(length, "float32")
smooth_kernel(d_x, out, length, grid=grid, block=256)
ct.check(out, expected, name="into another array")

runs = []
for _ in range(20):
    d_x = ct.to_device(x)
    smooth_kernel(d_x, d_x, length, grid=grid, block=256)
    runs.append(d_x.get())
wrong = [int((run != expected).sum()) for run in runs]

# %% in-place-result
ct.facts(
    "in place, twenty runs",
    {
        "elements": length,
        "fewest wrong": min(wrong),
        "most wrong": max(wrong),
        "different results": len({run.tobytes() for run in runs}),
    },
)
