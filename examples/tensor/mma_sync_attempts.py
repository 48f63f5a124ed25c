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
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import faults
import pycuda.driver as cuda
import stamps
from ladder import LADDER, Gemm

import cudatut as ct

side = 8192
big = Gemm(side, side, side)


@dataclass
class Attempt:
    """A kernel, and for what it is launched."""

    predicted: float | None  # TFLOP/s at 8192
    source: str
    name: str
    tile: tuple[int, int] = (128, 256)  # rows x columns of a block
    threads: int = 256
    stages: int = 4
    blocks: int = 1  # on an SM

    @cached_property
    def kernel(self) -> ct.Kernel:
        return ct.Kernel(self.source, self.name)

    def prepare(self, problem: Gemm) -> tuple[Callable, object]:
        """What launches it, and its stamps."""
        rows, columns = self.tile
        grid = ct.cdiv(problem.n, columns), ct.cdiv(problem.m, rows)
        seen = stamps.space(grid[0] * grid[1])
        shared = self.stages * ((rows + columns) * 128 + 16)

        def run():
            self.kernel(
                problem.a, problem.b, problem.c,
                problem.m, problem.n, problem.k, seen,
                grid=grid, block=self.threads, shared=shared,
            )  # fmt: skip

        return run, seen


# %% attempts
STAMP = "stamp(stamps + 4 * (blockIdx.y * gridDim.x + blockIdx.x)"
LOOP = "#pragma unroll 1\n  for (int start"
STAMPED = (
    ("constexpr int BM =", '#include "tensor/stamps.cuh"\nconstexpr int BM ='),
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


def changed(predicted, *changes, stages=4, **launch):
    """mma_spread with words replaced."""
    source = faults.changed(LADDER["mma_spread"], *STAMPED, *changes)
    name = f"gemm_mma_spread<{stages}>"
    return Attempt(predicted, source, name, stages=stages, **launch)


def other(predicted, rows, mbarriers):
    """A kernel of mma_attempts.cu."""
    name = f"gemm_mma_attempt<{rows}, 256, {rows // 2}, 64, 4, {mbarriers}>"
    return Attempt(predicted, "tensor/mma_attempts.cu", name, (rows, 256))


TRIED = {
    "mma_spread": changed(540),
    "tiles in groups of 8": changed(535, ("GROUP = 16", "GROUP = 8")),
    "all copies at once": changed(480, *ONE_BURST),
    "three stages": changed(535, stages=3),
    "two blocks of 128 x 128": changed(
        500, *NARROW, stages=3, tile=(128, 128), threads=128, blocks=2
    ),
    "mbarriers": other(550, 128, "true"),
    "96 x 64 by a warp": other(560, 192, "false"),
}
REMOVED = {
    "no copies": changed(None, *NO_COPIES),
    "no copies, no barrier": changed(None, *NO_COPIES, *NO_BARRIER),
    "only products": changed(None, *NO_COPIES, *NO_BARRIER, *NO_LOADS),
}
# Without barriers blocks race: that is no news to a sanitizer.
ALL = TRIED | ({} if ct.tool.running() else REMOVED)
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
# Again and again for two seconds, without pauses: what nvidia-smi reads.


# %% held
def held(launch, flops, seconds=2):
    """TFLOP/s, and the medians of MHz, watts and the limit in watts, in the
    second half of so many seconds."""
    asked = "clocks.sm,power.draw.instant,power.limit"
    command = ["nvidia-smi", "-i", cuda.Device(0).pci_bus_id(), "-lms", "100"]
    command += [f"--query-gpu={asked}", "--format=csv,noheader,nounits"]
    launch()
    ct.synchronize()
    done = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as smi:
        start = time.monotonic()
        while not done or done[-1] < seconds:
            for _ in range(16):
                launch()
            ct.synchronize()
            done.append(time.monotonic() - start)
        smi.terminate()
        lines = [x for x in smi.stdout if x.endswith("\n")]
    late = [at for at in done if at >= seconds / 2]
    rate = 16 * (len(late) - 1) * flops / (late[-1] - late[0]) / 1e12
    some = [tuple(map(float, x.split(","))) for x in lines[len(lines) // 2 :]]
    return rate, *map(statistics.median, zip(*some))


if not ct.tool.running():
    table = {}
    for name in ("mma_large", "mma_spread"):
        run = big.launcher(LADDER[name])
        rate, mhz, watts, most = held(run, big.flops)
        table[name] = {
            "rate": rate,
            "clock": mhz,
            "power": watts,
            "power limit": most,
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
