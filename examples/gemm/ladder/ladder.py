"""The ladder of general matrix products: every rung of this part, and how any of them is launched, checked and compared.

A kernel `(A, B, C, m, n, k, alpha, beta)` writes C = alpha A B + beta C in fp32; A is m x k, B is k x n, C is m x n, all
row-major. For beta = 0 it does not read C. Its `@rung` line says how a block and a grid are shaped, as in the part
basics. Two files are launched in ways of their own: final.cu by sgemm.py, tma.cu with what `tensor_maps` makes.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np

import cudatut as ct

from cudatut.book.published.basics import ladder as BASICS

EARLIER = (
    "basics/ladder/naive_columns.cu",
    "basics/ladder/tiled.cu",
    "basics/ladder/thread_tile.cu",
)
FINAL, TENSOR_MAPS = "gemm/ladder/final.cu", "gemm/ladder/tma.cu"


class Gemm(BASICS.Matmul):
    """C = alpha A B + beta C with random elements: fp32 in [-1, 1), or (integers=True) whole numbers from -8 to 8.

    m, n, k: any lengths, 0 included. data: host arrays (A, B), or (A, B, C), of float32 instead of random ones.
    With integers, and an alpha and a beta that are small multiples of a power of two, fp32 is exact (for k <= 65536) and
    the check allows no error at all.
    """

    def __init__(
        self,
        m: int = 1024,
        n: int = 1024,
        k: int = 1024,
        alpha: float = 1.0,
        beta: float = 0.0,
        integers: bool = False,
        seed: int = 0,
        data: tuple[np.ndarray, ...] | None = None,
    ):
        super().__init__(m, n, k, seed, integers, data and data[:2])
        self.alpha, self.beta = (
            float(np.float32(alpha)),
            float(np.float32(beta)),
        )
        self._seed, self._host_c = (
            seed,
            data[2] if data is not None and len(data) > 2 else None,
        )

    @cached_property
    def host_c(self) -> np.ndarray:
        """What C holds before the product; for beta = 0 nobody may look at it."""
        if self._host_c is not None:
            return self._host_c
        rng, shape = ct.rng(self._seed + 1), (self.m, self.n)
        if self.integers:
            return rng.integers(-8, 9, shape).astype("float32")
        return rng.random(shape, "float32") * np.float32(2) - np.float32(1)

    @cached_property
    def reference(self) -> tuple[np.ndarray, float]:
        """The compared rows of the result in float64, and the bound on what fp32 may miss of any of their elements."""
        with np.errstate(
            invalid="ignore"
        ):  # infinity less infinity is NaN, as it is on the GPU
            product, bound = super().reference
            product, bound = self.alpha * product, abs(self.alpha) * bound
            old = (
                self.beta * self.host_c[self.rows].astype("float64")
                if self.beta
                else 0.0
            )
            expected, sizes = product + old, np.abs(product) + np.abs(old)
        if not self.integers:
            # alpha times the sum, beta times C, and what these add up to are rounded once each.
            largest = float(sizes[np.isfinite(sizes)].max(initial=0.0))
            bound += BASICS.error_bound(3) * (largest + bound)
        return expected, bound

    def launcher(
        self, rung: ct.Rung, block: str | None = None, tile: str | None = None
    ) -> Callable[[], object] | None:
        """A callable that multiplies once; `.out` is C. None, after a note, where this GPU lacks what the rung needs.

        block, tile: as on the `@rung` line, instead of what stands there. The product goes to the same C each time: with
        beta the second finds there what the first left.
        """
        requires = rung.options.get("requires", "sm_75")
        if not ct.supports(ct.device().compute_capability, requires):
            ct.show(
                f"no row for {rung.name}: it needs {requires}, but this is {ct.device().arch}"
            )
            return None
        if rung.path == FINAL:
            from cudatut.book.gemm.kernels import sgemm

            run = sgemm.prepare(self.a, self.b, self.c, self.alpha, self.beta)
        elif rung.path in EARLIER:
            if (self.alpha, self.beta) != (1, 0):
                raise ct.RungError(f"{rung.path} knows neither alpha nor beta")
            run = super().launcher(rung, block, tile)
        else:
            run = self._launcher(rung, block, tile)
        run.out = self.c
        return run

    def _launcher(
        self, rung: ct.Rung, block: str | None, tile: str | None
    ) -> Callable[[], object]:
        kernel, out = rung.compile(), self.c
        columns, rows = _pair(rung, tile or rung.options.get("tile", ""))
        grid = ct.cdiv(self.n, columns), ct.cdiv(self.m, rows)
        threads, shared_bytes = (
            int(block or rung.number("block")),
            rung.number("shared", 0),
        )
        operands, refresh, kept = (self.a, self.b), (), (self.a, self.b)
        if rung.path == TENSOR_MAPS and out.size:
            operands, refresh, kept = tensor_maps(rung, self.a, self.b)

        def run() -> None:
            if not out.size:  # a launch of no blocks is an error, and there is nothing to compute
                return
            for copy in refresh:
                copy()
            kernel(
                *operands, out, self.m, self.n, self.k, self.alpha, self.beta,
                grid=grid, block=threads, shared=shared_bytes,
            )  # fmt: skip

        run.kept = kept
        return run

    def check(
        self, rung: ct.Rung, block: str | None = None, tile: str | None = None
    ) -> None:
        """Multiply once and compare with the reference; raises CheckError.

        For beta = 0, C holds NaN before (the poison of `ct.empty`), of which nothing may be left. On a GPU that lacks
        what the rung needs: UnsupportedGpuError.
        """
        ct.require(rung.options.get("requires", "sm_75"))
        if self.beta:
            self.c.set(self.host_c)
        else:
            ct.poison(self.c)
        self.launcher(rung, block, tile)()
        scalars = f", alpha {self.alpha:g}, beta {self.beta:g}"
        kind = ", integers" if self.integers else ""
        self.compare(
            f"{rung.name}, {self.m} x {self.n} x {self.k}{scalars}{kind}"
        )

    def vendors(self) -> dict[str, Callable[[], object] | None]:
        """cublasSgemm, in fp32 without TF32."""
        return {
            "cuBLAS": ct.vendor.gemm(
                self.a, self.b, self.c, self.alpha, self.beta
            )
        }


def earlier_rungs() -> list[ct.Rung]:
    """The rungs of the part basics that a scoreboard may begin with; they are launched for alpha = 1 and beta = 0."""
    return [ct.read_rung(path) for path in EARLIER]


def tensor_maps(rung: ct.Rung, a, b) -> tuple[list, list, list]:
    """A and B as gemm/ladder/tma.cu takes them; calls that every launch begins with; and what has to stay alive.

    An instance sgemm_tma<BM, BN, BK, ...> gets boxes of BM rows and 8 columns of A, and of BK rows and BN columns of B.
    """
    numbers = rung.kernel.partition("<")[2].split(",")
    bm, bn, bk = (int(number) for number in numbers[:3])
    padded = [_padded(a), _padded(b)]
    maps = [
        ct.tensor_map(array, box)
        for (array, _), box in zip(padded, ((bm, 8), (bk, bn)), strict=True)
    ]
    # A map holds an address, which keeps nothing alive.
    return (
        maps,
        [copy for _, copy in padded if copy],
        [array for array, _ in padded],
    )


def _padded(array) -> tuple[object, Callable[[], object] | None]:
    """What a tensor map can be made of: the array, or one with longer rows and a call that copies the array into it.

    The TMA wants rows that begin at multiples of 16 bytes. Where k or n is no multiple of 4, each launch copies A or B
    first, and this copy counts as part of the product. An empty array gets one row or column, which nobody reads.
    """
    import pycuda.driver as cuda

    rows, columns = array.shape
    if array.size and columns % 4 == 0:
        return array, None
    wide = ct.empty(
        (max(rows, 1), 4 * ct.cdiv(max(columns, 1), 4)), array.dtype
    )
    copy = cuda.Memcpy2D()
    copy.set_src_device(array.gpudata)
    copy.set_dst_device(wide.gpudata)
    copy.src_pitch, copy.dst_pitch = (
        columns * array.itemsize,
        wide.shape[1] * array.itemsize,
    )
    copy.width_in_bytes, copy.height = columns * array.itemsize, rows
    refresh = (lambda: copy(aligned=False)) if array.size else None
    return wide[:, : max(columns, 1)], refresh


def _pair(rung: ct.Rung, text: str) -> tuple[int, int]:
    """`128x64` as numbers. Raises ct.RungError."""
    try:
        columns, rows = (int(word) for word in text.split("x"))
    except ValueError:
        raise ct.RungError(
            f"{rung.path}: the @rung line needs columns x rows, as tile=128x64, but says '{text}'"
        ) from None
    return columns, rows


TRIALS = [
    *(
        {"m": m, "n": n, "k": k, "integers": True}
        for m, n, k in ((0, 5, 3), (5, 0, 3), (3, 4, 0))
    ),
    {"m": 3, "n": 4, "k": 0, "beta": 2.0, "integers": True},
    {"m": 1, "n": 1, "k": 1, "integers": True},
    {"m": 31, "n": 33, "k": 100, "integers": True},
    {"m": 129, "n": 100, "k": 33, "alpha": 0.5, "beta": -3.0, "integers": True},
    {
        "m": 257,
        "n": 260,
        "k": 132,
        "alpha": -2.0,
        "beta": 1.0,
        "integers": True,
    },
    {"m": 1000, "n": 999, "k": 1001},
    {"m": 1024, "n": 1024, "k": 1024, "alpha": 0.5, "beta": 0.5},
]

LADDER = ct.Ladder(
    "gemm",
    Gemm,
    trials=TRIALS,
    contest={"m": 4096, "n": 4096, "k": 4096},
)
