"""bf16 on the host: the upper 16 bits of a float32, as uint16."""

import numpy as np


def to_bf16(x) -> np.ndarray:
    """Rounded to the nearest, ties to even. A NaN stays one, with its sign."""
    bits = np.asarray(x, "float32").view("uint32")
    up = np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    with np.errstate(over="ignore"):
        rounded = (bits + up >> np.uint32(16)).astype("uint16")
    quiet = (bits >> np.uint32(16)).astype("uint16") | np.uint16(0x40)
    return np.where(np.isnan(x), quiet, rounded)


def to_float(x) -> np.ndarray:
    """What the 16 bits stand for, as float32."""
    return (np.asarray(x, "uint16").astype("uint32") << np.uint32(16)).view(
        "float32"
    )
