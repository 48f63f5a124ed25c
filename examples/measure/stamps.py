"""What the stamps of stamps.cuh say."""

import numpy as np

import cudatut as ct


def space(blocks: int):
    """Room for two stamps of each block, on the GPU."""
    return ct.empty(blocks * 4, "int64")


def between(words) -> tuple[float, float]:
    """Cycles between the two stamps of a block, and the clock between them in MHz; the medians of all blocks."""
    pairs = words.get().reshape(-1, 2, 2)
    cycles, ns = (pairs[:, 1] - pairs[:, 0]).T
    return float(np.median(cycles)), 1e3 * float(np.median(cycles / ns))
