"""What a scan is compared with."""

import numpy as np


def sums(values: np.ndarray, exclusive: bool = False) -> np.ndarray:
    """The exact sums: of floats as float64, of integers as they wrap around."""
    wide = np.cumsum(
        values, dtype="float64" if values.dtype.kind == "f" else "int64"
    )
    if exclusive:
        wide = np.concatenate([[0], wide])[: wide.size]
    return wide if values.dtype.kind == "f" else wide.astype(values.dtype)


def most(values: np.ndarray) -> float:
    """How far a sum may be off: 4 units in the last place of a sum of all."""
    if values.dtype.kind != "f":
        return 0
    unit = float(np.finfo(values.dtype).eps)
    return 4 * unit * float(np.abs(values).sum(dtype="float64"))
