"""What the arrays of a launcher's good call hold; see launcher_cases.py."""

import numpy as np

ROWS = 3  # of the calls


def content(
    case: str, name: str, dtype: str, shape: tuple[int, ...], rng: np.random.Generator
) -> np.ndarray:
    """Random, and valid where it is an index."""
    n = shape[0] if shape else 0
    if name in ("tickets", "best"):
        return np.zeros(shape, dtype)
    if name == "starts":
        return np.arange(n, dtype=dtype)
    if name == "ends":
        return np.arange(1, n + 1, dtype=dtype)
    if name == "slots":
        return rng.permutation(48)[:n].astype(dtype)
    if name == "copies":
        return np.array([[0, 1], [1, 2], [2, 0]], dtype)[:n]
    if name == "work":
        return np.array([[i, 0] if i < ROWS else [-1, -1] for i in range(n)], dtype).reshape(shape)
    below = {
        "tokens": 50, "drawn": 50, "indices": 5, "positions": 99, "tables": 3, "top_k": 20, "request": 1000,
        "position": 1000,
    }  # fmt: skip
    if name in below:
        return rng.integers(0, below[name], shape).astype(dtype)
    if name == "lengths":
        return rng.integers(7, 40, shape).astype(dtype)
    if name in ("temperature", "top_p") or "scale" in name or name == "norm.squares":
        return rng.uniform(0.5, 1.0, shape).astype(dtype)
    kind = np.dtype(dtype)
    if dtype == "uint16":  # bf16
        return (rng.standard_normal(shape).astype("float32").view("uint32") >> 16).astype("uint16")
    if kind.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    if dtype == "uint8":  # finite as e4m3, and as fp16 of two
        return rng.integers(0, 0x40, shape).astype(dtype)
    return rng.integers(0, 1000, shape).astype(dtype)
