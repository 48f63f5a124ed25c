"""Philox on the host, with NumPy: the reference of the kernels."""

import numpy as np

# Of Philox4x32: two multipliers, and what is added to the key in each round.
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
STEPS = 0x9E3779B9, 0xBB67AE85

# Counter, key and words from the file kat_vectors of Random123 1.14.
PI = 0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344
ONES = 0xFFFFFFFF
KNOWN = (
    (
        (0, 0, 0, 0),
        (0, 0),
        (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
    ),
    (
        (ONES,) * 4,
        (ONES,) * 2,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        PI,
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)


def philox(counter, key, rounds: int = 10) -> np.ndarray:
    """counter: integers [..., 4], key: [2] or [..., 2]; uint32 [..., 4]."""
    low = np.uint64(0xFFFFFFFF)
    counter = np.asarray(counter, "uint64")
    c = [counter[..., k] for k in range(4)]
    keys = np.asarray(key, "uint64")
    k0, k1 = keys[..., 0], keys[..., 1]
    for _ in range(rounds):
        a = c[0] * np.uint64(MULTIPLIERS[0])
        b = c[2] * np.uint64(MULTIPLIERS[1])
        half = np.uint64(32)
        c = [b >> half ^ c[1] ^ k0, b & low, a >> half ^ c[3] ^ k1, a & low]
        k0 = k0 + np.uint64(STEPS[0]) & low
        k1 = k1 + np.uint64(STEPS[1]) & low
    return np.stack(c, axis=-1).astype("uint32")


def words(n: int, seed: int, stream: int = 0, first: int = 0) -> np.ndarray:
    """n words of a stream, from its word `first` on."""
    begin, end = first // 4, -(-(first + n) // 4)
    index = np.arange(begin, end, dtype="uint64")
    low = np.uint64(0xFFFFFFFF)
    counter = np.empty((end - begin, 4), "uint64")
    counter[:, 0], counter[:, 1] = index & low, index >> np.uint64(32)
    counter[:, 2], counter[:, 3] = stream & 0xFFFFFFFF, stream >> 32
    found = philox(counter, (seed & 0xFFFFFFFF, seed >> 32)).reshape(-1)
    return found[first - 4 * begin :][:n]


def uniform(w: np.ndarray) -> np.ndarray:
    """In [0, 1), the same numbers as the kernel's."""
    return (w >> np.uint32(8)).astype("float32") * np.float32(2.0**-24)


def normal(w: np.ndarray) -> np.ndarray:
    """In float64, from pairs of words."""
    if w.size % 2:
        raise ValueError("normal: words come in pairs")
    pairs = w.reshape(-1, 2)
    u = ((pairs[:, 0] >> np.uint32(8)).astype("float64") + 0.5) * 2.0**-24
    angle = pairs[:, 1].view("int32").astype("float64") * (np.pi * 2.0**-31)
    radius = np.sqrt(-2 * np.log(u))
    return np.stack(
        [radius * np.cos(angle), radius * np.sin(angle)], axis=-1
    ).reshape(-1)
