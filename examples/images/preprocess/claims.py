# ---
# jupyter:
#   cudatut:
#     title:
#       en: "One kernel for a network's input: claims"
#       zh: "一个 kernel 备好网络输入：说法的检验"
#     requires: sm_75
#     timeout_s: 60
#     sizes:
#       many: [64, 2]
#       rounds: [15, 1]
# ---

# %% [markdown]
# The slides on CUDA say what is gained when several steps are one kernel. Here
# are the steps of this chapter, each in a launch of its own, and in one.

# %% setup
from cudatut.book.images.preprocess import reference
from cudatut.book.images.preprocess.batches import SIDE, bf16, mixed, noise
from cudatut.book.images.preprocess.preprocess import Batch, letterbox
from cudatut.book.images.preprocess.steps import four_launches

import cudatut as ct

many = 64
rounds = 15
shapes = mixed(many)
host = noise(shapes)
batch = Batch(host)
out = ct.empty((many, 3, SIDE, SIDE), "uint16")
four = four_launches(batch, out)
one = letterbox(batch, out, way="pixel")
wanted = reference.letterbox(host[0], SIDE, SIDE)
# Half a level, where four launches round it to a byte, is 0.5 / 57 here.
for name, run, atol in (
    ("four launches", four, 0.009),
    ("one launch", one, 1e-3),
):
    ct.poison(out)
    run()
    got = bf16(out[0].get())
    ct.check(got, wanted, name=f"{name}: image 0", rtol=2**-8, atol=atol)

# %% bench
bench = ct.bench(
    {"four launches": four, "one launch": one, "one launch again": one},
    bytes=reference.useful_bytes(shapes, SIDE, SIDE),
    name=f"{many} photographs",
    rounds=rounds,
)
us = {row.name: row.median_us for row in bench.rows}

# %% fused
ct.claim(
    id="image-steps-in-one-kernel",
    source="CUDA slides 2.10",
    place={
        "en": "resize, the text behind the kernel",
        "zh": "resize 一节，kernel 后面的文字",
    },
    form="said",
    statement={
        "en": "In CUDA, unlike with OpenCV, many operations can be written "
        "together. That avoids several kernels and reuses memory, and can "
        "raise efficiency. (The time of four launches for the time of one, "
        "which does the same for each pixel; more than 1.)",
        "zh": "与 OpenCV 不同，在 CUDA 里可以把很多操作写在一起，避免多次调用 "
        "kernel，也能复用内存，从而提高效率。（四次启动的时间除以一次启动的时间，"
        "每个像素做的事相同；应大于 1。）",
    },
    expected=1.0,
    measured=us["four launches"] / us["one launch"],
    rule="above",
    control=(
        {
            "en": "the one launch beside itself",
            "zh": "一次启动与它自己相比",
        },
        us["one launch again"] / us["one launch"],
        (0.97, 1.03),
    ),
    unit="×",
)
