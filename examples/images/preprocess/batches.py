"""Batches of photographs of different sizes, as data sets and cameras have them."""

import numpy as np

import cudatut as ct

SIDE = 640  # of the network's input
# Height and width.
SIZES = (
    (480, 640),
    (640, 480),
    (427, 640),
    (375, 500),
    (768, 1024),
    (720, 1280),
    (1080, 1920),
    (960, 1280),
)


def mixed(count, seed=0):
    """So many sizes, drawn from the list."""
    chance = np.random.default_rng(seed)
    return [SIZES[i] for i in chance.integers(0, len(SIZES), count)]


def noise(shapes, seed=1):
    """An image of random bytes for each size: what they show costs nothing."""
    chance = ct.rng(seed)
    return [chance.integers(0, 256, (*s, 3), dtype="uint8") for s in shapes]


def bf16(words):
    """fp32 of words whose bits are those of bf16."""
    return (words.astype("uint32") << 16).view("float32")
