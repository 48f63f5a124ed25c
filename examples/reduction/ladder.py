"""The ladder of sums: every rung of this part, and how any of them is launched, checked and compared.

A kernel `(in, out, n)` leaves one partial sum per block, and is launched again on these until one is left. A kernel
`(in, out, n, partials, ticket)`, marked `launches=one`, writes the sum itself.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np

import cudatut as ct

RUNGS = (
    "naive",
    "interleaved",
    "sequential",
    "two_per_thread",
    "unrolled",
    "shuffle",
    "few_blocks",
    "one_launch",
    "limit",
    "flags",
)

C_TYPES = {"float32": "float", "int32": "int"}


class Sum:
    """The sum of n random elements: float32 in [-1, 1), or int32 in [-1000, 1000], whose sum wraps as the hardware's.

    n: any length, 0 included. dtype: 'float32' or 'int32'. data: a host array to sum instead of random elements.
    """

    def __init__(
        self,
        n: int = 1 << 24,
        dtype: str = "float32",
        data: np.ndarray | None = None,
        seed: int = 0,
    ):
        self.dtype = np.dtype(dtype)
        self.host = (
            data if data is not None else random_elements(n, dtype, seed)
        )
        self.n = self.host.size
        self.x = ct.to_device(self.host)
        self.bytes, self.flops = self.x.nbytes, None
        self._buffers: dict[str, object] = {}

    @cached_property
    def expected(self) -> np.ndarray:
        """The sum as one element: in float64, or in int64 and then wrapped to 32 bits."""
        if self.dtype.kind == "f":
            return np.array([self.host.sum(dtype="float64")])
        return np.array([self.host.sum(dtype="int64")]).astype("int32")

    @cached_property
    def tolerance(self) -> float:
        """Absolute bound on the error of a float32 sum by a tree over chunks: see the chapter 'Scoreboard'."""
        if self.dtype.kind != "f":
            return 0.0
        # Each addition rounds by at most eps / 2 of a partial sum; no element passes more than `depth` of them.
        depth = 64 + np.ceil(self.n / 2**18)
        return float(depth * np.finfo("float32").eps / 2 * self._magnitude())

    def _magnitude(self) -> float:
        """Sum of the finite |x|, in pieces: in one, float64 copies would need three times the memory of the input."""
        pieces = (
            self.host[i : i + (1 << 24)] for i in range(0, self.n, 1 << 24)
        )
        return sum(
            float(np.abs(x[np.isfinite(x)]).sum(dtype="float64"))
            for x in pieces
        )

    def _buffer(self, what: str, count: int, dtype=None):
        key = f"{what} {count}"
        if key not in self._buffers:
            if what == "state":
                self._buffers[key] = ct.to_device(np.zeros(count, "uint32"))
            else:
                self._buffers[key] = ct.empty(count, dtype or self.dtype)
        return self._buffers[key]

    def launcher(
        self, rung: ct.Rung, block: int | None = None
    ) -> Callable[[], object]:
        """A callable that sums once; `.out` is where the sum arrives (one element of the dtype).

        block: threads per block, one of the rung's `blocks`; default its `block`, or for a rung that takes only so
        `few` blocks what `fitting` says.
        """
        if "few" in rung.options:
            fitting = block or self.fitting(rung)
            if not fitting or self.tiles(rung, fitting) > rung.number("few"):
                return self.launcher(self._longer(rung), block)
            block = fitting
        block = block or rung.number("block")
        kernel = rung.compile(BLOCK=block, ELEMENT=C_TYPES[str(self.dtype)])
        grid = self._grid(rung, kernel, block)
        run = (
            self._one_launch
            if rung.options.get("launches") == "one"
            else self._many_launches
        )
        return run(kernel, grid, block)

    def _longer(self, rung: ct.Rung) -> ct.Rung:
        """The rung that takes what `few` blocks cannot. Raises ct.RungError."""
        name = rung.options.get("long")
        if name not in LADDER.names:
            raise ct.RungError(
                f"{rung.path}: {self.n} elements are too many for few={rung.options['few']} blocks; say with long=RUNG which "
                f"rung takes them, one of {', '.join(LADDER.names)}"
            )
        return LADDER[name]

    def fitting(self, rung: ct.Rung) -> int | None:
        """The smallest block that can do the work alone; or the smallest, from `block` up, of which `few` are enough."""
        sizes, least, few = (
            rung.numbers("blocks"),
            rung.number("block"),
            rung.number("few"),
        )
        alone = [size for size in sizes if self.tiles(rung, size) <= 1]
        shared = [
            size
            for size in sizes
            if size >= least and self.tiles(rung, size) <= few
        ]
        return next(iter(alone + shared), None)

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
        self, kernel: ct.Kernel, grid: Callable[[int], int], block: int
    ) -> Callable[[], object]:
        blocks, out = grid(self.n), ct.empty(1, self.dtype)
        # Room for a word of 8 bytes from each block, for a rung that wants it.
        partials, state = (
            self._buffer("partials", blocks),
            self._buffer("state", 2 + 2 * blocks),
        )

        def run() -> None:
            kernel(
                self.x, out, self.n, partials, state, grid=blocks, block=block
            )

        run.out = out
        return run

    def _many_launches(
        self, kernel: ct.Kernel, grid: Callable[[int], int], block: int
    ) -> Callable[[], object]:
        steps, source, left = [], self.x, self.n
        while True:
            blocks = grid(left)
            target = ct.empty(blocks, self.dtype)
            steps.append((source, target, left, blocks))
            source, left = target, blocks
            if blocks == 1:
                break

        def run() -> None:
            for source, target, left, blocks in steps:
                kernel(source, target, left, grid=blocks, block=block)

        run.out = steps[-1][1]
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
            atol=self.tolerance,
        )

    def vendors(self) -> dict[str, Callable[[], object] | None]:
        """CUB, compiled from the CUDA toolkit."""
        return {"CUB": ct.vendor.sum(self.x)}


def random_elements(n: int, dtype: str, seed: int = 0) -> np.ndarray:
    """n random elements: float32 in [-1, 1), or int32 in [-1000, 1000]."""
    rng = ct.rng(seed)
    if dtype == "float32":
        return rng.random(n, dtype="float32") * np.float32(2) - np.float32(1)
    return rng.integers(-1000, 1001, n, dtype="int32")


LADDER = ct.Ladder(
    "reduction",
    RUNGS,
    Sum,
    trials=[
        {"n": n, "dtype": dtype} for dtype in C_TYPES for n in (0, *ct.RAGGED)
    ],
    contest={"n": 1 << 26, "dtype": "float32"},
)
