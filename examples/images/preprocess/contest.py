# ---
# jupyter:
#   cudatut:
#     title:
#       en: "One kernel for a network's input: the contest"
#       zh: "一个 kernel 备好网络输入：比赛"
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       many: [64, 2]
#       rounds: [40, 1]
#       few: [15, 1]
# ---

# %% [markdown]
# The kernel beside a copy of the bytes that count, beside torchvision's chain
# of functions, and beside OpenCV on the CPU.

# %% setup
import numpy as np
from cudatut.book.images.preprocess import reference
from cudatut.book.images.preprocess.batches import (
    SIDE,
    SIZES,
    bf16,
    mixed,
    noise,
)
from cudatut.book.images.preprocess.preprocess import Batch, tuned
from cudatut.book.rivals import vision

import cudatut as ct

many = 64
rounds = 40
few = 15
BATCHES = {
    "different sizes": mixed(many),
    "720 x 1280": [(720, 1280)] * many,
}
target = ct.empty((many, 3, SIDE, SIDE), "uint16")
most = 3 * many * 960 * 1280 + target.nbytes  # bytes that count, at most
store = ct.empty(most // 2, "uint8"), ct.empty(most // 2, "uint8")

# %% [markdown]
# Which plan is fastest depends on the sizes. So each batch tries all of them,
# and takes one. Its time is measured anew behind that.

# %% plans
chosen = {}


def contestants(name, shapes, host):
    """The kernel, and a copy of as many useful bytes; and these bytes."""
    useful = reference.useful_bytes(shapes, SIDE, SIDE)
    a, b = (half[: useful // 2] for half in store)
    chosen[name], ours = tuned(Batch(host), target)
    return {"ours": ours, "copy": ct.vendor.copy(b, a)}, useful


# %% [markdown]
# Right before fast: the first and the last image of each batch.

# %% check
hosts = {name: noise(shapes) for name, shapes in BATCHES.items()}
found = {}
for name, host in hosts.items():
    found[name] = contestants(name, BATCHES[name], host)
    ct.poison(target)
    found[name][0]["ours"]()
    for k in (0, many - 1):
        ct.check(
            bf16(target[k].get()),
            reference.letterbox(host[k], SIDE, SIDE),
            name=f"{name}, image {k}", rtol=2**-8, atol=1e-3,
        )  # fmt: skip

# %% [markdown]
# Both batches beside the copy, and beside torchvision. It gets images of one
# size as one array, and others one by one.

# %% batches
beside_copy, beside_chain = {}, {}
for name, (runs, useful) in found.items():
    beside_copy[name] = ct.bench(
        runs, bytes=useful, name=f"{many} photographs, {name}", rounds=rounds
    )
    each = [ct.to_device(image) for image in hosts[name]]
    chain = vision.preprocess(
        each, reference.placed, SIDE, reference.MEAN, reference.STD
    )
    beside_chain[name] = ct.bench(
        {"ours": runs["ours"], "torchvision": chain},
        bytes=useful,
        name=f"{many} photographs, {name}, beside torchvision",
        rounds=few,
    )
    del each, chain


# %% [markdown]
# OpenCV does the same on the CPU, and stays there: its planes are fp32, and
# nobody copies them to the GPU.

# %% opencv
by = np.float32(1 / (255 * np.array(reference.STD)))
plus = np.float32(-np.array(reference.MEAN) / reference.STD)


def on_the_cpu(cv2, host):
    planes = np.empty((len(host), 3, SIDE, SIDE), "float32")

    def run():
        for image, out in zip(host, planes):
            high, wide, top, left = reference.placed(
                *image.shape[:2], SIDE, SIDE
            )
            x = cv2.resize(image, (wide, high), interpolation=cv2.INTER_LINEAR)
            x = cv2.copyMakeBorder(
                x, top, SIDE - high - top, left, SIDE - wide - left,
                cv2.BORDER_CONSTANT, value=(114, 114, 114),
            )  # fmt: skip
            for c in range(3):
                np.multiply(x[:, :, 2 - c], by[c], out=out[c])
                out[c] += plus[c]

    return run


for name, host in hosts.items():
    us = vision.opencv_us(lambda cv2, host=host: on_the_cpu(cv2, host), 3)
    if isinstance(us, float):
        ct.facts(
            f"OpenCV on the CPU, {name}",
            {
                "time": (us, "us"),
                "OpenCV / ours": (
                    us / beside_copy[name]["ours"].median_us,
                    "×",
                ),
            },
        )

# %% [markdown]
# Each size alone. Where centers of output pixels lie on centers of the
# photograph's, three weights of four are 0.

# %% sizes
alone = {}
for shape in SIZES:
    name = f"{shape[0]} x {shape[1]}"
    if name not in found:
        found[name] = contestants(name, [shape] * many, noise([shape]) * many)
    runs, useful = found[name]
    alone[name] = (
        useful,
        ct.bench(
            runs,
            bytes=useful,
            name=f"{many} photographs, {name}",
            rounds=few,
        ),
    )

# %% by-size
if not ct.tool.running():
    rows = {}
    for name, (useful, bench) in alone.items():
        height, width = map(int, name.split(" x "))
        new_height = reference.placed(height, width, SIDE, SIDE)[0]
        rows[name] = {
            "scale": height / new_height,
            "useful": useful / 1e6,
            "ours": bench["ours"].median_us,
            "copy": bench["copy"].median_us,
            "copy / ours": bench.ratio("ours", "copy").median,
        }
    ct.table(
        "each size alone",
        rows,
        corner="height and width",
        units={
            "useful": "MB", "ours": "us", "copy": "us", "copy / ours": "×",
        },
    )  # fmt: skip


# %% taken
def taken(plan):
    """What a plan has of those that the attempts name."""
    has = {
        "twelve blocks": plan.get("BLOCKS") == 12,
        "third word if needed": plan.get("THIRD") == 0,
        "asked ahead": plan.get("AHEAD") == 1,
        "middle first": plan.get("CENTER") == 1,
        "tiles from the image on": plan.get("TURN") == 1,
    }
    return {what: "yes" if it else None for what, it in has.items()}


if not ct.tool.running():
    ct.table(
        "the fastest plan",
        {name: taken(plan) for name, plan in chosen.items()},
        corner="photographs",
    )

# %% goals
if not ct.tool.running():
    wanted = {}
    for name in BATCHES:
        wanted[f"{name}: copy"] = beside_copy[name].goal("ours", "copy", 0.85)
        if "torchvision" in {row.name for row in beside_chain[name].rows}:
            wanted[f"{name}: torchvision"] = beside_chain[name].goal(
                "ours", "torchvision", 3.0
            )
    ct.goals("speed beside others", wanted)
