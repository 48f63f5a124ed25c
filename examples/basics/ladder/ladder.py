"""The ladder of matrix products: every rung of this part, and how any of them is launched, checked and compared.

A kernel `(A, B, C, m, n, k)` writes C = A B in fp32; A is m x k, B is k x n, C is m x n, all row-major. Its `@rung` line
says how a block and a grid are shaped:

    block=32x32    threads of a block (x, y), or one number
    tile=32x32     columns x rows of C that one block computes
    launch=rows    only if blockIdx.x counts tiles downwards; else it counts them to the right, and blockIdx.y downwards
"""

from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np

import cudatut as ct

_WHOLE = 1024  # up to this extent the whole of C is compared with the reference; beyond it, a sample of rows
_SAMPLE = 64  # rows


class Matmul:
    """C = A B with random elements: fp32 in [-1, 1), or (integers=True) whole numbers from -8 to 8.

    m, n, k: any lengths, 0 included. data: two host arrays (A, B) of float32 instead of random ones, of any values.
    With integers every partial sum is a whole number below 2^24 (for k <= 262144), so fp32 is exact in any order and
    the check allows no error at all.
    """

    def __init__(
        self,
        m: int = 1024,
        n: int = 1024,
        k: int = 1024,
        seed: int = 0,
        integers: bool = False,
        data: tuple[np.ndarray, np.ndarray] | None = None,
    ):
        if data is not None:
            (m, k), n = data[0].shape, data[1].shape[1]
        self.m, self.n, self.k, self.integers = m, n, k, integers
        self._key = (m, n, k, seed, integers)
        self.host_a, self.host_b = (
            data if data is not None else random_matrices(*self._key)
        )
        self._random = data is None
        self.a, self.b = ct.to_device(self.host_a), ct.to_device(self.host_b)
        self.c = ct.empty((m, n), "float32")
        self.bytes, self.flops = None, 2 * m * n * k

    @cached_property
    def rows(self) -> np.ndarray:
        """Rows of C that are compared: all of them, or one of every band of a large C, and the last."""
        if max(self.m, self.n, self.k) <= _WHOLE:
            return np.arange(self.m)
        bands = np.linspace(0, self.m, min(_SAMPLE, self.m) + 1).astype(int)
        return np.unique(
            [*ct.rng(1).integers(bands[:-1], bands[1:]), self.m - 1]
        )

    @cached_property
    def reference(self) -> tuple[np.ndarray, float]:
        """Those rows of A B in float64, and the bound on what fp32 may miss of any of their elements."""
        if self._random:
            return _reference_of_random(*self._key, tuple(self.rows))
        return _reference(self.host_a, self.host_b, self.rows, self.integers)

    def launcher(
        self,
        rung: ct.Rung,
        block: str | None = None,
        tile: str | None = None,
        **defines: object,
    ) -> Callable[[], object]:
        """A callable that multiplies once; `.out` is C.

        block, tile: as on the `@rung` line, instead of what stands there. defines: macros for the compiler.
        """
        threads = _extents(rung, "block", block)
        columns, rows = _pair(rung, "tile", tile)
        grid = ct.cdiv(self.n, columns), ct.cdiv(self.m, rows)
        if rung.options.get("launch") == "rows":
            grid = grid[::-1]
        kernel, out = rung.compile(**defines), self.c

        def run() -> None:
            if out.size:  # a launch of no blocks is an error, and there is nothing to compute
                kernel(
                    self.a, self.b, out, self.m, self.n, self.k,
                    grid=grid, block=threads,
                )  # fmt: skip

        run.out = out
        return run

    def check(
        self, rung: ct.Rung, block: str | None = None, tile: str | None = None
    ) -> None:
        """Multiply once into poisoned memory and compare with the reference; raises CheckError."""
        ct.poison(self.c)
        self.launcher(rung, block, tile)()
        what = f", block = {block}" if block else ""
        kind = ", integers" if self.integers else ""
        self.compare(f"{rung.name}, {self.m} x {self.n} x {self.k}{kind}{what}")

    def compare(self, name: str) -> None:
        """Compare C, whoever wrote it, with the reference; raises CheckError."""
        expected, bound = self.reference
        out = self.c
        if len(self.rows) < self.m:
            name += f", {len(self.rows)} rows"
            # On the GPU again, so that the check still looks at the red zones and for poison.
            out = ct.to_device(self.c.get()[self.rows])
        ct.check(out, expected, name=name, rtol=0.0, atol=bound)

    def vendors(self) -> dict[str, Callable[[], object] | None]:
        """cuBLAS through CuPy, in fp32 without TF32."""
        return {"cuBLAS": ct.vendor.matmul(self.a, self.b, self.c)}


