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
    """In [0, 1), the same numbers as the kernel's: w / 2^32, cut to the 24
    bits of a float."""
    size = np.frexp(w.astype("float64"))[1]  # bits of the word
    cut = np.maximum(size - 24, 0).astype("uint32")
    return (w >> cut << cut).astype("float32") * np.float32(2.0**-32)


def normal(w: np.ndarray) -> np.ndarray:
    """From pairs of words. The uniform numbers are rounded to fp32, as in the
    kernel; what follows is in fp64."""
    radius, angle = radius_and_angle(w)
    turned = np.abs(angle)
    # cos(pi x) = sin(pi (1/2 - x)): exact where the cosine is near 0.
    cosine = np.sin(np.pi * (0.5 - turned))
    sine = np.copysign(np.sin(np.pi * np.minimum(turned, 1 - turned)), angle)
    return np.stack([radius * cosine, radius * sine], axis=-1).reshape(-1)


def radius_and_angle(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The angle in half turns, -1 to 1; both as float64."""
    if w.size % 2:
        raise ValueError("normal: words come in pairs")
    a, b = w[0::2], w[1::2].view("int32")
    u = a.astype("float32").astype("float64") * 2.0**-32 + 2.0**-33
    u = u.astype("float32").astype("float64")  # rounded once, as by fmaf
    angle = b.astype("float32").astype("float64") * 2.0**-31
    return np.sqrt(-2 * np.log(u)), angle


# --8<-- [start:bound]
def bound(w: np.ndarray) -> np.ndarray:
    """How far off `normal, fast` may be, by the errors that the PTX ISA states:
    2^-22 of a logarithm to the base 2 (of its value, where that is above 1),
    2^-20.5 of a sine, and 2^-21 of the rest, a few roundings."""
    radius = np.repeat(radius_and_angle(w)[0], 2)
    square = 2 * np.log(2) * 2.0**-22 * np.maximum(1, radius**2 / 2 / np.log(2))
    # The root of r^2 + e is off by at most e / r, and by at most root e.
    root = np.minimum(square / np.maximum(radius, 1e-30), np.sqrt(square))
    return root + radius * (2.0**-20.5 + 2.0**-21)


# --8<-- [end:bound]
# Of `normal`, relative: half a logarithm's 2^-23, 2^-23 of the root, 2^-23 of
# the sine, half a unit of the product.
ERROR = 6 * 2.0**-24
