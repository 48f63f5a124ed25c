# ---
# jupyter:
#   cudatut:
#     title: {en: "mma.sync: attempts", zh: "mma.sync：各种尝试"}
#     requires: sm_80
#     timeout_s: 240
#     sizes:
#       side: [8192, 256]
# ---

# %% [markdown]
# What was tried to make mma_spread faster, with the rate that was predicted; and
# the rung with its parts taken away, which is wrong then, and only timed. All
# have stamps around their loops.

# %% setup
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from cudatut.book.tensor.ladder import faults
from cudatut.book.tensor.mma_sync import stages
from cudatut.book.measure import stamps
from cudatut.book.tensor.ladder.ladder import LADDER, Gemm
from cudatut.book.measure.sustained import sustained

import cudatut as ct

side = 8192
big = Gemm(side, side, side)


@dataclass
class Attempt:
    """A kernel, and for what it is launched."""

    predicted: float | None  # TFLOP/s at 8192 on an H100
    source: str
    template: str  # with {} for the stages
    tile: tuple[int, int] = (128, 256)  # rows x columns of a block
    threads: int = 256
    stages: int = 4
    least: int = 2  # stages that it needs
    blocks: int = 1  # on an SM

    @property
    def stage(self) -> int:
        """Bytes of a stage, and of two mbarriers."""
        return sum(self.tile) * 128 + 16

    @property
    def name(self) -> str:
        return self.template.format(self.stages)

    @cached_property
    def kernel(self) -> ct.Kernel:
        return ct.Kernel(self.source, self.name)

    def prepare(self, problem: Gemm) -> tuple[Callable, object]:
        """What launches it, and its stamps."""
        rows, columns = self.tile
        grid = ct.cdiv(problem.n, columns), ct.cdiv(problem.m, rows)
        seen = stamps.space(grid[0] * grid[1])

        def run():
            self.kernel(
                problem.a, problem.b, problem.c,
                problem.m, problem.n, problem.k, seen,
                grid=grid, block=self.threads,
                shared=self.stages * self.stage,
            )  # fmt: skip

        return run, seen


# %% attempts
STAMP = "stamp(stamps + 4 * (blockIdx.y * gridDim.x + blockIdx.x)"
LOOP = "#pragma unroll 1\n  for (int start"
STAMPED = (
    ("constexpr int BM =", '#include "measure/stamps.cuh"\nconstexpr int BM ='),
    (
        "C, int m, int n, int k) {",
        "C, int m, int n, int k, long long* stamps) {",
    ),
    (LOOP, f"{STAMP});\n{LOOP}"),
    ("  // --8<-- [end:loop]", f"{STAMP} + 2);"),
)
ONE_BURST = [("SHARE = (COUNT + STEPS - 2) / (STEPS - 1)", "SHARE = COUNT")]
NARROW = [("BN = 256", "BN = 128"), ("(THREADS, 1)", "(THREADS, 2)")]
NO_COPIES = [("        copies.start(to, i);", "(void)to;")]
NO_BARRIER = [("__syncthreads();  // it has arrived", "//")]
FIRST = "row, column, 0);"
SECOND = "parts[1].load(stages, stages + BM * 128, row, column, 1);"
NO_LOADS = [
    (FIRST, f"{FIRST}\n{SECOND}"),
    (
        "parts[(step + 1) % 2].load(tile, tile + BM * 128, row, column,\n"
        "                                 (step + 1) % STEPS);",
        "",
    ),
]


def changed(predicted, *changes, **launch):
    """mma_spread with words replaced."""
    source = faults.changed(LADDER["mma_spread"], *STAMPED, *changes)
    return Attempt(predicted, source, "gemm_mma_spread<{}>", **launch)


def other(predicted, rows, mbarriers, **launch):
    """A kernel of mma_attempts.cu."""
    template = (
        f"gemm_mma_attempt<{rows}, 256, {rows // 2}, 64, {{}}, {mbarriers}>"
    )
    source = "tensor/mma_sync/mma_attempts.cu"
    return Attempt(predicted, source, template, (rows, 256), **launch)


def fitting(attempts):
    """Those that fit in shared memory, with fewer stages where need be; the
    others are left out, after a note. On an H100 all are as they stand."""
    found = {}
    for name, one in attempts.items():
        count = min(one.stages, stages.room(one.blocks) // one.stage)
        if count < one.stages:
            stages.note(name, one.stages, count, one.least, one.blocks)
        if count >= one.least:
            found[name] = replace(one, stages=count)
    return found


TRIED = {
    "mma_spread": changed(540),
    "tiles in groups of 8": changed(535, ("GROUP = 16", "GROUP = 8")),
    "all copies at once": changed(480, *ONE_BURST),
    "three stages": changed(535, stages=3),
    "two blocks of 128 x 128": changed(
        500, *NARROW, stages=3, tile=(128, 128), threads=128, blocks=2
    ),
    "mbarriers": other(550, 128, "true", least=3),
    "96 x 64 by a warp": other(560, 192, "false"),
}
REMOVED = {
    "no copies": changed(None, *NO_COPIES),
    "no copies, no barrier": changed(None, *NO_COPIES, *NO_BARRIER),
    "only products": changed(None, *NO_COPIES, *NO_BARRIER, *NO_LOADS),
}
TRIED = fitting(TRIED)
# Without barriers blocks race: that is no news to a sanitizer.
ALL = TRIED | ({} if ct.tool.running() else fitting(REMOVED))
ct.compile_ahead((one.source, one.name) for one in ALL.values())

# %% check
for name, one in TRIED.items():
    for sizes in ((130, 264, 72), (257, 520, 200), (520, 1032, 704)):
        small = Gemm(*sizes, integers=True)
        ct.poison(small.c)
        one.prepare(small)[0]()
        small.compare(f"{name}, {' x '.join(map(str, sizes))}, integers")

# %% race
prepared = {name: one.prepare(big) for name, one in ALL.items()}
found = ct.bench(
    {name: run for name, (run, _) in prepared.items()},
    flops=big.flops,
    rounds=9,
    name=f"{side} x {side} x {side}",
)

# %% compare
table = {}
for name, one in ALL.items():
    cycles, mhz = stamps.between(prepared[name][1])
    # a quarter of an SM multiplies a quarter of what its blocks do
    products = one.blocks * one.tile[0] * one.tile[1] * side / 2048 / 4
    table[name] = {
        "predicted": one.predicted,
        "measured": found[name].value,
        "a product": cycles / products,
        "clock": mhz,
    }
if not ct.tool.running():
    ct.table(
        f"{side} x {side} x {side}",
        table,
        corner="attempt",
        units={
            "predicted": "TFLOP/s",
            "measured": "TFLOP/s",
            "a product": "cycles",
            "clock": "MHz",
        },
    )

# %% [markdown]
# Again and again for two seconds, without pauses: what nvidia-smi reads in the
# second half.


# %% held
if not ct.tool.running():
    table = {}
    held = stages.fitting(LADDER[name] for name in ("mma_large", "mma_spread"))
    for name, rung in held.items():
        run = sustained(big.launcher(rung), big.flops, seconds=2, every_ms=100)
        late = run.late()
        table[name] = {
            "rate": run.rate,
            "clock": late.mhz,
            "power": late.watts,
            "power limit": late.limit,
        }
    ct.table(
        f"{side} x {side} x {side}",
        table,
        corner="rung",
        units={
            "rate": "TFLOP/s",
            "clock": "MHz",
            "power": "W",
            "power limit": "W",
        },
    )
