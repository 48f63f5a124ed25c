"""Boxes of a detector: decoding, and non-maximum suppression (NMS) on the GPU.

    run = nms(boxes, scores, kept, count, limit=0.5)
    run()  # kept[:count]: indices of the boxes that stay, the best first

A box stays unless it overlaps one with a better score that stays by more than
`limit` of what both cover together. Of equal scores the one with the smaller
index is the better. Boxes with a score below `least`, or NaN, take no part.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.published.sort import sort as sorts

NMS, DECODE = "images/postprocess/nms.cu", "images/postprocess/decode.cu"
WAYS = ("boxes", "tiles", "ahead", "together")  # to decide
TILE = 64  # boxes: the bits of a word
MOST = 1 << 18  # boxes: the mask then takes 8 GiB
BLOCK = 256
ONE, EACH = 1024, 256  # threads of one block that decides all; of a tile's


@functools.cache
def kernel(name: str, defines: tuple = ()) -> ct.Kernel:
    return ct.Kernel(NMS, name, dict(defines))


def nms(
    boxes: Any,
    scores: Any,
    kept: Any,
    kept_count: Any,
    limit: float = 0.5,
    least: float = -np.inf,
    classes: Any = None,
    way: str = "together",
    threads: int | None = None,
    columns: int = 4,
    at_once: int = 4,
) -> Callable:
    """boxes: [n][4] fp32, x1, y1, x2, y2, at a multiple of 16 bytes. kept: [n]
    int32, kept_count: [1] int32. classes: [n] int32, or None: boxes of
    different classes do not remove each other. Raises TypeError, ValueError.
    """
    if way not in WAYS:
        raise ValueError(f"nms: no way {way!r}: {', '.join(WAYS)}")
    if not 0 <= limit <= 1:
        raise ValueError(f"nms: limit {limit} is not in 0 ... 1")
    take = ct.operands("nms")
    a = take.read("boxes", boxes, "float32", (None, 4), align=16, most=MOST)
    n = a.shape[0]
    s = take.read("scores", scores, "float32", (n,))
    c = (
        None
        if classes is None
        else take.read("classes", classes, "int32", (n,))
    )
    k = take.write("kept", kept, "int32", (n,))
    m = take.write("kept_count", kept_count, "int32", (1,))
    if not n:

        def nothing(stream=None):
            kept_count.fill(0, stream=stream)

        nothing.operands = (kept_count,)
        return nothing

    tiles, null = ct.cdiv(n, TILE), np.uint64(0)
    keys, sorted_keys = ct.empty(n, "uint32"), ct.empty(n, "uint32")
    indices, order = ct.empty(n, "uint32"), ct.empty(n, "uint32")
    in_order = ct.empty((n, 4), "float32")
    their_classes = ct.empty(n, "int32") if c else null
    together = way == "together"
    mask = ct.empty((tiles * TILE if together else n) * tiles, "uint64")
    # How many take part, then what `keep_together` calls a state: in 32 bits,
    # all zeros before a run.
    zeros = ct.empty(2 + 2 * (1 + 2 * tiles), "uint32")
    count = np.uint64(int(zeros.gpudata))
    state = np.uint64(int(count) + 8)
    sort = sorts.fastest(n, "uint32", pairs=True)
    of = c.address if c else null
    threads = threads or (EACH if together else ONE)
    by_tiles = (("BY_TILES", int(together)),)
    of_block = ("EACH" if together else "THREADS", threads)
    plan = (*by_tiles, ("AT_ONCE", at_once), of_block)
    to_keys, to_order = kernel("score_keys"), kernel("sorted_boxes")
    of_pairs = ("COLUMNS", columns), ("LABELS", int(c is not None))
    pairs = kernel("pair_mask", (*by_tiles, *of_pairs))
    keep = kernel(f"keep_{way}", plan)
    to_list = kernel("list_kept") if together else None
    grid = ct.cdiv(n, BLOCK)
    two = (ct.cdiv(tiles, columns), tiles)

    def decide(stream=None):
        if to_list is None:
            keep(
                mask, count, tiles, order, k.address, m.address,
                grid=1, block=threads, shared=8 * tiles, stream=stream,
            )  # fmt: skip
            return
        keep(
            mask, count, tiles, state,
            grid=tiles, block=threads, shared=tiles, stream=stream,
        )  # fmt: skip
        to_list(
            state, count, tiles, order, k.address, m.address,
            grid=tiles, block=TILE, stream=stream,
        )  # fmt: skip

    def start(stream=None):
        zeros.fill(0, stream=stream)
        to_keys(
            s.address, n, least, keys, indices, count,
            grid=grid, block=BLOCK, stream=stream,
        )  # fmt: skip

    def in_their_order(stream=None):
        sort(keys, sorted_keys, indices, order, stream=stream)

    def gather(stream=None):
        to_order(
            a.address, of, order, count, in_order, their_classes,
            grid=grid, block=BLOCK, stream=stream,
        )  # fmt: skip

    def compare(stream=None):
        pairs(
            in_order, their_classes, count, tiles, limit, mask,
            grid=two, block=TILE, stream=stream,
        )  # fmt: skip

    parts = {
        "keys": start,
        "sort": in_their_order,
        "order": gather,
        "pairs": compare,
        "decide": decide,
    }

    def run(stream=None):
        for part in parts.values():
            part(stream)

    def alone():
        """Decides again, after a whole run: who takes part is known."""
        start()
        decide()

    run.operands = (a, s, c, k, m, keys, indices)
    run.mask = mask
    # To be timed one by one, after a whole run.
    run.parts = {**parts, "decide": alone}
    return run


def decode(
    out: Any,
    boxes: Any,
    scores: Any,
    classes: Any,
    scale: float,
    left: float,
    top: float,
    width: int,
    height: int,
) -> Callable:
    """out: [4 + classes][n] fp32 of a detector -> boxes, scores, classes in the
    pixels of the image. Raises TypeError, ValueError."""
    if not (scale > 0 and width > 0 and height > 0):
        raise ValueError(f"decode: scale {scale}, {width} x {height} pixels")
    take = ct.operands("decode")
    a = take.read("out", out, "float32", (None, None))
    rows, n = a.shape
    if rows < 5:
        raise ValueError(f"decode: {rows} rows: four of a box, and classes")
    b = take.write("boxes", boxes, "float32", (n, 4), align=16)
    s = take.write("scores", scores, "float32", (n,))
    c = take.write("classes", classes, "int32", (n,))
    if not n:
        return lambda stream=None: None
    one = ct.Kernel(DECODE, "decode")

    def run(stream=None):
        one(
            a.address, n, rows - 4, scale, left, top, width, height,
            b.address, s.address, c.address,
            grid=ct.cdiv(n, BLOCK), block=BLOCK, stream=stream,
        )  # fmt: skip

    run.operands = (a, b, s, c)
    return run
