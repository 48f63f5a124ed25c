"""A batch of photographs of different sizes to the input of a network, by one
kernel.

    batch = Batch(images)             # uint8 [height][width][3], blue first
    run = letterbox(batch, out)       # out: bf16 as uint16, [n][3][640][640]
    run()

`tuned` is `letterbox` by the plan that is fastest for a batch.
"""

import functools
import itertools
import os
import random
import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.images.preprocess.reference import MEAN, STD, placed

FOLDER = "images/preprocess"
ACROSS, DOWN = 32, 8  # threads of a block, where a plan says nothing else
BEHIND = 12  # bytes that the kernel may read behind the last image
MOST_IMAGES, MOST_BYTES = 65_535, (1 << 32) - 4
IMAGE = np.dtype(
    [("first", "int64")]
    + [(name, "int32") for name in ("height", "width", "top", "left")]
    + [(name, "int32") for name in ("new_height", "new_width")]
    + [(name, "float64") for name in ("down", "across")]
)
# What the kernels are compiled with: pixels of a row and rows for each thread.
DEFAULTS: dict[str, dict[str, int]] = {
    "pixel": {},
    "rows": {"PIXELS": 4, "ROWS": 4},
    "dots": {"PIXELS": 4, "ROWS": 4, "NEIGHBORS": 4, "DOWN": 4},
}
# --8<-- [start:plans]
# What `tuned` tries: one of each line.
TWELVE = {"KEEP": 0, "BLOCKS": 12}
CHOICES: tuple[tuple[dict[str, int], ...], ...] = (
    ({}, TWELVE, {**TWELVE, "THIRD": 0}),
    ({}, {"AHEAD": 1}),
    ({}, {"CENTER": 1}, {"TURN": 1}),
)
# --8<-- [end:plans]
ONE, ZERO = 1 << 15, 0x4B000000  # as in dots.cu


