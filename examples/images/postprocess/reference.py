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
        h = np.fmax(
            np.fmin(a[..., 3], b[..., 3]) - np.fmax(a[..., 1], b[..., 1]),
            one(0),
        )
        both = w * h
        of_a = (a[..., 2] - a[..., 0]) * (a[..., 3] - a[..., 1])
        of_b = (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1])
        found = both > one(limit) * (of_a + of_b - both)
    if classes is not None:
        found &= classes[:, None] == other_classes[None]
    return found


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


def some_boxes(n, side=1000.0, size=100.0, seed=0):
    """n boxes in a square, few of which have the same score."""
    chance = np.random.default_rng(seed)
    corner = chance.random((n, 2), "float32") * np.float32(side)
    extent = (
        chance.random((n, 2), "float32") * np.float32(0.75) + np.float32(0.25)
    ) * np.float32(size)
    boxes = np.concatenate([corner, corner + extent], axis=1)
    return boxes, np.round(chance.random(n, "float32"), 4)
