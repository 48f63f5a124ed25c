# ---
# jupyter:
#   cudatut:
#     title: {en: "Boxes and NMS: the contest", zh: "检测框与 NMS：比赛"}
#     requires: sm_75
#     timeout_s: 120
#     sizes:
#       many: [20_000, 300]
#       counts: [[100, 1_000, 5_000, 20_000, 100_000], [100]]
#       rounds: [15, 1]
#       each: [625, 10]
#       grid: [[64, 128, 256, 512], [64]]
# ---

# %% [markdown]
# NMS beside torchvision: boxes of many kinds, from few to many of them, and by
# class. Then other shapes of the kernels.

# %% setup
import numpy as np
from cudatut.book.images.postprocess import reference
from cudatut.book.images.postprocess.postprocess import nms
from cudatut.book.rivals import vision
from cudatut.book.rivals.torch_rival import rival

import cudatut as ct

many = 20_000
counts = (100, 1_000, 5_000, 20_000, 100_000)
rounds = 15
grid = (64, 128, 256, 512)


def some(make, n):
    """Boxes and scores, on the GPU, and where the result goes."""
    boxes, scores = map(ct.to_device, make(n))
    return boxes, scores, ct.empty(n, "int32"), ct.empty(1, "int32")


def race(make, n, name):
    """In random order: all blocks decide, one block does, torchvision."""
    boxes, scores, kept, number = some(make, n)
    return ct.bench(
        {
            "together": nms(boxes, scores, kept, number),
            "ahead": nms(boxes, scores, kept, number, way="ahead"),
            "torchvision": vision.nms(boxes, scores, 0.5),
        },
        name=name,
        rounds=rounds,
    )


def same(make, n):
    """How many boxes only one of ours and torchvision's results has."""
    boxes, scores, kept, number = some(make, n)
    nms(boxes, scores, kept, number)()
    own = kept[: int(number.get()[0])].get()
    theirs = vision.nms(boxes, scores, 0.5)
    if not theirs:
        return len(own), None
    return len(own), len(np.setxor1d(own, theirs().cpu().numpy()))


# %% [markdown]
# 20,000 boxes of each kind.

# %% kinds
by_kind, rows = {}, {}
for kind, make in reference.KINDS.items():
    by_kind[kind] = one = race(make, many, f"{many} boxes, {kind}")
    if not ct.tool.running():
        stay, differ = same(make, many)
        rows[kind] = {
            "stay": stay,
            "differ": differ,
            "together": one["together"].median_us,
            "ahead": one["ahead"].median_us,
        }
        if any(row.name == "torchvision" for row in one.rows):
            rows[kind] |= {
                "torchvision": one["torchvision"].median_us,
                "torchvision / together": one.ratio(
                    "together", "torchvision"
                ).median,
            }

# %% by-kind
if not ct.tool.running():
    times = dict.fromkeys(("together", "ahead", "torchvision"), "us")
    units = times | {"torchvision / together": "×"}
    ct.table(f"{many} boxes of a kind", rows, corner="kind", units=units)

# %% [markdown]
# The square grows with the number of boxes, so that each has as many neighbors.


# %% counts
def as_dense(n):
    side = 1000 * (n / 20_000) ** 0.5
    return reference.some_boxes(n, side=side, size=100.0, seed=7)


by_count = {n: race(as_dense, n, f"{n} boxes, 100 pixels") for n in counts}

# %% by-count
if not ct.tool.running():
    rivals = [row.name for row in by_count[counts[0]].rows]
    ct.table(
        "NMS by the number of boxes",
        {
            f"{n} boxes": {row.name: row.median_us for row in one.rows}
            for n, one in by_count.items()
        },
        corner="number",
        units=dict.fromkeys(rivals, "us"),
    )

# %% [markdown]
# A batch of 32 images with 80 classes. torchvision moves each label to a place
# of its own, and then compares all boxes.

# %% classes
each = 625
host, of_host, labels = reference.batch(32, each, classes=80)
boxes, scores, label = map(ct.to_device, (host, of_host, labels))
kept, number = ct.empty(len(host), "int32"), ct.empty(1, "int32")


def batched(torch, *tensors):
    from torchvision.ops import batched_nms

    a, s, c = tensors
    c = c.long()
    return lambda: batched_nms(a, s, c, 0.5)


classes = ct.bench(
    {
        "by label": nms(boxes, scores, kept, number, classes=label),
        "torchvision, by label": rival(batched, boxes, scores, label),
    },
    name=f"{len(host)} boxes of 32 images, 80 classes",
    rounds=rounds,
)

# %% [markdown]
# Other shapes: how many threads a tile has, how many words a lane asks for at
# once, and how many tiles a block compares.

# %% shapes
boxes, scores, kept, number = some(reference.KINDS["100 pixels"], many)
nms(boxes, scores, kept, number, way="ahead")()
want = kept[: int(number.get()[0])].get()
shapes = {}
for threads in grid:
    for at_once in (1, 4, 8):
        how = {"threads": threads, "at_once": at_once}
        name = f"{threads} threads, {at_once} at once"
        shapes[name] = nms(boxes, scores, kept, number, **how)
for columns in (1, 2, 8):
    shapes[f"{columns} tiles compared"] = nms(
        boxes, scores, kept, number, columns=columns
    )
for name, run in shapes.items():
    ct.poison(kept)
    run()
    ct.check(kept[: len(want)], want, name=name, rtol=0)
variants = ct.bench(
    shapes, name=f"shapes, {many} boxes", rounds=min(rounds, 10)
)

# %% goals
if not ct.tool.running():
    large = {f"{many} boxes, {kind}": one for kind, one in by_kind.items()}
    large |= {f"{n} boxes": one for n, one in by_count.items()}
    ct.goals(
        "1.5 times as fast as torchvision",
        {
            name: one.goal("together", "torchvision", 1.5)
            for name, one in large.items()
            if any(row.name == "torchvision" for row in one.rows)
        },
    )
