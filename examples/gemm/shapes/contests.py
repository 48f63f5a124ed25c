"""Products of any shapes: checked, and beside cuBLAS and cublasLt.

found = contests(SHAPES)
spread.medians(found[m, n, k])      # "final", "cuBLAS", "cublasLt"
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.gemm.kernels import sgemm
from cudatut.book.rivals import cublaslt

Shape = tuple[int, int, int]
PERIOD = 1_000_003  # a prime, after which the random numbers repeat


class Pool:
    """One array for all of A, one for all of B and one for all of C, as long as
    the largest of these shapes: each product takes the first words.
    """

    def __init__(self, shapes: Sequence[Shape]):
        rng = ct.rng(0)
        self.host = [
            np.resize(rng.random(PERIOD, dtype="float32") - np.float32(0.5), n)
            for n in (
                max(m * k for m, _, k in shapes),
                max(k * n for _, n, k in shapes),
            )
        ]
        self.factors = [ct.to_device(words) for words in self.host]
        self.c = ct.empty(max(m * n for m, n, _ in shapes), "float32")

    def product(self, m: int, n: int, k: int) -> tuple[Any, Any, Any]:
        """A, B and C."""
        a, b = (
            words[: rows * columns].reshape(rows, columns)
            for words, rows, columns in zip(self.factors, (m, k), (k, n))
        )
        return a, b, self.c[: m * n].reshape(m, n)

    def check(self, m: int, n: int, k: int) -> None:
        """Some rows of C, the first and the last among them, at up to 200
        columns: as exact as float64, and quick.
        """
        rows = np.unique([0, m // 3, m - 1])
        columns = np.unique(np.linspace(0, n - 1, 200).astype(int))
        left = self.host[0][: m * k].reshape(m, k)[rows].astype("float64")
        right = self.host[1][: k * n].reshape(k, n)[:, columns]
        sizes = np.abs(left) @ np.abs(right.astype("float64"))
        found = [self.c[i * n : (i + 1) * n].get() for i in map(int, rows)]
        ct.check(
            np.stack(found)[:, columns],
            left @ right,
            name=f"{m} x {n} x {k}",
            rtol=0,
            atol=(k + 32) * 2.0**-24 * float(sizes.max()),
        )


def contests(shapes: Sequence[Shape]) -> dict[Shape, dict[str, Callable]]:
    """The contestants that can run, by shape; ours has been checked."""
    pool, found = Pool(shapes), {}
    for shape in shapes:
        a, b, c = pool.product(*shape)
        ct.poison(pool.c)
        run = sgemm.prepare(a, b, c)
        run()
        pool.check(*shape)
        runs = {
            "final": run,
            "cuBLAS": ct.vendor.gemm(a, b, c),
            "cublasLt": cublaslt.fastest(a, b, c),
        }
        found[shape] = {name: one for name, one in runs.items() if one}
    return found
