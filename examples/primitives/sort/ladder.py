"""The ladder of sorts: how any of its kernels is launched, checked and compared.

The chapter's own kernels are launched by sort.py. A kernel of a reader moves the keys, uint32, into the order of one digit,
four times in a sort: `(keys, out, n, shift, places)`, `n` an `unsigned`, `shift` an `int`. A block has a tile of keys, and
`places[digit * gridDim.x + blockIdx.x]` says where the first of its keys with this digit goes; the chapter's `count_tiles`
and `scan_tiles` have found this before. Equal digits have to keep their order. Its `@rung` line says how it is launched:

    block=256       threads of a block, also the macro BLOCK
    per_thread=8    keys of each thread: a tile has block * per_thread of them, a multiple of 256; 1 where it is left out
    shared=4096     bytes of dynamic shared memory
"""

from collections.abc import Callable

import numpy as np

import cudatut as ct
from cudatut.book.primitives.sort import sort as sorts
from cudatut.book.rivals import cub, torch_rival

FOLDER = "primitives/sort"
KINDS = {"direct": sorts.Direct, "passes": sorts.Passes, "sweep": sorts.Sweep}
OF_COUNTING = 256  # threads of count_tiles


class Sort:
    """n uint32 keys in their order. n: any length, 0 included.

    keys: 'random'; 'few', 5 different ones; 'equal'; 'falling', from the largest to the smallest.
    """

    def __init__(self, n: int = 100_003, keys: str = "random", seed: int = 0):
        chance, self.n, self.kind = ct.rng(seed), n, keys
        if keys == "random":
            self.host = chance.integers(0, 1 << 32, n, dtype="uint32")
        elif keys == "falling":
            self.host = np.arange(n, 0, -1, dtype="uint32") * np.uint32(7)
        else:
            most = {"few": 5, "equal": 1}[keys]
            self.host = chance.integers(0, most, n, dtype="uint32")
            self.host *= np.uint32(0x3060_0F05)
        self.keys, self.out = ct.to_device(self.host), ct.empty(n, "uint32")
        # What a sort reads and writes that sweeps once for each digit.
        self.bytes, self.flops = 36 * n, None

    def launcher(self, rung: ct.Rung) -> Callable[[], object]:
        """A callable that sorts once. Raises ct.RungError for a tile that cannot be counted."""
        if rung in LADDER.rungs:
            own = KINDS[rung.name]()
            return lambda: own(self.keys, self.out)
        block = rung.number("block")
        tile = block * rung.number("per_thread", 1)
        if why := rung.takes_tiles_of(OF_COUNTING, tile):
            raise ct.RungError(why)
        if not self.n:
            return lambda: None
        return self._passes(rung, block, tile)

    def _passes(
        self, rung: ct.Rung, block: int, tile: int
    ) -> Callable[[], object]:
        plan = {"THREADS": OF_COUNTING, "ITEMS": tile // OF_COUNTING}
        file, tiles = f"{FOLDER}/counting.cu", ct.cdiv(self.n, tile)
        count = ct.Kernel(file, "count_tiles", defines=plan)
        places = ct.Kernel(file, "scan_tiles", defines=plan)
        move = rung.compile(BLOCK=block)
        shared, n = rung.number("shared", 0), np.uint32(self.n)
        counts = ct.empty(sorts.DIGITS * tiles, "uint32")
        totals = ct.empty(sorts.DIGITS, "uint32")
        other = ct.empty(self.n, "uint32")
        ways = (
            (self.keys, other),
            (other, self.out),
            (self.out, other),
            (other, self.out),
        )

        def run() -> None:
            for step, (source, target) in enumerate(ways):
                totals.fill(0)
                count(
                    source, n, 8 * step, counts, totals,
                    grid=tiles, block=OF_COUNTING,
                )  # fmt: skip
                places(
                    counts, totals, tiles, grid=sorts.DIGITS, block=sorts.DIGITS
                )
                move(
                    source, target, n, 8 * step, counts,
                    grid=tiles, block=block, shared=shared,
                )  # fmt: skip

        return run

    def check(self, rung: ct.Rung) -> None:
        """Sort once into poisoned memory and compare with NumPy; raises CheckError."""
        ct.poison(self.out)
        self.launcher(rung)()
        name = f"{rung.name}, n = {self.n}, keys: {self.kind}"
        ct.check(self.out, np.sort(self.host), name=name, rtol=0)

    def vendors(self) -> dict[str, Callable[[], object] | None]:
        """CUB, compiled from the CUDA toolkit, and PyTorch, whose keys are signed."""
        return {
            "CUB": cub.contestant(
                "sort", "uint32_SortKeys", self.keys, self.out, self.n
            ),
            "PyTorch": torch_rival.rival(
                lambda torch, k: lambda: torch.sort(k.view(torch.int32)),
                self.keys,
            ),
        }


LADDER = ct.Ladder(
    "primitives",
    Sort,
    trials=[
        {"n": n, "keys": keys}
        for n in (*ct.RAGGED, 8191, 8193, 100_003)
        for keys in ("random", "few", "equal", "falling")
    ],
    contest={"n": 1 << 26},
    folder="sort",
    rungs=[
        ct.Rung("direct", f"{FOLDER}/counting.cu", "scatter"),
        ct.Rung("passes", f"{FOLDER}/counting.cu", "scatter"),
        ct.Rung("sweep", f"{FOLDER}/onesweep.cu", "sweep"),
    ],
)
