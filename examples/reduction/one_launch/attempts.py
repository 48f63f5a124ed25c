# ---
# jupyter:
#   cudatut:
#     title: {en: "One launch: what was tried", zh: "一次启动：都试过什么"}
#     requires: sm_75
#     timeout_s: 120
#     long: true
#     sizes:
#       huge: [1073741824, 16384]
#       times: [1000, 10]
# ---

# %% [markdown]
# Changes to the last rungs that did not stay, each timed beside what did. First
# changes to `flags`: the source with a line replaced, and other grids.

# %% setup
import numpy as np
from cudatut.book.reduction.ladder.ladder import LADDER, Sum
from cudatut.book.reduction.ladder.large import Repeated

import cudatut as ct

FLAGS = (ct.paths.examples_dir() / "reduction/ladder/flags.cu").read_text(
    "utf-8"
)
LIMIT = LADDER["limit"]


def with_line(old, new):
    """The source of `flags` with a line replaced."""
    if FLAGS.count(old) != 1:
        raise ValueError(f"flags.cu has {FLAGS.count(old)} lines {old!r}")
    return FLAGS.replace(old, new)


# Block 0 is then the one that comes last.
LAST_WAITS = with_line(
    "block = blockIdx.x,",
    "block = gridDim.x - 1 - blockIdx.x,",
)
NOBODY_WAITS = with_line("if (blocks > 1) {", "if (false) {")


def flags(sums, source=FLAGS, block=256, vectors=4, complete=True):
    """A launch of `flags` or of a changed one; complete: it makes the sum."""
    blocks = ct.cdiv(sums.n, block * vectors * 4)
    kernel = ct.Kernel(
        source,
        "reduce_flags",
        defines={"BLOCK": block, "VECTORS": vectors},
    )
    out, partials = ct.empty(1, "float32"), ct.empty(1, "float32")
    state = ct.to_device(np.zeros(2 + 2 * blocks, "uint32"))

    def run():
        kernel(sums.x, out, sums.n, partials, state, grid=blocks, block=block)

    if complete:
        run()
        name = f"n = {sums.n}, {blocks} blocks of {block}"
        atol = sums.tolerance_of(100)
        ct.check(out, sums.expected, name=name, rtol=0, atol=atol)
    return run


nothing = ct.Kernel("__global__ void nothing() {}", "nothing")

# %% short
bench_14 = ct.bench(
    {
        f"{blocks} x {block}": flags(Sum(16_384), block=block)
        for blocks, block in ((1, 1024), (8, 128))
    },
    name="sum of 16384 float32: blocks x threads",
)

# %% hand-over
sums_20 = Sum(1_048_576)
bench_20 = ct.bench(
    {
        "flags": flags(sums_20),
        "the last block waits": flags(sums_20, LAST_WAITS),
        "1 vector, 512 x 512": flags(sums_20, block=512, vectors=1),
        "1 vector, 1024 x 256": flags(sums_20, block=256, vectors=1),
        "nobody waits": flags(sums_20, NOBODY_WAITS, complete=False),
        "empty launch, 256 x 256": lambda: nothing(grid=256, block=256),
    },
    name="sum of 1048576 float32: blocks x threads",
)

# %% [markdown]
# Rung 8 without its fences: does the sum show it?

# %% fences
ONE = (ct.paths.examples_dir() / "reduction/ladder/one_launch.cu").read_text(
    "utf-8"
)
times = 1000
ints = [Sum(1_000_003, "int32", seed=seed) for seed in (0, 1)]
bare = ct.Kernel(
    ONE.replace("__threadfence();", ";"),
    "reduce_one_launch",
    defines={"ELEMENT": "int"},
)
blocks = bare.resources(256).blocks_per_sm * ct.device().sm_count
partials = ct.empty(blocks, "int32")
ticket, kept = ct.to_device(np.zeros(1, "uint32")), ct.empty(times, "int32")
for k in range(times):  # by turns, so that an old partial sum is a wrong one
    bare(
        ints[k % 2].x,
        kept[k : k + 1],
        ints[0].n,
        partials,
        ticket,
        grid=blocks,
        block=256,
    )
expected = np.resize([sums.expected[0] for sums in ints], times)
ct.facts(
    f"one_launch without fences, {times} sums",
    {
        "fences taken out": ONE.count("__threadfence();"),
        "wrong sums": int((kept.get() != expected).sum()),
    },
)

# %% [markdown]
# Rung 9 at 2^30: how many vectors in flight, in blocks of how many threads.


# %% shapes
class Shape(ct.Rung):
    """Rung 9 with another number of vectors."""

    def compile(self, **defines):
        return super().compile(**defines, VECTORS=self.number("vectors"))


def shape(vectors):
    options = {**LIMIT.options, "vectors": str(vectors)}
    return Shape(f"{vectors} vectors", LIMIT.path, LIMIT.kernel, options)


huge = 1_073_741_824
long = Repeated(huge, "int32")
candidates, blocks, vectors = {}, (256, 512, 1024), (2, 4, 8)
for v in vectors:
    for block in blocks:
        long.check(shape(v), block)
        candidates[f"{v} x {block}"] = long.launcher(shape(v), block)
bench_30 = ct.bench(
    candidates | long.vendors(),
    bytes=long.bytes,
    name=f"sum of {huge} int32: vectors x threads",
    rounds=40,
)
ct.table(
    f"limit, {huge} int32",
    {
        f"{v} vectors": {
            f"{block} threads": bench_30[f"{v} x {block}"].value
            for block in blocks
        }
        for v in vectors
    },
    corner="loads of a thread",
    units={f"{block} threads": "GB/s" for block in blocks},
)
