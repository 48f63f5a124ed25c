"""Candidates as a detector writes them, without a detector; and boxes drawn into
an image.

The photograph has 512 x 512 pixels, a detector's input 640 x 640. At strides of
8, 16 and 32 pixels there are 8,400 places, and for each the detector writes a
box and a number for each class. Here the boxes are around things that somebody
has looked up, shifted at random, and further off where the number is lower.
"""

import numpy as np

CLASSES = ("astronaut", "suit", "helmet", "shuttle", "badge")
# Class, and the box in the pixels of the photograph.
THINGS = (
    (0, (22, 14, 362, 511)),
    (1, (22, 149, 362, 511)),
    (2, (276, 343, 511, 511)),
    (3, (353, 2, 474, 289)),
    (4, (132, 346, 211, 424)),
    (4, (277, 337, 331, 379)),
)
SIDE, SCALE = 640, 1.25  # of the input, and of its pixels to the photograph's
STRIDES = (8, 16, 32)
EACH = 40  # candidates around a thing, at most
COLORS = (
    (255, 255, 255),
    (0, 200, 255),
    (255, 220, 0),
    (60, 230, 60),
    (255, 80, 220),
)


def places() -> np.ndarray:
    """The centers of all cells of the three grids: [8400][2], x and y."""
    found = []
    for stride in STRIDES:
        y, x = np.mgrid[: SIDE // stride, : SIDE // stride]
        cells = np.stack([x, y], axis=-1).reshape(-1, 2)
        found.append((cells + 0.5) * stride)
    return np.concatenate(found)


def candidates(seed: int = 0) -> np.ndarray:
    """What a detector would write: fp32, [4 + classes][8400]."""
    chance, at = np.random.default_rng(seed), places()
    n = len(at)
    out = chance.normal(-6, 1, (4 + len(CLASSES), n))
    out[:2] = at.T + chance.normal(0, 4, (2, n))
    out[2:4] = chance.uniform(10, 120, (2, n))
    for which, corners in THINGS:
        x1, y1, x2, y2 = SCALE * np.array(corners, float)
        middle = np.array([(x1 + x2) / 2, (y1 + y2) / 2])
        extent = np.array([x2 - x1, y2 - y1])
        off = np.abs((at - middle) / extent).max(axis=1)  # 0.5 at the border
        near = np.flatnonzero(off < 0.3)
        near = chance.permutation(near)[:EACH]
        shift = chance.normal(0, 0.03 + 0.15 * off[near], (4, len(near)))
        out[:2, near] = (middle + extent * shift[:2].T).T
        out[2:4, near] = (extent * np.exp(shift[2:].T)).T
        out[4:, near] = chance.normal(-6, 1, (len(CLASSES), len(near)))
        size = np.abs(shift).sum(axis=0)
        out[4 + which, near] = chance.normal(3.5 - 10 * size, 0.5)
    return out.astype("float32")


def smaller(image: np.ndarray) -> np.ndarray:
    """Half as many rows and columns: each pixel is the mean of four."""
    high, wide = (side // 2 for side in image.shape[:2])
    four = image[: 2 * high, : 2 * wide].reshape(high, 2, wide, 2, 3)
    return np.round(four.mean(axis=(1, 3))).astype("uint8")


def draw(
    image: np.ndarray, boxes: np.ndarray, classes: np.ndarray, wide: int = 1
) -> np.ndarray:
    """A copy with the boxes, those that come first on top. boxes: [n][4], x1,
    y1, x2, y2 in pixels of the image; classes choose the color."""
    image = image.copy()
    high, far = image.shape[:2]
    for (x1, y1, x2, y2), which in zip(boxes[::-1], classes[::-1]):
        left, right = (int(np.clip(x, 0, far - wide)) for x in (x1, x2 - wide))
        top, low = (int(np.clip(y, 0, high - wide)) for y in (y1, y2 - wide))
        for rows, columns in (
            (slice(top, top + wide), slice(left, right + wide)),
            (slice(low, low + wide), slice(left, right + wide)),
            (slice(top, low + wide), slice(left, left + wide)),
            (slice(top, low + wide), slice(right, right + wide)),
        ):
            image[rows, columns] = COLORS[which]
    return image
