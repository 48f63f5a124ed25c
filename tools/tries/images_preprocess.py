"""Try-out of the chapter preprocess: is every rung right, and what does each variant take? At most 70 s.

Run from the root of a checkout: python tools/tries/images_preprocess.py. What each step should gain is said in the .md beside it.
"""

import os
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np

sys.path.insert(0, os.getcwd())
import cudatut as ct
from cudatut.book.images.preprocess import preprocess, reference
from cudatut.book.images.preprocess.preprocess import Batch, letterbox

START, LIMIT = time.time(), 70
SIDE = 640
# Sizes as photographs of data sets have them, height first.
SIZES = [(480, 640), (640, 480), (427, 640), (375, 500), (768, 1024), (720, 1280), (1080, 1920), (960, 1280)]
VARIANTS = {
    "bytes": {"WORDS": 0, "BY_BITS": 0},
    "bytes, by bits": {"WORDS": 0},
    "words, converted": {"BY_BITS": 0},
    "words": {},
    "1 pixel, 1 row": {"PIXELS": 1, "ROWS": 1},
    "1 pixel, 4 rows": {"PIXELS": 1},
    "2 pixels, 1 row": {"ROWS": 1},
    "2 pixels, 2 rows": {"ROWS": 2},
    "2 pixels, 8 rows": {"ROWS": 8},
    "4 pixels, 1 row": {"PIXELS": 4, "ROWS": 1},
    "4 pixels, 2 rows": {"PIXELS": 4, "ROWS": 2},
    "4 pixels, 4 rows": {"PIXELS": 4, "ROWS": 4},
    "4 pixels, bytes": {"PIXELS": 4, "ROWS": 2, "WORDS": 0},
    "8 pixels, 1 row": {"PIXELS": 8, "ROWS": 1},
}


def compile_all():
    ct.device()
    plans = {("letterbox_pixel", tuple(sorted({**preprocess.plan_of(640), "CHANNELS_LAST": 0}.items())))}
    for plan in VARIANTS.values():
        for width in (640, 642, 641):
            for last in (0, 1):
                own = {**preprocess.plan_of(width, **plan), "CHANNELS_LAST": last}
                plans.add(("letterbox_rows", tuple(sorted(own.items()))))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(lambda one: ct.Kernel(preprocess.SOURCE, one[0], dict(one[1]), load=False), plans))


def bf16(words):
    return (words.astype("uint32") << 16).view("float32").astype("float64")


def photographs(sizes, seed=0):
    chance = np.random.default_rng(seed)
    return [chance.integers(0, 256, (h, w, 3), dtype="uint8") for h, w in sizes]


def check(sizes, height, width, way="rows", align=16, last=False, **plan):
    images = photographs(sizes)
    batch = Batch(images, align)
    shape = (len(sizes), height, width, 3) if last else (len(sizes), 3, height, width)
    out = ct.empty(shape, "uint16")
    letterbox(batch, out, way=way, channels_last=last, **plan)()
    got = bf16(out.get())
    want = np.stack([reference.letterbox(i, height, width) for i in images])
    want = want.transpose(0, 2, 3, 1) if last else want
    # Half of a last place of bf16, and a weight's error in fp32: 1e-4 of 255 levels.
    ct.check(got, want, name=f"{way} {plan} {sizes[:2]} -> {height} x {width}, {align}, {last}", rtol=2**-8, atol=1e-3)


def failing(what, call):
    try:
        call()
    except Exception as error:
        print("FAILED", what, "\n   ", (str(error).splitlines() or [repr(error)])[:3], flush=True)
        if "illegal" in str(error).lower() or "launch" in str(error).lower():
            traceback.print_exc()


RAGGED = [(1, 1), (1, 7), (7, 1), (2, 3), (33, 65), (641, 639), (100, 1000)]


def checks():
    for height, width in ((1, 1), (3, 5), (64, 64), (31, 33), (66, 130)):
        failing(("pixel", height, width), lambda: check(RAGGED, height, width, "pixel"))
        for name, plan in VARIANTS.items():
            failing((name, height, width), lambda: check(RAGGED, height, width, **plan))
        failing(("last", height, width), lambda: check(RAGGED, height, width, last=True))
        failing(("align 1", height, width), lambda: check(RAGGED, height, width, align=1))
        failing(("last, 4", height, width), lambda: check(RAGGED, height, width, last=True, PIXELS=4))
    failing("640", lambda: check(SIZES[:3], 640, 640))


