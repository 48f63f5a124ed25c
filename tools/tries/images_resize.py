"""Try-out of images/resize on the GPU: right on ragged sizes, then times. Run from the root of a checkout.

Predicted, H200, 4320 x 7680 to 2160 x 3840 (124 MB that count, a copy takes 29 us) and back up (124 MB too):
  pixel        twelve byte loads and three byte stores a pixel: 0.3 of the copy down, 0.1 to 0.15 up (four times the pixels)
  rows, bytes  taps of columns once, stores of words: 0.5 down
  rows, words  six loads for twelve a pixel and no conversions (I2F, F2I run at a quarter of the rate): 0.6 to 0.8 down. Up,
               33 million pixels of some 70 instructions are 72 us of issue slots: 0.4 of the copy, whatever memory does
  nearest      three loads of a byte: 0.4 down (reads whole sectors: half of what counts lies unused beside)
1080 x 1920 to 640 x 640, one image: 3 MB are 1 us; the launch and one latency chain of loads are 3 to 5 us, all rungs alike.
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

START, LIMIT = time.time(), 70
RNG = np.random.default_rng(35)
VARIANTS = {
    "rows 1": {"ROWS": 1},
    "rows 2": {"ROWS": 2},
    "rows 4": {"ROWS": 4},
    "rows 8": {"ROWS": 8},
    "rows 2, bytes": {"WORDS": 0, "BY_BITS": 0},
    "rows 2, bytes by bits": {"WORDS": 0},
    "rows 2, words converted": {"BY_BITS": 0},
}
BLOCKS = [(32, 8), (64, 4), (16, 16), (128, 2), (8, 32)]
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
        ("rows", "letterbox_rows", tuple(sorted({"ROWS": resize.ROWS, **plan}.items())))
        for plan in VARIANTS.values()
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
    ct.check(out, reference.rounded(values, got), name)


def checks():
    for source in SIZES:
        image = picture(*source)
        x = ct.to_device(image)
        for to in SIZES:
            label, value = f"{source} to {to}", reference.resize_bilinear(image, *to)

            def near():
                out = fresh((*to, 3))
                resize.nearest(x, out)()
                ct.check(out, reference.resize_nearest(image, *to), f"nearest {label}")

            def linear():
                out = fresh((*to, 3))
                resize.bilinear(x, out)()
                judged(f"bilinear {label}", out, value)

            def boxed(way, centered, plan):
                out = fresh((*to, 3))
                resize.letterbox(x, out, 114, centered, way, **plan)()
                judged(
                    f"letterbox {label} {way} {centered} {plan}",
                    out,
                    reference.letterbox(image, *to, 114, centered),
                )

            def whole(plan):
                out = fresh((*to, 3))
                resize.letterbox(x, out, whole=True, **plan)()
                judged(f"whole {label} {plan}", out, value)

            def mistakes(which):
                out = ct.empty((*to, 3), np.float32)
                resize.wrong(x, out, which)()
                wanted = reference.wrong(image, *to, which)
                ct.check(out, wanted, f"mistakes {which} {label}", atol=1e-3)

            attempt(label, near)
            attempt(label, linear)
            attempt(label, lambda: boxed("pixel", True, {}))
            for plan in VARIANTS.values():
                attempt(label, lambda: boxed("rows", True, plan))
                attempt(label, lambda: whole(plan))
            attempt(label, lambda: boxed("rows", False, {}))
            for which in range(8):
                attempt(label, lambda: mistakes(which))


def differences(image, to):
    """How far others are from us, and from the reference: their rounding, which the page states."""
    values = reference.resize_bilinear(image, *to)
    ground = np.rint(values).astype(int)

    def tell(name, found):
        off = np.abs(found.astype(int) - ground)
        print(f"  {name}: differs in {(off > 0).mean():.4f} of the values, at most by {off.max()}")

    x, out = ct.to_device(image), ct.empty((*to, 3), np.uint8)
    resize.letterbox(x, out, whole=True)()
    tell("ours", out.get())
    try:
        import cv2

        size = to[::-1]
        tell("OpenCV INTER_LINEAR", cv2.resize(image, size, interpolation=cv2.INTER_LINEAR))
        tell(
            "OpenCV INTER_LINEAR_EXACT",
            cv2.resize(image, size, interpolation=cv2.INTER_LINEAR_EXACT),
        )
        wanted = reference.resize_nearest(image, *to)
        for name in ("INTER_NEAREST", "INTER_NEAREST_EXACT"):
            off = (cv2.resize(image, size, interpolation=getattr(cv2, name)) != wanted).mean()
            print(f"  OpenCV {name}: differs in {off:.4f} of the values")
    except Exception:
        traceback.print_exc()
    try:
        import torch
        from torchvision.transforms.v2 import functional as tv

        chw = torch.as_tensor(image).cuda().movedim(-1, 0)
        tell(
            "torchvision, GPU",
            tv.resize(chw, list(to), antialias=False).movedim(0, -1).cpu().numpy(),
        )
        tell(
            "torchvision, CPU",
            tv.resize(chw.cpu(), list(to), antialias=False).movedim(0, -1).numpy(),
        )
        four = torch.nn.functional.interpolate(
            chw[None].float(), size=to, mode="bilinear", align_corners=False
        )
        off = np.abs(four[0].movedim(0, -1).cpu().numpy() - values)
        print(f"  PyTorch in fp32: at most {off.max():.5f} from the reference in fp64")
    except Exception:
        traceback.print_exc()
    for which, name in ((1, "corner"), (2, "nearest"), (4, "exchanged"), (7, "all three")):
        there = ct.empty((*to, 3), np.float32)
        resize.wrong(x, there, which)()
        found = there.get()
        beyond = ((found < 0) | (found > 255)).mean()
        print(
            f"  mistake {name}: mean {np.abs(found - values).mean():.2f}, most {np.abs(found - values).max():.0f}, beyond a byte {beyond:.3f}"
        )


def contest(source, to):
    image = picture(*source)
    useful = reference.useful_bytes(*source, *to)
    x, out = ct.to_device(image), ct.empty((*to, 3), np.uint8)
    runs = {
        f"pixel {block}": resize.bilinear(x, out, block)
        for block in BLOCKS
        if ct.cdiv(to[0], block[1]) <= 65535
    }
    runs["nearest"] = resize.nearest(x, out)
    runs |= {name: resize.letterbox(x, out, whole=True, **plan) for name, plan in VARIANTS.items()}
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
    try:
        import cv2

        times = []
        for _ in range(3):
            begin = time.perf_counter()
            cv2.resize(image, to[::-1], interpolation=cv2.INTER_LINEAR)
            times.append(time.perf_counter() - begin)
        print(f"OpenCV on the CPU, {cv2.getNumThreads()} threads: {1e6 * sorted(times)[1]:.0f} us")
    except Exception:
        traceback.print_exc()


if __name__ == "__main__":
    compile_all()
    print(f"compiled after {time.time() - START:.1f} s", flush=True)
    checks()
    print(f"checked after {time.time() - START:.1f} s, failed: {failed}", flush=True)
    for to in ((300, 400), (100, 333), (1000, 1500)):
        print("differences, 480 x 640 of random bytes to", to)
        attempt("differences", lambda: differences(picture(480, 640), to))
    for source, to in (
        ((4320, 7680), (2160, 3840)),
        ((2160, 3840), (4320, 7680)),
        ((1080, 1920), (640, 640)),
        ((4320, 7680), (640, 640)),
    ):
        if time.time() - START < LIMIT - 12:
            attempt(("contest", source), lambda: contest(source, to))
    print(f"done after {time.time() - START:.1f} s, failed: {failed}")
