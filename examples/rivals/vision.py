"""torchvision on the GPU and OpenCV on the CPU, beside our kernels for images.

    run = vision.nms(boxes, scores, 0.5)
    run = vision.resize(image, (300, 400), "bilinear")
    run = vision.preprocess(images, placed, 640, mean, std)
    us = vision.opencv_us(lambda cv2: lambda: cv2.resize(image, (400, 300)))

What torchvision is given is the memory of our arrays.
"""

import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from statistics import median
from typing import Any

import cudatut as ct
from cudatut.book.rivals import torch_rival
from cudatut.book.rivals.absent import absent

BORDER = 114  # gray, as networks that detect objects take it


def nms(boxes: Any, scores: Any, limit: float) -> Any:
    """A contestant whose call returns the places of the boxes that stay, best
    first. boxes: fp32, [n][4], two corners. What stands for it otherwise is as
    in `torch_rival`."""

    def prepare(torch: Any, *tensors: Any) -> Any:
        from torchvision.ops import nms

        return lambda: nms(*tensors, limit)

    return torch_rival.rival(prepare, boxes, scores)


def resize(image: Any, size: tuple[int, int], how: str = "bilinear") -> Any:
    """A contestant whose call returns [channel][row][column] in uint8. image:
    uint8, [row][column][channel]. how: "bilinear" or "nearest-exact", both with
    half-pixel centers, or "nearest"."""

    def prepare(torch: Any, tensor: Any) -> Any:
        from torchvision.transforms.v2 import functional as tv
        from torchvision.transforms.v2 import InterpolationMode

        mode = InterpolationMode(how)
        x = tensor.movedim(-1, -3)
        return lambda: tv.resize(x, list(size), mode, antialias=False)

    return torch_rival.rival(prepare, image)


def preprocess(
    images: list[Any], placed: Callable, side: int, mean: Any, std: Any
) -> Any:
    """A contestant, a chain of torchvision's functions, whose call returns
    bf16, [image][channel][side][side].

    images: uint8, [row][column][channel], blue first; if all have one size,
    they are done at once. placed(height, width, side, side) returns height,
    width, top and left of an image that is made to fit. torchvision rounds to
    uint8 behind its resize.
    """

    def prepare(torch: Any, *tensors: Any) -> Any:
        from torchvision.transforms.v2 import functional as tv

        def one(image: Any) -> Any:
            high, wide, top, left = placed(*image.shape[-3:-1], side, side)
            x = image.movedim(-1, -3).flip(-3)  # red first
            x = tv.resize(x, [high, wide], antialias=False)
            around = [left, top, side - wide - left, side - high - top]
            x = tv.pad(x, around, fill=BORDER)
            x = tv.to_dtype(x, torch.float32, scale=True)
            return tv.normalize(x, list(mean), list(std)).to(torch.bfloat16)

        if len({image.shape for image in tensors}) == 1:
            # Side by side in memory only if they came so: else a copy, once.
            stacked = torch.stack(tensors)
            return lambda: one(stacked).contiguous()
        return lambda: torch.stack([one(image) for image in tensors])

    return torch_rival.rival(prepare, *images)


def opencv_us(
    prepare: Callable[..., Callable[[], Any]], rounds: int = 5
) -> Any:
    """How long it takes on the CPU, in microseconds: the median of `rounds`,
    after one that does not count. prepare(cv2) returns what is timed.

    None under a sanitizer or profiler; where OpenCV is not installed, the
    reason. Raises ct.ToolMissing while an example is recorded.
    """
    if ct.tool.running():
        return None
    try:
        import cv2
    except ImportError as error:
        return absent("OpenCV is not installed", error)
    call = prepare(cv2)
    call()
    took = []
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        took.append(time.perf_counter() - begin)
    return 1e6 * median(took)


def versions() -> dict[str, str]:
    """Of torchvision and OpenCV, or that one is not installed."""
    found = {}
    for name, packages in {
        "torchvision": ("torchvision",),
        "OpenCV": ("opencv-python-headless", "opencv-python"),
    }.items():
        found[name] = "not installed"
        for package in packages:
            try:
                found[name] = version_of(package)
                break
            except PackageNotFoundError:
                continue
    return found
