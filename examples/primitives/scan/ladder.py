"""The ladder of scans: how any of its kernels is launched, checked and compared.

The chapter's own kernels are launched by scans.py. A kernel `(in, out, sums, n)` of a reader scans each tile by itself and
writes its sum, `sums[blockIdx.x]`; the chapter's `scan_sums` and `add_sums` add what precedes it. A kernel `(in, out, n,
state)`, marked `launches=one`, does it alone: `state` are words of 8 bytes, 0 before the first launch and as the kernel
leaves them before the others, 16 of them and 2 for each tile. ELEMENT is `float` or `int`, n a `long long`. Its `@rung` line
says how it is launched, a block for each tile:

    block=256      threads of a block, also the macro BLOCK
    per_thread=2   elements of each thread: a tile has block * per_thread of them; 1 where it is left out
    vectors=8      loads of 16 bytes of each thread instead, also the macro VECTORS
    launches=one   one launch
"""

from collections.abc import Callable

import numpy as np

import cudatut as ct
from cudatut.book.primitives.scan import reference
from cudatut.book.primitives.scan.scans import (
    C_TYPES,
    FOLDER,
    HEADER,
    Scan,
    new_state,
)
from cudatut.book.rivals import cub, torch_rival

EACH = 2  # words of a state for each tile; HEADER lie in front


class Sums:
    """The sums of all elements up to each, of random ones: float32 of a normal distribution, or int32 that wrap around.

    n: any length, 0 included.
    """

    def __init__(self, n: int = 100_003, dtype: str = "float32", seed: int = 0):
        self.n, self.dtype = n, np.dtype(dtype)
        chance = ct.rng(seed)
        if dtype == "float32":
            self.host = chance.standard_normal(n, dtype="float32")
        else:
            self.host = chance.integers(-(1 << 30), 1 << 30, n, dtype=dtype)
        self.x, self.out = ct.to_device(self.host), ct.empty(n, dtype)
        self.bytes, self.flops = 2 * self.dtype.itemsize * n, None

    def launcher(self, rung: ct.Rung) -> Callable[[], object] | None:
        """A callable that scans once. None, after a note, where this GPU lacks what a rung of the chapter needs."""
        if rung in LADDER.rungs:
            return self._own(rung)
        if not self.n:
            return lambda: None
        block, vectors = rung.number("block"), rung.number("vectors", 0)
        each = vectors * 16 // self.dtype.itemsize
        tile = block * (each or rung.number("per_thread", 1))
        defines = {"ELEMENT": C_TYPES[self.dtype.name], "BLOCK": block}
        if vectors:
            defines["VECTORS"] = vectors
        tiles = ct.cdiv(self.n, tile)
        once = rung.choice("launches", "one")
        kernel = rung.compile(**defines)
        if once:
            state = new_state(HEADER + EACH * tiles)
            return lambda: kernel(
                self.x, self.out, self.n, state, grid=tiles, block=block
            )
        return self._three_launches(kernel, tiles, tile, block)

    def _own(self, rung: ct.Rung) -> Callable[[], object] | None:
        needs = rung.options.get("requires", "sm_75")
        if not ct.supports(ct.device().compute_capability, needs):
            ct.show(
                f"no row for {rung.name}: it needs {needs}, but this is {ct.device().arch}"
            )
            return None
        scan = Scan(rung.name, self.n, self.dtype.name)
        return lambda: scan(self.x, self.out)

    def _three_launches(
        self, kernel: ct.Kernel, tiles: int, tile: int, block: int
    ) -> Callable[[], object]:
        own = {"ELEMENT": C_TYPES[self.dtype.name], "BLOCK": 256}
        between = ct.Kernel(f"{FOLDER}/passes.cu", "scan_sums", defines=own)
        last = ct.Kernel(f"{FOLDER}/tree.cu", "add_sums", defines=own)
        sums = ct.empty(tiles, self.dtype)

        def run() -> None:
            kernel(self.x, self.out, sums, self.n, grid=tiles, block=block)
            between(sums, tiles, grid=1, block=256)
            last(self.out, sums, tile, self.n, grid=tiles, block=256)

        return run

    def check(self, rung: ct.Rung) -> None:
        """Scan twice into poisoned memory and compare with NumPy; raises CheckError.

        Twice, since a kernel of one launch has to leave its state as it wants to find it.
        """
        wanted, size = reference.sums(self.host), reference.most(self.host)
        ct.require(rung.options.get("requires", "sm_75"))
        run = self.launcher(rung)
        for launch in ("first", "second"):
            ct.poison(self.out)
            run()
            name = f"{rung.name}, {self.dtype}, n = {self.n}, {launch} launch"
            ct.check(self.out, wanted, name=name, rtol=0, atol=size)

    def vendors(self) -> dict[str, Callable[[], object] | None]:
        """CUB, compiled from the CUDA toolkit, and PyTorch; of floats."""
        if self.dtype.kind == "i":
            return {}
        arrays = self.x, self.out
        return {
            "CUB": cub.contestant(
                "scan", "float32_InclusiveSum", *arrays, self.n
            ),
            "PyTorch": torch_rival.rival(
                lambda torch, s, t: lambda: torch.cumsum(s, 0, out=t), *arrays
            ),
        }


def _rung(kind: str, file: str, kernel: str, **options: str) -> ct.Rung:
    """One that `Scan(kind, ...)` launches."""
    return ct.Rung(kind, f"{FOLDER}/{file}.cu", kernel, options)


LADDER = ct.Ladder(
    "primitives",
    Sums,
    trials=[
        {"n": n, "dtype": dtype}
        for dtype in ("float32", "int32")
        for n in (*ct.RAGGED, 8191, 8193, 100_003, 1_111_111)
    ],
    contest={"n": 1 << 26, "dtype": "float32"},
    folder="scan",
    rungs=[
        _rung("tree", "tree", "scan_tree"),
        _rung("warps", "tree", "scan_warps"),
        _rung("passes", "passes", "scan_tiles"),
        _rung("look_back", "one_pass", "scan_look_back"),
        _rung("in_order", "one_pass", "scan_in_order"),
        _rung("ahead", "ahead", "scan_ahead", requires="sm_90"),
    ],
)
