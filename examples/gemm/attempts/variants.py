"""What was tried on the way to the final kernel: variants of attempts.cu, and products to try them on.

    product = Product(4096, 4096, 4096)
    run = Variant(64, 128, 16, 8, 8, 3, 3, Tried.EXCHANGED).prepare(product)
    run()
    product.check("exchanged")

Nothing here depends on final.cu, which may change: these are its earlier versions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntFlag

import numpy as np

import cudatut as ct
from cudatut.book.measure.some_rows import some_rows

SOURCE = "gemm/attempts/attempts.cu"


class Tried(IntFlag):
    """The switches of attempts.cu."""

    NOTHING = 0
    EXCHANGED = 1
    LATE = 2
    APART = 4
    SPREAD = 8
    PARTS_FIRST = 16


LAST = Tried.EXCHANGED | Tried.LATE | Tried.APART  # what stayed in the end


class Product:
    """C = A B with random elements in [-1, 1); some rows of C are compared with float64."""

    def __init__(self, m: int, n: int, k: int):
        self.m, self.n, self.k, self.flops = m, n, k, 2 * m * n * k
        a, b = (
            ct.rng(seed).random(shape, "float32") * np.float32(2)
            - np.float32(1)
            for seed, shape in enumerate([(m, k), (k, n)])
        )
        self.a, self.b = ct.to_device(a), ct.to_device(b)
        self.c = ct.empty((m, n), "float32")
        self.rows = some_rows(m, n, k)
        left, right = a[self.rows].astype("float64"), b.astype("float64")
        self.expected = left @ right
        sizes = np.abs(left) @ np.abs(right)
        # k roundings, each by 2^-24 of what is there at most.
        self.bound = (k + 1) * 2.0**-24 * float(sizes.max(initial=0.0))

    def check(self, name: str) -> None:
        """Compare C, then poison it, so that the next run has to write it."""
        # On the GPU again, so that the check looks for poison, too.
        rows = ct.to_device(self.c.get()[self.rows])
        name = f"{name}, {self.m} x {self.n} x {self.k}"
        ct.check(rows, self.expected, name=name, atol=self.bound, rtol=0)
        ct.poison(self.c)

    def vendors(self) -> dict[str, Callable[[], object] | None]:
        """cublasSgemm, in fp32 without TF32."""
        return {"cuBLAS": ct.vendor.gemm(self.a, self.b, self.c)}


@dataclass(frozen=True)
class Variant:
    """Tile, depth of a step, a thread's results, stages, blocks on an SM; what is tried; steps between two barriers.

    shares: as many blocks as fit share each of the tiles that would not fill the GPU once more.
    """

    bm: int
    bn: int
    bk: int
    tm: int
    tn: int
    stages: int
    blocks: int
    tried: Tried = LAST
    every: int = 1
    shares: bool = False

    @property
    def threads(self) -> int:
        return self.bm * self.bn // (self.tm * self.tn)

    @property
    def fmas(self) -> int:
        """Of a thread in a step."""
        return self.bk * self.tm * self.tn

    @property
    def shared(self) -> int:
        """Bytes: tiles of A, their rows padded by 4 words, and of B; or what C needs at the end."""
        tiles = self.stages * self.bk * (self.bm + 4 + self.bn)
        return 4 * max(tiles, self.threads // 32 * 4 * self.tn * 36)

    def name(self, vec: int = 4) -> str:
        """The kernel's name; vec: words of B that a copy moves."""
        numbers = self.bm, self.bn, self.bk, self.tm, self.tn, self.stages
        numbers += self.blocks, vec, int(self.tried), self.every
        return f"attempt<{','.join(map(str, numbers))}>"

    def parts(self, m: int, n: int, k: int, sms: int) -> tuple[int, int, int]:
        """Whole tiles, blocks for each of the others, and the depth of a block of these."""
        tiles, slots = (
            ct.cdiv(m, self.bm) * ct.cdiv(n, self.bn),
            sms * self.blocks,
        )
        rest = tiles % slots
        steps = ct.cdiv(k, self.bk)
        parts = min(slots // rest, max(1, steps // 4)) if rest else 1
        if not self.shares or parts == 1:
            return tiles, 1, max(1, steps) * self.bk
        each = ct.cdiv(steps, parts)
        return tiles - rest, ct.cdiv(steps, each), each * self.bk

    def prepare(self, product: Product) -> Callable[[], None]:
        """A callable that multiplies once; `.kernel`, `.grid` say what it launches."""
        p = product
        m, n, k = p.m, p.n, p.k
        kernel = ct.Kernel(SOURCE, self.name(1 if n % 4 else 4))
        whole, parts, depth = self.parts(m, n, k, ct.device().sm_count)
        rest = ct.cdiv(m, self.bm) * ct.cdiv(n, self.bn) - whole
        partials = ct.empty(max(1, rest * parts * self.bm * self.bn), "float32")
        tickets = ct.to_device(np.zeros(max(1, rest), "uint32"))
        grid = whole + rest * parts

        def run() -> None:
            kernel(
                m, n, k, 1.0, p.a, k, p.b, n, 0.0, p.c, n, whole, parts, depth,
                partials, tickets, grid=grid, block=self.threads,
                shared=self.shared,
            )  # fmt: skip

        run.kernel, run.grid = kernel, grid
        return run


def compile_all(variants: dict[str, Variant], *vecs: int) -> None:
    """With nvcc side by side; vecs: words of B that a copy moves, 4 if none are given."""
    ct.compile_ahead(
        (SOURCE, variant.name(vec))
        for variant in variants.values()
        for vec in vecs or (4,)
    )


def rates_of(
    variants: dict[str, Variant], sizes: tuple[int, ...]
) -> dict[str, dict[str, float]]:
    """TFLOP/s of each, and of cuBLAS, for squares of these sizes, by name and "n = SIZE"; all are checked before."""
    rates = {}
    for size in sizes:
        product = Product(size, size, size)
        runs = {name: one.prepare(product) for name, one in variants.items()}
        for name, run in runs.items():
            run()
            product.check(name)
        times = ct.bench(
            {**runs, **product.vendors()},
            flops=product.flops,
            name=f"n = {size}",
        )
        for row in times.rows:
            rates.setdefault(row.name, {})[f"n = {size}"] = row.value
    return rates


# --8<-- [start:read]
def read(
    variants: dict[str, Variant], runs: dict[str, Callable]
) -> dict[str, dict]:
    """What the machine code of each says: registers, spills, warps per SM, and of its main loop the share (%) of FMAs
    and how many (%) of these fetch two words of one bank."""
    from cudatut.book.measure import loops

    codes = loops.disassemble_all(runs[name].kernel for name in variants)
    rows = {}
    for (name, variant), code in zip(variants.items(), codes):
        needs = runs[name].kernel.resources(variant.threads, variant.shared)
        turn = loops.main_turn(code, variant.fmas)
        conflicts = loops.bank_conflicts(turn) / loops.count(turn)["FFMA"]
        rows[name] = {
            "registers": needs.registers,
            "spilled bytes": needs.spill_bytes,
            "warps per SM": needs.blocks_per_sm * variant.threads // 32,
            "FFMA": 100 * loops.share(turn),
            "two words of one bank": 100 * conflicts,
        }
    return rows


# --8<-- [end:read]
