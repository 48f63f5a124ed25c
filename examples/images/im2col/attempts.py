# ---
# jupyter:
#   cudatut:
#     title: {en: "im2col and GEMM: attempts", zh: "im2col 与 GEMM：尝试"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       rounds: [20, 1]
# ---

# %% [markdown]
# What made im2col faster, and what did not, on three layers. Each row changes
# one thing of another row. Where a prediction stands, it was written down
# before the row ran.

# %% variants
from dataclasses import dataclass

import numpy as np
import pycuda.driver as cuda
from cudatut.book.images.im2col import launch
from cudatut.book.images.im2col.reference import matrix
from cudatut.book.images.shapes import LAYERS, shrunk

import cudatut as ct

rounds = 20
EACH = 1 << 30  # blocks: a thread never has several channels


@dataclass(frozen=True)
class Variant:
    kind: str
    of: str = ""  # the row that it changes
    predicted: float | None = None  # times as fast, small anchor
    streamed: bool = False
    blocks: int = launch.BLOCKS


VARIANTS = {
    "a word": Variant("words"),
    # Two divisions for a column, and none for a word.
    "a place": Variant("places", "a word", 5.0, blocks=EACH),
    # A quarter of the stores, each of 16 bytes.
    "four places": Variant("four", "a place", 1.15, blocks=EACH),
    # 6 loads in place of 12 for a row of the window, 13 in place of 28 for 7.
    "words of a row": Variant("row", "four places", 1.1, blocks=EACH),
    # Nobody reads the matrix before all of it is written.
    "streamed": Variant(
        "row", "words of a row", 1.0, streamed=True, blocks=EACH
    ),
    # The place is found once for several channels.
    "several channels": Variant("row", "words of a row", 1.05),
    "fewer blocks": Variant("row", "several channels", 1.0, blocks=1024),
}
names = "small anchor", "large anchor", "the first of a ResNet"
layers = {name: LAYERS[name] for name in names}
if ct.tool.running():
    layers = {name: shrunk(shape) for name, shape in layers.items()}

# %% attempts
times = {}
for name, shape in layers.items():
    of_images = shape.images, shape.channels, shape.height, shape.width
    images = ct.rng(0).random(of_images, dtype="float32")
    x, m = ct.to_device(images), ct.empty(launch.extents(shape), "float32")
    some = shape._replace(images=1)
    right = matrix(some, images[:1])
    some_rows = range(0, len(right), 16)
    runs = {}
    for label, one in VARIANTS.items():
        more = {"defines": (("STREAMED", 1),)} if one.streamed else {}
        runs[label] = launch.im2col(
            shape, x, m, one.kind, blocks=one.blocks, **more
        )
        ct.poison(m)
        runs[label]()
        # Of the first image, each 16th row.
        found = np.stack([m[k].get()[: right.shape[1]] for k in some_rows])
        ct.check(
            found, right[some_rows], name=f"{label}, {name}", rtol=0, atol=0
        )
    words = m.reshape(-1)
    half = words[: m.size // 2], words[m.size // 2 : m.size // 2 * 2]
    runs["zeros"] = lambda m=m: cuda.memset_d32_async(
        int(m.gpudata), 0, m.size, None
    )
    runs["copy of a half"] = ct.vendor.copy(*half)
    moved = dict.fromkeys(runs, x.nbytes + m.nbytes)
    moved |= {"zeros": m.nbytes, "copy of a half": 2 * half[0].nbytes}
    times[name] = ct.bench(
        runs, bytes=moved, name=f"im2col, {name}", rounds=rounds
    )

# %% table
if not ct.tool.running():
    rows = {}
    for label, one in VARIANTS.items():
        before = one.of or label
        rows[label] = {
            "changes": one.of or None,
            "predicted": one.predicted,
            "measured": times["small anchor"].ratio(label, before).median,
            **{name: times[name][label].value for name in names},
        }
    for label in ("zeros", "copy of a half"):
        rows[label] = {name: times[name][label].value for name in names}
    ct.table(
        "gains, predicted and measured",
        rows,
        corner="variant",
        units={
            "predicted": "×",
            "measured": "×",
            **dict.fromkeys(names, "GB/s"),
        },
    )
