"""Try-out of images/resize on the GPU: the kernel for images that grow, right on ragged sizes, then times. Run from the root of a checkout.

Predicted, H200, 2160 x 3840 to 4320 x 7680 (124 MB that count, a copy takes 33 us; rows 8 took 142 us). The first kernel that keeps
rows was to take 60 us and took 107 (91 with 16 rows and 4 blocks): 363 issue slots for a row of four pixels, where the sketch had 150.
Its code chose between words and bytes for each pixel, so that the four pixels' loads came one after the other, and computed the position
of each row anew, 60 instructions of 64 bits. Both are gone, which leaves 168 instructions by the machine code:
  kept 16      55 us, 0.6 of the copy; with 3 blocks a SM 60
  kept 8       60 us
  by 3, by 1.5 45 us; 62
"""

# ruff: noqa: B023 - what a loop makes is called at once

import os
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np

sys.path.insert(0, os.getcwd())
import cudatut as ct
from cudatut.book.images.resize import reference, resize

START, LIMIT = time.time(), 20
RNG = np.random.default_rng(35)
VARIANTS = {
    "rows 8": ("rows", {"ROWS": 8}),
    "kept 8": ("kept", {"ROWS": 8}),
    "kept 16": ("kept", {}),
    "kept 32": ("kept", {"ROWS": 32}),
    "kept 8, 3 blocks": ("kept", {"ROWS": 8, "RESIDENT": 3}),
    "kept 16, 3 blocks": ("kept", {"RESIDENT": 3}),
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
    for name in ("resize", "resize_contest", "resize_claims", "resize_solutions"):
        begin = time.time()
        command = [sys.executable, "-m", "cudatut", "run", f"images/{name}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        print(f"=== {name}: {done.returncode} after {time.time() - begin:.1f} s")
        print(done.stdout[-9000:], done.stderr[-3000:], flush=True)
