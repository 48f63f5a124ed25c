"""Try-out of the scoreboard's rivals and of CUTLASS's convolution. Run from the root of a checkout on the GPU machine:

    bash .whl/enter.sh python tools/tries/images_scoreboard.py [networks] [right] [cutlass] [time] [chains]

Nothing here has been measured yet. What is expected, before any run:
- networks: each list of layers is what torchvision's model runs (shapes of weights and results, by hooks on the CPU).
- right: cuDNN on our memory, by aten.cudnn_convolution.out, writes what fp64 says, in both layouts, and so does CUTLASS.
  If the operator has no `out` in this PyTorch, the row says so: then `contestants` must use conv2d alone.
- cutlass: five tiles, up to a minute to compile, side by side. Its only schedule for convolutions has one consumer warpgroup and no
  persistent blocks ('Persistent schedules not support for conv yet', dispatch_policy.hpp): predicted 0.6 to 0.8 of cuDNN on the
  large anchor, 128 x 128 in a cluster of 2 ahead; ours, persistent with two consumers, 1.3x CUTLASS.
- time: the anchors as in anchors.md: 56.8 and 50.1 TFLOP/s in fp32, 356 and 784 in bf16; all algorithms (tries=0) no more than 3 %
  faster than ten. PyTorch's conv2d equals cuDNN plus its allocation, but for depthwise layers in fp32, where it has a kernel of its own.
- chains: torchvision's resize, chain and NMS run on our memory; OpenCV beside them.
"""

import sys
import time
import traceback

import numpy as np

import cudatut as ct
from cudatut.book.images.cutlass_conv import conv as cutlass
from cudatut.book.images.scoreboard import shapes
from cudatut.book.images.scoreboard.field import Field
from cudatut.book.images.scoreboard.networks import NETWORKS
from cudatut.book.rivals import cudnn_conv, vision

START, LIMIT_S = time.perf_counter(), 130
WHAT = sys.argv[1:] or ["networks", "right", "cutlass", "time", "chains"]
MODELS = {
    "VGG-16": ("vgg16", 224), "Inception v3": ("inception_v3", 299), "ResNet-50": ("resnet50", 224),
    "ResNeXt-50 32x4d": ("resnext50_32x4d", 224), "MobileNetV2": ("mobilenet_v2", 224),
    "EfficientNet-B0": ("efficientnet_b0", 224), "ConvNeXt-T": ("convnext_tiny", 224),
}  # fmt: skip


def left():
    return LIMIT_S - (time.perf_counter() - START)


def failing(what, call):
    try:
        return call()
    except Exception as error:
        print(f"FAILED {what}: {type(error).__name__}: {str(error)[:400]}")
        if "illegal" in str(error) or "launch failed" in str(error):
            traceback.print_exc()
            raise SystemExit("the context is lost") from None
        return None


def networks():
    """Convolutions that a model runs, with how often, beside ours."""
    import torch
    import torchvision

    for network, (model, side) in MODELS.items():
        made = getattr(torchvision.models, model)(weights=None).eval()
        ran = {}

        def seen(module, given, result, ran=ran):
            if isinstance(module, torch.nn.Linear):  # ConvNeXt's 1 x 1
                if result.dim() == 4:
                    _, h, w, k = result.shape
                    key = (module.in_features, (h, w), k, (1, 1), (1, 1), (0, 0), (1, 1), 1)
                    ran[key] = ran.get(key, 0) + 1
                return
            size = tuple(given[0].shape[-2:])
            if size == (1, 1):  # squeeze-and-excitation
                return
            key = (
                module.in_channels, size, module.out_channels, module.kernel_size, module.stride,
                module.padding, module.dilation, module.groups,
            )  # fmt: skip
            ran[key] = ran.get(key, 0) + 1

        for module in made.modules():
            if isinstance(module, (torch.nn.Conv2d, torch.nn.Linear)):
                module.register_forward_hook(seen)
        with torch.no_grad():
            made(torch.zeros(1, 3, side, side))
        ours = {tuple(row[3:]): row.times for row in NETWORKS[network].layers}
        print(f"{network}: {'the same' if ours == ran else 'OTHERS'}, {sum(ran.values())} layers")
        for key in ours.keys() ^ ran.keys() | {
            k for k in ours.keys() & ran.keys() if ours[k] != ran[k]
        }:
            print("   ", key, "ours", ours.get(key), "theirs", ran.get(key))