def torch_chain(batch, shapes, mean, std, same):
    """As a program of torchvision does it: one image after the other, or at once if all have the same size."""
    import torch
    from torchvision.transforms.v2 import functional as tv

    whole = torch.as_tensor(batch.pixels, device="cuda")
    images = [whole[f : f + 3 * h * w].view(h, w, 3) for f, (h, w) in zip(batch.firsts, shapes)]
    if same:
        images = [whole[: 3 * len(shapes) * shapes[0][0] * shapes[0][1]].view(len(shapes), *shapes[0], 3)]

    def one(image):
        nh, nw, top, left = reference.placed(*image.shape[-3:-1], SIDE, SIDE)
        x = image.movedim(-1, -3).flip(-3)
        x = tv.resize(x, [nh, nw], antialias=False)
        x = tv.pad(x, [left, top, SIDE - nw - left, SIDE - nh - top], fill=114)
        x = tv.to_dtype(x, torch.float32, scale=True)
        return tv.normalize(x, mean, std).to(torch.bfloat16)

    if same:
        return lambda: one(images[0]).contiguous()
    return lambda: torch.stack([one(image) for image in images])


def opencv_us(images):
    import cv2

    out = np.empty((len(images), 3, SIDE, SIDE), "float32")
    scale = (1 / (255 * np.array(reference.STD)), np.array(reference.MEAN) / np.array(reference.STD))

    def run():
        for image, target in zip(images, out):
            nh, nw, top, left = reference.placed(*image.shape[:2], SIDE, SIDE)
            x = cv2.resize(image, (nw, nh), interpolation=cv2.INTER_LINEAR)
            x = cv2.copyMakeBorder(x, top, SIDE - nh - top, left, SIDE - nw - left, cv2.BORDER_CONSTANT, value=(114,) * 3)
            for c in range(3):
                target[c] = x[:, :, 2 - c] * np.float32(scale[0][c]) - np.float32(scale[1][c])

    run()
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    print(f"OpenCV on the CPU, {cv2.getNumThreads()} threads: {1e6 * sorted(times)[1]:.0f} us (fp32, not copied to the GPU)")


def contest(name, sizes, same):
    images = photographs(sizes, 1)
    batch, useful = Batch(images, 1 if same else 16), reference.useful_bytes(sizes, SIDE, SIDE)
    print(f"\n== {name}: useful {useful / 1e6:.1f} MB, images {sum(i.nbytes for i in images) / 1e6:.1f} MB")
    out = ct.empty((len(sizes), 3, SIDE, SIDE), "uint16")
    runs = {"pixel": letterbox(batch, out, way="pixel")}
    for label, plan in VARIANTS.items():
        runs[label] = letterbox(batch, out, **plan)
    import torch

    a = torch.randint(0, 255, (useful // 2,), dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    runs["copy of the useful bytes"] = lambda: b.copy_(a)
    found = ct.bench(runs, bytes=useful, name=name, rounds=12)
    best = min(VARIANTS, key=lambda one: found[one].median_us)
    copy = found.ratio(best, "copy of the useful bytes").median
    print(f"BEST {best}: {copy:.3f} x copy (goal 0.85)")
    try:
        chain = torch_chain(batch, sizes, list(reference.MEAN), list(reference.STD), same)
        ours = bf16(out.get())
        difference = np.abs(chain().float().cpu().numpy() - ours)
        # torchvision rounds to uint8 after the resize: half a level is 0.009 here.
        print(f"torchvision's result differs by at most {difference.max():.3f}, mean {difference.mean():.4f}")
        against = ct.bench({best: runs[best], "torchvision": chain}, bytes=useful, name=f"{name}, beside the chain", rounds=8)
        print(f"BEST / torchvision: {against.ratio(best, 'torchvision').median:.2f} (goal 3)")
    except Exception:
        traceback.print_exc()
    try:
        opencv_us(images[:16])
    except Exception:
        traceback.print_exc()


if __name__ == "__main__":
    compile_all()
    print(f"compiled after {time.time() - START:.1f} s", flush=True)
    checks()
    print(f"checked after {time.time() - START:.1f} s", flush=True)
    chance = np.random.default_rng(0)
    mixed = [SIZES[i] for i in chance.integers(0, len(SIZES), 64)]
    for name, sizes, same in (("64 of different sizes", mixed, False), ("64 of 720 x 1280", [(720, 1280)] * 64, True)):
        if time.time() - START < LIMIT - 20:
            failing(name, lambda: contest(name, sizes, same))
    print(f"done after {time.time() - START:.1f} s")
