# ---
# jupyter:
#   cudatut:
#     title: {en: "After the network: boxes and NMS", zh: "网络之后：检测框与 NMS"}
#     requires: sm_75
#     extra: images
#     timeout_s: 120
#     sizes:
#       many: [20_000, 300]
#       each: [625, 10]
#       lengths: [[500, 3_001], [130]]
# ---

# %% [markdown]
# From what a detector writes to the boxes that stay. First the whole program:
# 8,400 candidates are decoded, the likely ones are put in order, and of those
# that overlap the best one stays.

# %% program
import numpy as np

import cudatut as ct
from cudatut.book.images.postprocess.candidates import SCALE, candidates

out = candidates()  # [4 + classes][8400]: no detector, but what one writes
n, classes = out.shape[1], out.shape[0] - 4
boxes, scores = ct.empty((n, 4), "float32"), ct.empty(n, "float32")
class_of = ct.empty(n, "int32")
decode = ct.Kernel("images/postprocess/decode.cu", "decode")
decode(
    ct.to_device(out), n, classes, SCALE, 0, 0, 512, 512,
    boxes, scores, class_of, grid=ct.cdiv(n, 256), block=256,
)  # fmt: skip

order = np.argsort(-scores.get(), kind="stable")  # the best first
order = order[scores.get()[order] >= 0.25].astype("uint32")
likely = len(order)
tiles = ct.cdiv(likely, 64)
in_order = ct.to_device(boxes.get()[order])
their_classes = ct.to_device(class_of.get()[order])
count = ct.to_device(np.array([likely], "int32"))
mask = ct.empty((likely, tiles), "uint64")
nms = "images/postprocess/nms.cu"
pair_mask = ct.Kernel(nms, "pair_mask")
pair_mask(
    in_order, their_classes, count, tiles, 0.5, mask,
    grid=(ct.cdiv(tiles, 4), tiles), block=64,
)  # fmt: skip
keep_tiles = ct.Kernel(nms, "keep_tiles")
kept, kept_count = ct.empty(likely, "int32"), ct.empty(1, "int32")
keep_tiles(
    mask, count, tiles, ct.to_device(order), kept, kept_count,
    grid=1, block=1024, shared=8 * tiles,
)  # fmt: skip

stay = kept[: int(kept_count.get()[0])].get()
print(f"{n} candidates, {likely} of them likely, {len(stay)} stay")
print("their classes:", class_of.get()[stay])

# %% [markdown]
# The likely candidates, and the boxes that stay.

# %% pictures
from cudatut.book.images.photograph import photograph
from cudatut.book.images.postprocess.candidates import draw, smaller

image = smaller(photograph())  # 256 x 256
host, of_host = boxes.get() / 2, class_of.get()
ct.picture(
    "likely candidates",
    draw(image, host[order], of_host[order]),
    alt={
        "en": "An astronaut beside a model of a space shuttle, her helmet in "
        "front of her. Dozens of thin frames lie around each of six things: "
        "the astronaut, her suit, the helmet, the shuttle and two badges.",
        "zh": "宇航员的照片，旁边是航天飞机模型，身前是头盔。六样东西（宇航员、"
        "航天服、头盔、航天飞机和两个徽章）的周围各有几十个细框，层层叠叠。",
    },
    quality=80,
)
ct.picture(
    "boxes that stay",
    draw(image, host[stay], of_host[stay], wide=2),
    alt={
        "en": "The same photograph. Each of the six things has one frame. The "
        "frames of the astronaut and of her suit overlap; they are of "
        "different classes.",
        "zh": "同一张照片，六样东西各只剩一个框。宇航员的框和航天服的框互相重叠，"
        "但类别不同。",
    },
    quality=80,
)

# %% [markdown]
# How serial is it? In each turn, decide every box whose earlier neighbors are
# decided. The pairs come from the mask of the GPU; the turns are made by NumPy.

# %% predict
from cudatut.book.images.postprocess import reference
from cudatut.book.images.postprocess.postprocess import nms

many = 20_000
rows = {}
for kind, make in reference.KINDS.items():
    boxes, scores = make(many)
    kept, kept_count = ct.empty(many, "int32"), ct.empty(1, "int32")
    run = nms(ct.to_device(boxes), ct.to_device(scores), kept, kept_count)
    run.mask.fill(0)  # nobody writes half of it
    run()
    i, j = reference.pairs(run.mask.get(), many)
    open_after, stay = reference.turns(many, i, j)
    ct.check(kept_count, [stay], name=f"{kind}: how many stay", rtol=0)
    rows[kind] = {
        "stay": stay,
        "neighbors of a box": 2 * len(i) / many,
        "open after a turn": open_after[0],
        "turns": len(open_after),
    }
ct.table(f"{many} boxes", rows, corner="kind")

# %% [markdown]
# Right before fast: each way to decide, with ragged counts, classes, scores
# that are NaN, equal or too low, and limits from 0 to 1.

# %% check
from cudatut.book.images.postprocess.postprocess import WAYS

lengths = (500, 3_001)


