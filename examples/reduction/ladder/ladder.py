"""The ladder of sums: every rung of this part, and how any of them is launched, checked and compared.

A kernel `(in, out, n)` leaves one partial sum per block, and is launched again on these until one is left. A kernel
`(in, out, n, partials, ticket)`, marked `launches=one`, writes the sum itself. What its `@rung` line cannot say, a
function of this file does: `launch=bulk` is `plan_bulk`, `launch=flags` is `plan_flags`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

import cudatut as ct

C_TYPES = {"float32": "float", "int32": "int"}


@dataclass(frozen=True)
class Plan:
    """How an array is summed: by the kernel of a rung, in blocks of `block` threads.

    rung: the one that is launched; one that was asked for may leave the array to another. grid: blocks for n elements.
    """

    rung: ct.Rung
    kernel: ct.Kernel
    block: int
    grid: Callable[[int], int]
    shared: int = 0

    def steps(self, n: int) -> list[tuple[int, int]]:
        """Elements and blocks of each launch."""
        found = [(n, self.grid(n))]
        if self.rung.options.get("launches") != "one":
            while (left := found[-1][1]) > 1:
                found.append((left, self.grid(left)))
        return found

    def depth(self, n: int) -> int:
        """No element passes more additions on its way into the sum, or not many more: 64 are for the trees."""
        steps = self.steps(n)
        serial = [ct.cdiv(left, blocks * self.block) for left, blocks in steps]
        # The last block of a single launch adds up what all have left.
        return 64 + sum(serial) + ct.cdiv(steps[-1][1], self.block)


class Sum:
    """The sum of n random elements: float32 in [-1, 1), or int32 in [-1000, 1000], whose sum wraps as the hardware's.

    n: any length, 0 included. dtype: 'float32' or 'int32'. data: an array to sum instead of random elements: a host
    array, or one on the GPU, such as a view, which is then not copied.
    """

    def __init__(
        self,
        n: int = 1 << 24,
        dtype: str = "float32",
        data: object | None = None,
        seed: int = 0,
    ):
        if data is None:
            data = random_elements(n, dtype, seed)
        there = hasattr(data, "gpudata")
        self.host = data.get() if there else data
        self.x = data if there else ct.to_device(data)
        self.dtype, self.n = self.host.dtype, self.host.size
        self.bytes, self.flops = self.x.nbytes, None

    @cached_property
    def expected(self) -> np.ndarray:
        """The sum as one element: in float64, or in int64 and then wrapped to 32 bits."""
        if self.dtype.kind == "f":
            return np.array([self.host.sum(dtype="float64")])
        return np.array([self.host.sum(dtype="int64")]).astype("int32")

    def tolerance_of(self, depth: int) -> float:
        """Absolute bound on the error of a float32 sum whose elements pass `depth` additions: see 'Scoreboard'."""
        if self.dtype.kind != "f":
            return 0.0
        # Each addition rounds by at most eps / 2 of a partial sum.
        return float(depth * np.finfo("float32").eps / 2 * self._magnitude)

    @property
    def tolerance(self) -> float:
        """The bound for a kernel whose threads, no fewer than half of those that the GPU holds, share the elements."""
        gpu = ct.device()
        threads = gpu.sm_count * gpu.max_threads_per_sm // 2
        return self.tolerance_of(64 + ct.cdiv(self.n, threads))

    @cached_property
    def _magnitude(self) -> float:
        """Sum of the finite |x|, in pieces: in one, float64 copies would need three times the memory of the input."""
        pieces = (
            self.host[i : i + (1 << 24)] for i in range(0, self.n, 1 << 24)
        )
        return sum(
            float(np.abs(x[np.isfinite(x)]).sum(dtype="float64"))
            for x in pieces
        )

    def plan(self, rung: ct.Rung, block: int | None = None) -> Plan:
        """How a rung sums these elements on this GPU. block: one of the rung's `blocks`; default: its `block`.

        Raises ct.RungError for a line that says too little, ct.LaunchError for an array that begins at an odd place.
        """
        needs = rung.options.get("requires", "sm_75")
        if not ct.supports(ct.device().compute_capability, needs):
            return self.plan(LADDER["limit"], block)
        if "vectors" in rung.options:
            self.must_be_aligned(rung)
        if name := rung.options.get("launch"):
            if name not in PLANS:
                raise ct.RungError(
                    f"{rung.path}: launch={name} is none of {', '.join(PLANS)}"
                )
            return PLANS[name](self, rung, block)
        block = block or fitting_block(rung)
        kernel = self.compile(rung, block)
        return Plan(rung, kernel, block, self._grid(rung, kernel, block))

    def must_be_aligned(self, rung: ct.Rung) -> None:
        """Raise ct.LaunchError unless the array begins at a multiple of 16 bytes."""
        if int(self.x.gpudata) % 16:
            raise ct.LaunchError(
                f"{rung.path} reads 16 bytes at a time, but the array begins at an address that is no multiple of 16, as "
                "that of a view like x[1:]; copy it first (x.copy()), or take the rung one_launch"
            )

    def compile(self, rung: ct.Rung, block: int, **defines) -> ct.Kernel:
        """The rung's kernel for this type and block."""
        element = C_TYPES[str(self.dtype)]
        return rung.compile(BLOCK=block, ELEMENT=element, **defines)

    def launcher(
        self,
        rung: ct.Rung,
        block: int | None = None,
        stream: object | None = None,
    ) -> Callable[[], object]:
        """A callable that sums once; `.out` is where the sum arrives (one element of the dtype), `.plan` the Plan.

        All its launches are in one stream, so they follow each other, and it has partial sums and a ticket of its own:
        launches of two launchers may overlap, launches of one may not.
        """
        plan = self.plan(rung, block)
        one = plan.rung.options.get("launches") == "one"
        run = (self._one_launch if one else self._many_launches)(plan, stream)
        run.plan = plan
        return run

    def tiles(self, rung: ct.Rung, block: int, n: int | None = None) -> int:
        """Blocks of so many threads that n elements take (default: all), a tile each."""
        per_tile = block * rung.number("vectors") * 16 // self.dtype.itemsize
        return ct.cdiv(self.n if n is None else n, per_tile)

    def _grid(
        self, rung: ct.Rung, kernel: ct.Kernel, block: int
    ) -> Callable[[int], int]:
        """Blocks for n elements."""
        how = rung.options.get("grid", "per_thread")
        if how == "resident":
            resident = (
                kernel.resources(block).blocks_per_sm * ct.device().sm_count
            )
            # The second launch, over the few partial sums of the first, is one block: else it would never end.
            return lambda n: (
                1 if n <= resident else min(resident, ct.cdiv(n, block))
            )
        if how == "tiles":
            return lambda n: max(1, self.tiles(rung, block, n))
        if how == "per_thread":
            per_block = block * rung.number("per_thread", 1)
        else:
            raise ct.RungError(
                f"{rung.path}: grid={how} is none of resident, tiles, per_thread"
            )
        return lambda n: max(1, ct.cdiv(n, per_block))

    def _one_launch(
        self, plan: Plan, stream: object | None
    ) -> Callable[[], object]:
        blocks, out = plan.grid(self.n), ct.empty(1, self.dtype)
        partials, state = self._workspace(blocks)

        def run() -> None:
            plan.kernel(
                self.x,
                out,
                self.n,
                partials,
                state,
                grid=blocks,
                block=plan.block,
                shared=plan.shared,
                stream=stream,
            )

        run.out = out
        return run

    def _workspace(self, blocks: int) -> tuple:
        """Partial sums, and a ticket: one for each launcher."""
        # Room for a word of 8 bytes from each block, for a rung that wants it.
        state = ct.to_device(np.zeros(2 + 2 * blocks, "uint32"))
        return ct.empty(blocks, self.dtype), state

    def _many_launches(
        self, plan: Plan, stream: object | None
    ) -> Callable[[], object]:
        steps, source = [], self.x
        for left, blocks in plan.steps(self.n):
            target = ct.empty(blocks, self.dtype)
            steps.append((source, target, left, blocks))
            source = target

        def run() -> None:
            for source, target, left, blocks in steps:
                plan.kernel(
                    source,
                    target,
                    left,
                    grid=blocks,
                    block=plan.block,
                    stream=stream,
                )

        run.out = target
        return run

    def check(self, rung: ct.Rung, block: int | None = None) -> None:
        """Sum once from poisoned memory and compare with the reference; raises CheckError."""
        run = self.launcher(rung, block)
        run()
        ct.check(
            run.out,
            self.expected,
            name=f"{rung.name}, {self.dtype}, n = {self.n}"
            + (f", block = {block}" if block else ""),
            rtol=0.0,
            atol=self.tolerance_of(run.plan.depth(self.n)),
        )

    def vendors(self) -> dict[str, Callable[[], object] | None]:
        """CUB, compiled from the CUDA toolkit."""
        return {"CUB": ct.vendor.sum(self.x)}


