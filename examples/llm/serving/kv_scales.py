"""Scales of a KV cache in FP8, whose largest number is 448."""

import numpy as np


def fp8_scales(largest: np.ndarray) -> np.ndarray:
    """Scales of a cache in FP8 from the largest absolute values that keys and
    values of each head were seen to have, [layers, 2, kv_heads]; there, what is
    twice as large still fits.
    """
    return np.where(largest > 0, largest * (2 / 448), 1.0).astype("float32")
