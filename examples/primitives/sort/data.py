"""Many random keys, whose order the host knows without sorting all of them."""

import numpy as np
import pycuda.driver as cuda

import cudatut as ct

PERIOD = 1 << 24  # random keys; the rest repeats them


class Keys:
    """n random keys of 32 bits on the GPU, `keys`.

    order(): the keys in order. where(): where they stood, equal ones as before.
    """

    def __init__(self, n: int, seed: int = 0):
        self.period = min(n, PERIOD)
        self.times, rest = divmod(n, self.period)
        if rest:
            raise ValueError(f"{n} keys are no multiple of {self.period}")
        self.host = ct.rng(seed).integers(
            0, 1 << 32, self.period, dtype="uint32"
        )
        piece, self.keys = ct.to_device(self.host), ct.empty(n, "uint32")
        for k in range(self.times):
            at = int(self.keys.gpudata) + k * piece.nbytes
            cuda.memcpy_dtod(at, piece.gpudata, piece.nbytes)

    def order(self) -> np.ndarray:
        return np.repeat(np.sort(self.host), self.times)

    def where(self) -> np.ndarray:
        first = np.argsort(self.host, kind="stable").astype("uint32")
        turn = np.arange(self.times, dtype="uint32") * np.uint32(self.period)
        # Equal keys of one period come before those of the next.
        found = (first[:, None] + turn).reshape(-1)
        key = self.host[first]
        for at in np.flatnonzero(key[1:] == key[:-1]):
            low = at
            while low > 0 and key[low - 1] == key[at]:
                low -= 1
            part = slice(low * self.times, (at + 2) * self.times)
            found[part] = np.sort(found[part])
        return found