def check(n, way, size=300.0, limit=0.5, least=-np.inf, classes=0):
    boxes, scores = reference.some_boxes(n, size=size, seed=n)
    scores[3::17] = np.nan
    scores[5::7] = scores[5::7].round(1)  # many are equal
    labels = None
    if classes:
        labels = ct.rng(n).integers(0, classes, n).astype("int32")
    want = reference.nms(boxes, scores, limit, least, labels)
    kept, number = ct.empty(n, "int32"), ct.empty(1, "int32")
    own = None if labels is None else ct.to_device(labels)
    run = nms(
        ct.to_device(boxes), ct.to_device(scores), kept, number, limit, least,
        own, way,
    )  # fmt: skip
    ct.poison(kept), ct.poison(number)
    run()
    name = f"{way}, n={n}, limit {limit}"
    ct.check(number, [len(want)], name=f"{name}: count", rtol=0)
    if len(want):
        ct.check(kept[: len(want)], want, name=name, rtol=0)


for way in WAYS:
    for n in (1, 2, 63, 64, 65, *lengths):
        check(n, way)
    check(lengths[0], way, least=0.5)
    check(lengths[0], way, least=2.0)  # none
    check(lengths[0], way, classes=5)
    for limit in (0.0, 1.0):
        check(lengths[0], way, size=100.0, limit=limit)
for n in ct.RAGGED:
    if n < 5_000:  # NumPy compares all pairs
        check(n, "together")

# %% [markdown]
# Decoding, against fp64.

# %% check-decode
from cudatut.book.images.postprocess import postprocess

for n, classes in ((1, 1), (33, 80), (8_400, 20)):
    out = ct.rng(n).standard_normal((4 + classes, n), dtype="float32")
    out[:4] = np.abs(out[:4]) * 100
    found = (
        ct.empty((n, 4), "float32"),
        ct.empty(n, "float32"),
        ct.empty(n, "int32"),
    )
    postprocess.decode(ct.to_device(out), *found, 0.5, 0, 80, 1280, 960)()
    expected = reference.decode(out, 0.5, 0, 80, 1280, 960)
    for one, want, what in zip(found, expected, ("boxes", "scores", "classes")):
        ct.check(one, want, name=f"{n} {what}", atol=1e-3, rtol=1e-5)

# %% [markdown]
# The four ways beside torchvision, with boxes of up to 100 pixels in a square
# of 1,000.

# %% bench
from cudatut.book.rivals import vision

boxes, scores = map(ct.to_device, reference.KINDS["100 pixels"](many))
kept, kept_count = ct.empty(many, "int32"), ct.empty(1, "int32")
runs = {way: nms(boxes, scores, kept, kept_count, way=way) for way in WAYS}
bench = ct.bench(
    {**runs, "torchvision": vision.nms(boxes, scores, 0.5)},
    name=f"NMS of {many} boxes",
    rounds=15,
)

# %% [markdown]
# What the parts take, each by itself. Two of them decide: one block, and all.

# %% parts
parts = dict(runs["together"].parts)
parts["decide, together"] = parts.pop("decide")
parts["decide, ahead"] = runs["ahead"].parts["decide"]
for run in runs.values():
    run()  # the mask of each way lies in its own memory
part = ct.bench(parts, name=f"parts, {many} boxes", rounds=15)

# %% [markdown]
# Do both libraries keep the same boxes?

# %% agree
if not ct.tool.running():
    theirs = vision.nms(boxes, scores, 0.5)
    if theirs:
        found = theirs().cpu().numpy()
        runs["together"]()
        own = kept[: int(kept_count.get()[0])].get()
        both = np.intersect1d(own, found)
        ct.facts(
            f"of {many} boxes",
            {
                "stay": len(own),
                "stay, torchvision": len(found),
                "stay in both": len(both),
                "in the same order": bool(np.array_equal(own, found)),
            },
        )

# %% [markdown]
# Boxes of different classes must not remove each other. A usual way moves the
# boxes of each class to a place of their own. What does fp32 say to that?

# %% moved
each = 625  # boxes of an image
rows = {}
for name, images in {"one image": 1, "a batch of 32": 32}.items():
    boxes, scores, labels = reference.batch(images, each, classes=80)
    n = len(boxes)
    kept, number = ct.empty(n, "int32"), ct.empty(1, "int32")
    found = []
    step = boxes.max() + np.float32(1)
    far = labels.astype("float32") * step
    for a, own in ((boxes, ct.to_device(labels)), (boxes + far[:, None], None)):
        nms(ct.to_device(a), ct.to_device(scores), kept, number, classes=own)()
        found.append(kept[: int(number.get()[0])].get())
    by_label, moved = found
    want = reference.nms(boxes, scores, classes=labels)
    ct.check(by_label, want, name=f"{name}: by label", rtol=0)
    rows[name] = {
        "stay": len(by_label),
        "only by label": len(np.setdiff1d(by_label, moved)),
        "only moved": len(np.setdiff1d(moved, by_label)),
        "moved by up to": float(far.max()),
        "grid of fp32 there": float(np.spacing(far.max())),
    }
ct.table(
    "80 classes, compared by label or moved",
    rows,
    corner="input",
    units={"moved by up to": "pixels", "grid of fp32 there": "pixels"},
)