def fitting_block(rung: ct.Rung) -> int:
    """The rung's `block`, or the largest smaller one of its `blocks` of which an SM has threads for two.

    While one of two blocks hands over its sum, the other one loads.
    """
    most, block = ct.device().max_threads_per_sm // 2, rung.number("block")
    smaller = [size for size in rung.numbers("blocks") if size <= most]
    return block if block <= most or not smaller else max(smaller)


# While the memory is busy a byte is on its way for about so long: far longer
# than in an idle memory, because requests wait in queues.
ON_ITS_WAY_US = 4
MOST_WORDS = 256  # blocks of which one can still read all words


def wanted_in_flight() -> float:
    """Bytes that each SM should have in flight to keep this GPU's memory busy, by Little's law."""
    gpu = ct.device()
    # Bytes per second; two transfers per clock.
    bandwidth = 2 * gpu.memory_clock_khz * 1e3 * gpu.bus_bits / 8
    return bandwidth / gpu.sm_count * ON_ITS_WAY_US * 1e-6


def plan_bulk(sums: Sum, rung: ct.Rung, block: int | None = None) -> Plan:
    """As many blocks as the GPU holds at once, two on an SM; together the rings of two hold what should be in flight."""
    sums.must_be_aligned(rung)
    stages, block = 2, block or rung.number("block")
    # Bytes of a ring with one vector per thread and stage; 2 KiB of an SM's
    # half are for the rest of what a block needs.
    per_vector = 16 * block * stages
    wanted = max(1, wanted_in_flight() / 2 / per_vector)
    most = (ct.device().shared_per_sm // 2 - 2048) // per_vector
    vectors = 1 << round(math.log2(wanted))  # the nearest power of two
    while vectors > most:
        vectors //= 2
    kernel = sums.compile(rung, block, VECTORS=vectors, STAGES=stages)
    shared = vectors * per_vector
    per_sm = kernel.resources(block, shared).blocks_per_sm
    resident = per_sm * ct.device().sm_count
    piece = block * vectors * 16 // sums.dtype.itemsize
    return Plan(
        rung,
        kernel,
        block,
        lambda n: max(1, min(resident, ct.cdiv(n, piece))),
        shared,
    )


def plan_flags(sums: Sum, rung: ct.Rung, block: int | None = None) -> Plan:
    """One block that can do it alone, else as few as possible; an array that is too long for that is left to another rung.

    The smallest block that is enough alone; or the smallest, from the rung's `block` up, of which MOST_WORDS are enough.
    """
    if not block:
        tiles = {k: sums.tiles(rung, k) for k in rung.numbers("blocks")}
        fit = [k for k in tiles if tiles[k] <= 1] or [
            k
            for k in tiles
            if k >= rung.number("block") and tiles[k] <= MOST_WORDS
        ]
        block = min(fit, default=None)
    if not block or sums.tiles(rung, block) > MOST_WORDS:
        return sums.plan(long_rung(), block)
    kernel = sums.compile(rung, block)
    return Plan(
        rung, kernel, block, lambda n: max(1, sums.tiles(rung, block, n))
    )


def long_rung() -> ct.Rung:
    """The rung for long arrays: `limit`, if its loads are enough to keep the memory of this GPU busy, else `bulk`."""
    limit = LADDER["limit"]
    asked = 16 * limit.number("vectors") * ct.device().max_threads_per_sm
    return limit if asked >= wanted_in_flight() else LADDER["bulk"]


PLANS = {"bulk": plan_bulk, "flags": plan_flags}


def random_elements(n: int, dtype: str, seed: int = 0) -> np.ndarray:
    """n random elements: float32 in [-1, 1), or int32 in [-1000, 1000]."""
    rng = ct.rng(seed)
    if dtype == "float32":
        return rng.random(n, dtype="float32") * np.float32(2) - np.float32(1)
    return rng.integers(-1000, 1001, n, dtype="int32")


LADDER = ct.Ladder(
    "reduction",
    Sum,
    trials=[
        {"n": n, "dtype": dtype} for dtype in C_TYPES for n in (0, *ct.RAGGED)
    ],
    contest={"n": 1 << 26, "dtype": "float32"},
)