class Batch:
    """Images on the GPU, one behind the other. images: uint8 arrays on the host
    of [height][width][3]. Raises TypeError, ValueError."""

    def __init__(self, images: list, align: int = 16):
        if not 1 <= len(images) <= MOST_IMAGES:
            raise ValueError(f"batch: {len(images)} images")
        for i, image in enumerate(images):
            if image.dtype != np.uint8:
                raise TypeError(f"batch: image {i} of {image.dtype}, not uint8")
            if image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
                raise ValueError(f"batch: image {i} of shape {image.shape}")
            if image.nbytes >= MOST_BYTES:
                raise ValueError(f"batch: image {i} has {image.nbytes} bytes")
        self.shapes = [image.shape[:2] for image in images]
        self.firsts, end = [], 0
        for image in images:
            self.firsts.append(end)
            end += -(-image.nbytes // align) * align
        host = np.zeros(end + BEHIND, "uint8")
        for first, image in zip(self.firsts, images):
            host[first : first + image.nbytes] = image.reshape(-1)
        self.pixels = ct.to_device(host)

    def places(self, height: int, width: int) -> np.ndarray:
        """What the kernel is told about each image."""
        table = np.zeros(len(self.shapes), IMAGE)
        for row, first, (h, w) in zip(table, self.firsts, self.shapes):
            new_h, new_w, top, left = placed(h, w, height, width)
            row["first"], row["height"], row["width"] = first, h, w
            row["top"], row["left"] = top, left
            row["new_height"], row["new_width"] = new_h, new_w
            row["down"], row["across"] = h / new_h, w / new_w
        return table


@functools.cache
def kernel(way: str, defines: tuple) -> ct.Kernel:
    return ct.Kernel(f"{FOLDER}/{way}.cu", f"letterbox_{way}", dict(defines))


def compile_ahead(width: int, some: list[dict]) -> None:
    """Compiles these plans of dots.cu side by side, for outputs of that width.
    Under a tool nothing happens: what is launched is compiled then."""
    if ct.tool.running():
        return
    ct.device()  # once, before threads ask
    source, name = f"{FOLDER}/dots.cu", "letterbox_dots"
    wanted = {tuple(sorted(plan_of(width, **one).items())) for one in some}
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for defines in wanted:
            pool.submit(ct.Kernel, source, name, dict(defines), load=False)


def plan_of(width: int, way: str = "dots", **plan: Any) -> dict:
    """The macros: as many neighbors in a store as wanted, if they divide the
    width."""
    plan = {**DEFAULTS[way], **plan}
    stored = {"rows": "PIXELS", "dots": "NEIGHBORS"}.get(way)
    while stored and width % plan[stored]:
        plan[stored] //= 2
    return plan


def scale_of(way: str, border: float, mean: Any, std: Any) -> np.ndarray:
    """What a byte, or a sum of dots.cu, becomes, as words of 32 bits."""
    by, mean = 1 / (255 * np.array(std, float)), np.array(mean, float)
    plus = -mean / std
    if way != "dots":
        return np.array([*by, *plus, border], "float32")
    # A sum is 2^15 for each level, and 2^23 more.
    words = np.concatenate([by / ONE, plus - 2**23 / ONE * by])
    around = border * by + plus
    outside = np.array([ZERO + round(border * ONE)], "uint32")
    floats = np.concatenate([words, around]).astype("float32")
    return np.concatenate([floats, outside.view("float32")])


def letterbox(
    batch: Batch,
    out: Any,
    border: float = 114,
    mean: Any = MEAN,
    std: Any = STD,
    way: str = "dots",
    channels_last: bool = False,
    **plan: Any,
) -> Callable:
    """out: bf16 as uint16 [images][3][height][width], or [height][width][3]
    with channels_last. way: "pixel", "rows" or "dots", the kernels of this
    chapter. plan: macros of the kernel. Raises TypeError, ValueError."""
    if way not in DEFAULTS or (way == "pixel" and channels_last):
        raise ValueError(f"letterbox: no way {way!r} for this layout")
    if min(std) <= 0:
        raise ValueError(f"letterbox: a standard deviation in {std}")
    if not 0 <= border <= 255:
        raise ValueError(f"letterbox: a border of {border}, not a byte's")
    take = ct.operands("letterbox")
    pixels = take.read(
        "pixels", batch.pixels, "uint8", (None,), align=16, most=1 << 40
    )
    n = len(batch.shapes)
    shape = (n, None, None, 3) if channels_last else (n, 3, None, None)
    o = take.write("out", out, "uint16", shape, align=16)
    height, width = o.shape[1:3] if channels_last else o.shape[2:]
    if not (1 <= height <= 65_535 and width >= 1):
        raise ValueError(f"letterbox: an output of {height} x {width}")
    plan = plan_of(width, way, **plan)
    if channels_last:
        plan["CHANNELS_LAST"] = 1
    table = ct.to_device(batch.places(height, width).view("uint8"))
    scale = scale_of(way, border, mean, std)
    one = kernel(way, tuple(sorted(plan.items())))
    threads = (ACROSS, plan.get("DOWN", DOWN))
    across = threads[0] * plan.get("PIXELS", 1)
    down = threads[1] * plan.get("ROWS", 1)
    grid = (ct.cdiv(width, across), ct.cdiv(height, down), n)
    if plan.get("CENTER"):
        grid = (grid[0], n, grid[1])

    def run(stream=None):
        one(
            pixels.address, table, scale, height, width,
            o.address, grid=grid, block=threads, stream=stream,
        )  # fmt: skip

    run.operands = (pixels, o, table)
    return run


# --8<-- [start:tuned]
def plans() -> list[dict[str, int]]:
    """All plans that can be chosen. The first one is that of `letterbox`."""
    return [
        {name: value for part in parts for name, value in part.items()}
        for parts in itertools.product(*CHOICES)
    ]


def tuned(batch: Batch, out: Any, times: int = 15) -> tuple[dict, Callable]:
    """The plan that is fastest for these sizes, and its launcher. Runs each
    plan so many times, in random order; under a tool none. Raises as
    `letterbox`."""
    tried = plans()
    if ct.tool.running():
        return tried[0], letterbox(batch, out)
    compile_ahead(out.shape[3], tried)
    runs = {str(k): letterbox(batch, out, **p) for k, p in enumerate(tried)}
    for run in runs.values():
        run()  # not counted
    found = ct.take_turns(runs, times, random.Random(0))
    best = min(found, key=lambda name: statistics.median(found[name]))
    return tried[int(best)], runs[best]


# --8<-- [end:tuned]
