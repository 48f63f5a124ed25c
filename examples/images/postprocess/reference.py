"""What the kernels of this chapter should find, by NumPy."""

import numpy as np


def overlaps(boxes, others, limit, classes=None, other_classes=None):
    """[n][m]: in fp32 and in the order of the kernel, so that it decides
    equally."""
    a, b = boxes[:, None], others[None]
    one = np.float32
    with np.errstate(invalid="ignore", over="ignore"):
        w = np.fmax(
            np.fmin(a[..., 2], b[..., 2]) - np.fmax(a[..., 0], b[..., 0]),
            one(0),
        )
        h = np.fmin(a[..., 3], b[..., 3]) - np.fmax(a[..., 1], b[..., 1])
        both = w * h
        of_a = (a[..., 2] - a[..., 0]) * (a[..., 3] - a[..., 1])
        of_b = (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1])
        found = one(limit) * (of_a + of_b - both) - both < 0
    if classes is not None:
        found &= classes[:, None] == other_classes[None]
    return found


# --8<-- [start:nms]
def nms(boxes, scores, limit=0.5, least=-np.inf, classes=None):
    """The indices of the boxes that stay, the best first."""
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] >= least]
    gone, kept = np.zeros(len(order), bool), []
    boxes = boxes[order]
    classes = None if classes is None else classes[order]
    for i in range(len(order)):
        if gone[i]:
            continue
        kept.append(order[i])
        own = None if classes is None else classes[i : i + 1]
        rest = None if classes is None else classes[i + 1 :]
        gone[i + 1 :] |= overlaps(
            boxes[i : i + 1], boxes[i + 1 :], limit, own, rest
        )[0]
    return np.array(kept, "int32")


# --8<-- [end:nms]


def decide(gone, earlier):
    """`decide` of the kernel: what stays of a tile, and in how many turns.
    gone: bools; earlier[i][j]: box i overlaps box j, which is before it."""
    gone, stay, turns = gone.copy(), np.zeros(len(gone), bool), 0
    while not (gone | stay).all():
        turns += 1
        stay |= ~(earlier & ~gone[None]).any(axis=1) & ~gone
        gone |= (earlier & stay[None]).any(axis=1)
    return stay, turns


def decode(out, scale, left, top, width, height):
    """boxes, scores, classes, in fp64."""
    out = out.astype("float64")
    x, y, w, h = out[:4]
    boxes = np.stack(
        [
            ((x - w / 2 - left) / scale).clip(0, width),
            ((y - h / 2 - top) / scale).clip(0, height),
            ((x + w / 2 - left) / scale).clip(0, width),
            ((y + h / 2 - top) / scale).clip(0, height),
        ],
        axis=1,
    )
    return boxes, 1 / (1 + np.exp(-out[4:].max(axis=0))), out[4:].argmax(axis=0)


def pairs(mask, n):
    """Of two boxes that overlap, the later one and the earlier one: i, j.

    mask: words of [n][tiles], or of [tiles][64 tiles] as `keep_together` has
    them, for boxes from their own tile on."""
    tiles = -(-n // 64)
    words = (
        mask.reshape(n, tiles)
        if mask.size == n * tiles
        else mask.reshape(tiles, 64 * tiles).T[:n]
    )
    inside = np.arange(tiles)[None] >= np.arange(n)[:, None] // 64
    rows, columns = np.nonzero(np.where(inside, words, 0))
    found = words[rows, columns].astype("<u8").view("uint8").reshape(-1, 8)
    which, bit = np.nonzero(np.unpackbits(found, axis=1, bitorder="little"))
    first, other = rows[which], 64 * columns[which] + bit
    later = other > first
    return other[later], first[later]


# --8<-- [start:turns]
def turns(n, i, j):
    """How many boxes are open after each turn, if each turn decides all boxes
    whose earlier neighbors are decided; and how many stay. i, j: as `pairs`."""
    stay, gone, open_after = np.zeros(n, bool), np.zeros(n, bool), []
    while not (stay | gone).all():
        waits = np.zeros(n, bool)
        waits[i[~gone[j]]] = True
        stay |= ~waits & ~gone
        gone[i[stay[j]]] = True
        open_after.append(int((~(stay | gone)).sum()))
        still = ~(stay | gone)[i]
        i, j = i[still], j[still]
    return open_after, int(stay.sum())


# --8<-- [end:turns]


def some_boxes(n, side=1000.0, size=100.0, seed=0):
    """n boxes in a square, few of which have the same score."""
    chance = np.random.default_rng(seed)
    corner = chance.random((n, 2), "float32") * np.float32(side)
    extent = (
        chance.random((n, 2), "float32") * np.float32(0.75) + np.float32(0.25)
    ) * np.float32(size)
    boxes = np.concatenate([corner, corner + extent], axis=1)
    return boxes, np.round(chance.random(n, "float32"), 4)


def around(n, things=50, seed=0):
    """Boxes as a detector makes them: many around each of a few things, those
    that fit best with the best scores."""
    return _around(n, things, seed)[:2]


def _around(n, things, seed):
    """The same, and which thing each box is around."""
    chance = np.random.default_rng(seed)
    middle = chance.uniform(100, 900, (things, 2))
    extent = chance.uniform(30, 200, (things, 2))
    which = chance.integers(0, things, n)
    shift = chance.normal(0, 0.1, (4, n))
    at = middle[which] + extent[which] * shift[:2].T
    half = extent[which] / 2 * np.exp(shift[2:].T)
    boxes = np.concatenate([at - half, at + half], 1).astype("float32")
    scores = np.round(np.exp(-np.abs(shift).sum(axis=0)), 4)
    return boxes, scores.astype("float32"), which


def batch(images, each, classes, things=10):
    """Boxes and scores of several images, one image after the other, and a
    label of each: of its image and its class."""
    found = [_around(each, things, seed) for seed in range(images)]
    labels = [
        m * classes
        + np.random.default_rng(m + 1).integers(0, classes, things)[which]
        for m, (_, _, which) in enumerate(found)
    ]
    boxes, scores, _ = (np.concatenate(one) for one in zip(*found))
    return boxes, scores, np.concatenate(labels).astype("int32")


def chain(n):
    """Each overlaps the next one too much, and no other: every second stays."""
    left = 3 * np.arange(n, dtype="float32")
    zero = np.zeros(n, "float32")
    boxes = np.stack([left, zero, left + 10, zero + 10], 1)
    return boxes, np.linspace(1, 0, n, dtype="float32")


def equal(n, times=100):
    """Each box many times, all with one score: the first of each stays."""
    boxes, _ = some_boxes(-(-n // times), size=20.0, seed=3)
    return np.tile(boxes, (times, 1))[:n], np.full(n, 0.5, "float32")


KINDS = {
    "20 pixels": lambda n: some_boxes(n, size=20.0, seed=7),
    "100 pixels": lambda n: some_boxes(n, size=100.0, seed=7),
    "300 pixels": lambda n: some_boxes(n, size=300.0, seed=7),
    "around 50 things": around,
    "each 100 times": equal,
    "a chain": chain,
}
