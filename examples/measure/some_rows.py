"""Which rows of a product are compared with float64, where all of them would take too long."""

import numpy as np

import cudatut as ct

WHOLE, BANDS = 1024, 64


def some_rows(m: int, n: int, k: int) -> np.ndarray:
    """All rows of a small product, or one of every band of a large one, and the last."""
    if max(m, n, k) <= WHOLE:
        return np.arange(m)
    edges = np.linspace(0, m, min(BANDS, m) + 1).astype(int)
    return np.unique([*ct.rng(1).integers(edges[:-1], edges[1:]), m - 1])
