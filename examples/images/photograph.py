"""The photograph that this part's chapters show and work on: Eileen Collins, taken by NASA, in the public domain.

scikit-image ships it (`skimage.data.astronaut`), 512 x 512 pixels.
"""

from functools import cache

import numpy as np


def photograph() -> np.ndarray:
    """A copy of it: uint8, height x width x 3, red, green, blue."""
    return _photograph().copy()


@cache
def _photograph() -> np.ndarray:
    from skimage import data

    return data.astronaut()
