"""Try-out of images/resize on the GPU: the kernel for images that grow, right on ragged sizes, then times. Run from the root of a checkout.

Predicted, H200, 2160 x 3840 to 4320 x 7680 (124 MB that count, a copy takes 33 us; rows 8 took 142 us, bound by instructions):
  kept 8   half a row of the image for each row of the output instead of two: 12 loads and some 100 instructions become 3 and 50,
           each row of four pixels then has some 150 instructions instead of 400: 60 us, 0.55 of the copy
  kept 16  the first row of a thread is loaded twice as seldom: 3 to 5 % less; fewer blocks
  RESIDENT 4  64 registers for 72 to 80 hide more of the loads: 0 to 10 % less
  by 3     a third of a row: 45 to 50 us for the same output, of 110 MB
"""

# ruff: noqa: B023 - what a loop makes is called at once

import os
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np

sys.path.insert(0, os.getcwd())
import cudatut as ct
from cudatut.book.images.resize import reference, resize

START, LIMIT = time.time(), 25
RNG = np.random.default_rng(35)
VARIANTS = {
    "rows 1": ("rows", {"ROWS": 1}),
    "rows 4": ("rows", {}),
    "rows 8": ("rows", {"ROWS": 8}),
    "kept 4": ("kept", {"ROWS": 4}),
    "kept 8": ("kept", {}),
    "kept 16": ("kept", {"ROWS": 16}),
    "kept 8, 4 blocks": ("kept", {"RESIDENT": 4}),
    "kept 16, 4 blocks": ("kept", {"ROWS": 16, "RESIDENT": 4}),
}
SIZES = [(1, 1), (1, 2), (2, 1), (3, 3), (1, 9), (9, 1), (7, 5), (31, 33), (65, 64), (130, 257)]
failed = 0


def attempt(what, call):
    global failed
    try:
        call()
    except Exception as error:
        failed += 1
        print("FAILED", what, "|", (str(error).splitlines() or [repr(error)])[:3], flush=True)


def compile_all():
    ct.device()
    wanted = [("resize", name, ()) for name in ("resize_nearest", "resize_bilinear", "letterbox")]
    wanted += [("formula", "resize_wrong", ())]
    wanted += [
        (way, f"letterbox_{way}", tuple(sorted({"ROWS": resize.ROWS[way], **plan}.items())))
        for way, plan in VARIANTS.values()
    ]

    def one(it):
        ct.Kernel(f"{resize.FOLDER}/{it[0]}.cu", it[1], dict(it[2]), load=False)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(one, wanted))


def picture(height, width):
    return RNG.integers(0, 251, (height, width, 3), np.uint8)


def fresh(shape):
    """An output whose poison no value between those of a picture is."""
    out = ct.empty(shape, np.uint8)
    ct.poison(out, 251)
    return out


def judged(name, out, values):
    got = out.get()
    assert np.array_equal(got, reference.rounded(values, got)), name


def checks():
    for source in SIZES:
        image = picture(*source)
        x = ct.to_device(image)
        for to in SIZES:
            label, value = f"{source} to {to}", reference.resize_bilinear(image, *to)

            def boxed(way, centered, plan):
                out = fresh((*to, 3))
                resize.letterbox(x, out, 114, centered, way, **plan)()
                judged(
                    f"letterbox {label} {way} {centered} {plan}",
                    out,
                    reference.letterbox(image, *to, 114, centered),
                )

            def whole(way, plan):
                out = fresh((*to, 3))
                resize.letterbox(x, out, whole=True, way=way, **plan)()
                judged(f"whole {label} {plan}", out, value)

            for way, plan in VARIANTS.values():
                if way == "kept":
                    attempt(label, lambda: boxed(way, True, plan))
                    attempt(label, lambda: boxed(way, False, plan))
                    attempt(label, lambda: whole(way, plan))


def contest(source, to):
    image = picture(*source)
    useful = reference.useful_bytes(*source, *to)
    x, out = ct.to_device(image), ct.empty((*to, 3), np.uint8)
    runs = {"pixel": resize.bilinear(x, out), "nearest": resize.nearest(x, out)}
    runs |= {
        name: resize.letterbox(x, out, whole=True, way=way, **plan)
        for name, (way, plan) in VARIANTS.items()
    }
    try:
        import torch
        from torchvision.transforms.v2 import functional as tv

        a = torch.randint(0, 255, (useful // 2,), dtype=torch.uint8, device="cuda")
        b = torch.empty_like(a)
        runs["copy"] = lambda: b.copy_(a)
        chw = torch.as_tensor(image).cuda().movedim(-1, 0)  # channels last in memory
        runs["torchvision"] = lambda: tv.resize(chw, list(to), antialias=False)
        planes, size = chw.contiguous()[None].float(), list(to)
        runs["PyTorch, fp32 planes"] = lambda: torch.nn.functional.interpolate(
            planes, size=size, mode="bilinear", align_corners=False
        )
    except Exception:
        traceback.print_exc()
    found = ct.bench(runs, bytes=useful, name=f"{source} to {to}", rounds=12)
    best = min(VARIANTS, key=lambda one: found[one].median_us)
    for other in ("copy", "torchvision"):
        if other in runs:
            print(f"BEST {best}: {found.ratio(best, other).median:.3f} x {other}")


if __name__ == "__main__":
    compile_all()
    print(f"compiled after {time.time() - START:.1f} s", flush=True)
    checks()
    print(f"checked after {time.time() - START:.1f} s, failed: {failed}", flush=True)
    for source, to in (
        ((2160, 3840), (4320, 7680)),
        ((1440, 2560), (4320, 7680)),
        ((2880, 5120), (4320, 7680)),
        ((1080, 1920), (2160, 3840)),
        ((540, 960), (1080, 1920)),
        ((4320, 7680), (2160, 3840)),
        ((1080, 1920), (640, 640)),
    ):
        if time.time() - START < LIMIT:
            attempt(("contest", source), lambda: contest(source, to))
    print(f"done after {time.time() - START:.1f} s, failed: {failed}")
