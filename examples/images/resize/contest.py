# ---
# jupyter:
#   cudatut:
#     title: {en: "Resize: the contest", zh: "缩放：比赛"}
#     requires: sm_75
#     extra: images
#     timeout_s: 150
#     sizes:
#       shrink: [1, 60]
#       rounds: [25, 1]
#       shape: [[480, 640], [24, 32]]
# ---

# %% [markdown]
# What others write for the same image: OpenCV on the CPU, torchvision on the
# GPU and on the CPU, beside fp64 rounded to the nearest integer, halves to even.

# %% setup
import numpy as np
from cudatut.book.images.resize import reference, resize
from cudatut.book.rivals import vision
from cudatut.book.rivals.torch_rival import rival

import cudatut as ct

# %% others
shape = (480, 640)
host = ct.rng(0).integers(0, 255, (*shape, 3), np.uint8)
to = (300, 400)
ground = np.rint(reference.resize_bilinear(host, *to)).astype(int)
target = ct.empty((*to, 3), "uint8")
resize.bilinear(ct.to_device(host), target)()
written = {"ours": target.get()}
nearest = {}
if not ct.tool.running():
    try:
        import cv2

        for name in ("INTER_LINEAR", "INTER_LINEAR_EXACT"):
            written[f"OpenCV, {name}"] = cv2.resize(
                host, to[::-1], interpolation=getattr(cv2, name)
            )
        for name in ("INTER_NEAREST", "INTER_NEAREST_EXACT"):
            nearest[f"OpenCV, {name}"] = cv2.resize(
                host, to[::-1], interpolation=getattr(cv2, name)
            )
        import torch
        from torchvision.transforms.v2 import functional as tv

        planes = torch.as_tensor(host).movedim(-1, 0)
        for name, x in (("GPU", planes.cuda()), ("CPU", planes)):
            resized = tv.resize(x, list(to), antialias=False)
            written[f"torchvision, {name}"] = (
                resized.movedim(0, -1).cpu().numpy()
            )
    except ImportError as error:
        if ct.tool.recording():
            raise
        print(f"left out: {error}")
nearest_ground = reference.resize_nearest(host, *to)
resize.nearest(ct.to_device(host), target)()
nearest["ours"] = target.get()
ct.table(
    "beside fp64, rounded: 480 x 640 random pixels to 300 x 400",
    {
        name: {
            "bytes that differ": 100 * float((image != ground).mean()),
            "most": int(np.abs(image - ground).max()),
        }
        for name, image in written.items()
    },
    corner="between pixels",
    units={"bytes that differ": "%"},
)
ct.table(
    "nearest pixel",
    {
        name: {
            "bytes that differ": 100 * float((image != nearest_ground).mean())
        }
        for name, image in sorted(nearest.items())
    },
    corner="nearest pixel",
    units={"bytes that differ": "%"},
)

# %% [markdown]
# The same with the photograph, as pictures.

# %% seen
from cudatut.book.images.photograph import photograph

face = np.ascontiguousarray(photograph()[40:160, 160:280])
bigger = (192, 192)
rounded = np.rint(reference.resize_bilinear(face, *bigger)).astype(int)
target = ct.empty((*bigger, 3), "uint8")
resize.bilinear(ct.to_device(face), target)()
pictures = {"ours": target.get()}
if not ct.tool.running():
    try:
        import cv2

        pictures["OpenCV"] = cv2.resize(face, bigger[::-1])
    except ImportError as error:
        if ct.tool.recording():
            raise
        print(f"left out: {error}")
for name, image in pictures.items():
    off = np.abs(image - rounded).max(axis=2)
    ct.picture(
        f"{name}, difference to fp64 times 128",
        np.minimum(128 * off, 255).astype("uint8"),
        alt={
            "en": f"Gray points on black where a byte differs: {name}.",
            "zh": f"黑底上的灰点是有差别的字节：{name}。",
        },
    )
    ct.facts(
        f"{name}, bytes that differ",
        {"of the photograph": (100 * float((image != rounded).mean()), "%")},
    )

# %% [markdown]
# By size, beside a copy of as many bytes as count, and torchvision.

# %% sizes
shrink = 1
shapes = (
    ((4_320, 7_680), (2_160, 3_840)),
    ((2_160, 3_840), (4_320, 7_680)),
    ((1_080, 1_920), (640, 640)),
    ((4_320, 7_680), (640, 640)),
)
rounds = 25


def label(size, to):
    return f"{size[0]} x {size[1]} to {to[0]} x {to[1]}"


def contest(size, to):
    size, to = ([n // shrink for n in one] for one in (size, to))
    host = ct.rng(1).integers(0, 251, (*size, 3), np.uint8)
    x, y = ct.to_device(host), ct.empty((*to, 3), "uint8")
    useful = reference.useful_bytes(*size, *to)
    a, b = (ct.empty(useful // 2, "uint8") for _ in range(2))
    ct.poison(a)
    ours = resize.fastest(x, y)
    ct.poison(y, 251)
    ours()
    rows = slice(0, min(to[0], 9))  # the first ones, by fp64
    got = y[rows].get()
    values = reference.resize_bilinear(host, *to, only=rows)
    ct.check(got, reference.rounded(values, got), name=label(size, to), atol=0)
    runs = {
        "ours": ours,
        "one pixel": resize.bilinear(x, y),
        "copy": rival(lambda torch, a, b: lambda: b.copy_(a), a, b),
        "torchvision": vision.resize(x, to),
    }
    return ct.bench(runs, bytes=useful, name=label(size, to), rounds=rounds)


by_size = {label(*one): contest(*one) for one in shapes}

# %% opencv
if not ct.tool.running():
    on_cpu = {}
    for size, to in shapes:
        host = ct.rng(1).integers(0, 255, (*size, 3), np.uint8)
        us = vision.opencv_us(
            lambda cv2, host=host, to=to: lambda: cv2.resize(host, to[::-1])
        )
        if isinstance(us, float):
            ours = by_size[label(size, to)]["ours"].median_us
            on_cpu[label(size, to)] = {
                "OpenCV": us,
                "ours": ours,
                "OpenCV / ours": us / ours,
            }
    if on_cpu:
        ct.table(
            "OpenCV on the CPU, beside ours on the GPU without copies",
            on_cpu,
            corner="sizes",
            units={"OpenCV": "us", "ours": "us", "OpenCV / ours": "×"},
        )

# %% goals
if not ct.tool.running():
    small = [one for one in by_size if one.endswith("640 x 640")]
    half, twice = (one for one in by_size if one not in small)
    ct.goals(
        "beside torchvision, and beside a copy",
        {
            f"{size}, {wanted} x torchvision": one.goal(
                "ours", "torchvision", wanted
            )
            for wanted in (3.0,)
            for size, one in by_size.items()
        }
        | {
            f"{size}, {wanted} x copy": by_size[size].goal(
                "ours", "copy", wanted
            )
            for size, wanted in ((half, 0.7), (twice, 0.5))
        },
    )