@lru_cache(maxsize=4)
def random_matrices(
    m: int, n: int, k: int, seed: int = 0, integers: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """A (m x k) and B (k x n), float32: random in [-1, 1), or whole numbers from -8 to 8."""
    rng = ct.rng(seed)
    shapes = (m, k), (k, n)
    if integers:
        a, b = (
            rng.integers(-8, 9, shape).astype("float32") for shape in shapes
        )
    else:
        a, b = (
            rng.random(shape, "float32") * np.float32(2) - np.float32(1)
            for shape in shapes
        )
    return a, b


def error_bound(k: int) -> float:
    """g so that |fp32 result - exact| <= g * (sum of |a_i b_i|), for k products added in any order, with or without FMA."""
    u = np.finfo("float32").eps / 2  # one rounding is off by at most this part
    return k * u / (1 - k * u)


def _reference(
    a: np.ndarray, b: np.ndarray, rows: np.ndarray, integers: bool
) -> tuple[np.ndarray, float]:
    chosen, whole = a[rows].astype("float64"), b.astype("float64")
    expected = chosen @ whole
    if integers or not expected.size:
        return expected, 0.0
    magnitude = np.abs(chosen) @ np.abs(whole)
    return expected, error_bound(a.shape[1]) * float(
        magnitude[np.isfinite(magnitude)].max(initial=0.0)
    )


@lru_cache(maxsize=8)
def _reference_of_random(
    m: int, n: int, k: int, seed: int, integers: bool, rows: tuple[int, ...]
) -> tuple[np.ndarray, float]:
    a, b = random_matrices(m, n, k, seed, integers)
    return _reference(a, b, np.array(rows, dtype=int), integers)


def _extents(
    rung: ct.Rung, option: str, instead: str | None
) -> tuple[int, ...]:
    """`32x32` or `512` as numbers. Raises ct.RungError."""
    text = instead or rung.options.get(option, "")
    try:
        return tuple(int(word) for word in text.split("x"))
    except ValueError:
        raise ct.RungError(
            f"{rung.path}: the @rung line needs {option}=32x32 or the like, but says {option}={text}"
        ) from None


def _pair(rung: ct.Rung, option: str, instead: str | None) -> tuple[int, int]:
    extents = _extents(rung, option, instead)
    if len(extents) != 2:
        raise ct.RungError(
            f"{rung.path}: {option} needs columns x rows, as {option}=32x32"
        )
    return extents


LADDER = ct.Ladder(
    "basics",
    Matmul,
    name="matmul",
    trials=[
        *(
            {"m": m, "n": n, "k": k, "integers": True}
            for m, n, k in ((0, 5, 3), (5, 0, 3), (3, 4, 0))
        ),
        *(
            {"m": m, "n": n, "k": k, "integers": True}
            for m, n, k in (
                (1, 1, 1),
                (31, 33, 7),
                (33, 31, 129),
                (100, 70, 50),
                (65, 129, 9),
            )
        ),
        {"m": 257, "n": 260, "k": 132},
        {"m": 1000, "n": 999, "k": 1001},
    ],
    contest={"m": 2048, "n": 2048, "k": 2048},
)