def right():
    """Every rival that writes to our results, on all cases, shrunk and whole."""
    cases = [
        shapes.shrunk(case, 20, 2) for case in [*shapes.VARIED, *shapes.CUDATUTORIAL, *shapes.DRAWN]
    ]
    cases += shapes.ANCHORS
    for kind in ("fp32", "bf16"):
        field, done = Field(kind, cases), 0
        for case in cases:
            x, w, y = field.arrays(case)
            layer = case.layer
            rest = layer.stride, layer.pad, layer.dilation, layer.groups
            runs = {"cuDNN": cudnn_conv.contestants(x, w, y, *rest)["cuDNN"]}
            if kind == "bf16" and "cutlass" in WHAT:
                runs["CUTLASS"] = cutlass.prepare(case, x, w, y)
            for name, run in runs.items():
                if not run:
                    print(f"absent: {name}, {case.name}, {kind}: {run.reason}")
                    continue

                def one(run=run, name=name, case=case, y=y, field=field):
                    ct.poison(y)
                    run()
                    field.check(case, name)
                    return True

                done += bool(failing((name, case.name, kind), one))
            if left() < 0:
                print("out of time")
                return
        print(f"{kind}: {done} right after {time.perf_counter() - START:.0f} s", flush=True)


def anchors():
    for kind in ("bf16", "fp32"):
        field = Field(kind, [*shapes.ANCHORS, *shapes.VARIED])
        for case in [*shapes.ANCHORS, *shapes.VARIED]:
            if left() < 8:
                print("out of time before", case.name, kind)
                return
            x, w, y = field.arrays(case)
            layer = case.layer
            rest = layer.stride, layer.pad, layer.dilation, layer.groups
            runs = failing(case.name, lambda field=field, case=case: field.contest(case)) or {}
            if case in shapes.ANCHORS:
                runs["cuDNN, all"] = cudnn_conv.contestants(x, w, y, *rest, tries=0)["cuDNN"]
            if kind == "bf16" and case in shapes.ANCHORS:
                for tile in cutlass.TILES:
                    one = cutlass.prepare(case, x, w, y, (tile,))
                    if one:
                        runs[tile.name] = one
            failing(
                case.name,
                lambda runs=runs, case=case, kind=kind: ct.bench(
                    runs, flops=case.flops, name=f"{case.name}, {kind}", rounds=15, limit=False
                ),
            )


def chains():
    rng = ct.rng(0)
    photo = rng.integers(0, 256, (1080, 1920, 3), "uint8")
    image = ct.to_device(photo)
    corners = rng.uniform(0, 1000, (20_000, 2)).astype("float32")
    boxes = ct.to_device(np.hstack([corners, corners + 100]).astype("float32"))
    scores = ct.to_device(rng.random(20_000, dtype="float32"))
    placed = lambda h, w, *_: (360, 640, 140, 0)  # noqa: E731
    runs = {
        "resize": vision.resize(image, (360, 640)),
        "chain": vision.preprocess([image], placed, 640, (0.5,) * 3, (0.25,) * 3),
        "NMS": vision.nms(boxes, scores, 0.5),
    }
    ct.bench(runs, name="torchvision", rounds=10, limit=False)
    for how in ("INTER_LINEAR", "INTER_NEAREST"):
        us = vision.opencv_us(
            lambda cv2, how=how: (
                lambda: cv2.resize(photo, (640, 360), interpolation=getattr(cv2, how))
            )
        )
        print(f"OpenCV, {how}: {us}")
    print(vision.versions(), cudnn_conv.version())


if "networks" in WHAT:
    failing("networks", networks)
if "cutlass" in WHAT:
    failing("compile CUTLASS", cutlass.libraries)
    print(f"CUTLASS compiled after {time.perf_counter() - START:.0f} s", flush=True)
if "right" in WHAT:
    failing("right", right)
if "time" in WHAT:
    failing("time", anchors)
if "chains" in WHAT:
    failing("chains", chains)
print(f"done after {time.perf_counter() - START:.0f} s")
