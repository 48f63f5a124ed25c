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
SIZES = [
    (480, 640),
    (640, 480),
    (427, 640),
    (375, 500),
    (768, 1024),
    (720, 1280),
    (1080, 1920),
    (960, 1280),
]
# Of the first run: the best there, and the same without rows of weight 0.
VARIANTS = {
    "4 pixels, 4 rows": {"way": "rows", "SKIP": 0},
    "skips": {"way": "rows"},
    "4 pixels, 1 row, skips": {"way": "rows", "ROWS": 1},
    "dots, both rows": {"BOTH": 1},
    "dots": {},
    "dots, 2 rows": {"ROWS": 2},
    "dots, 8 rows": {"ROWS": 8},
    "dots, 2 at once": {"UNROLL": 2},
    "dots, 4 at once, 3 blocks": {"BLOCKS": 3, "UNROLL": 4},
    "dots, 5 blocks": {"BLOCKS": 5},
    "dots, 5 blocks, 2 at once": {"BLOCKS": 5, "UNROLL": 2},
    "dots, 5 blocks, 2 rows": {"BLOCKS": 5, "ROWS": 2},
    "dots, 10 blocks of 128": {"DOWN": 4, "BLOCKS": 10},
    "dots, 10 blocks of 128, 8 rows": {"DOWN": 4, "BLOCKS": 10, "ROWS": 8},
    "dots, 5 blocks, pairs": {"NEIGHBORS": 2, "BLOCKS": 5},
    "dots, 5 blocks, singles": {"NEIGHBORS": 1, "BLOCKS": 5},
    "dots, 5 blocks, 2 pixels": {"PIXELS": 2, "NEIGHBORS": 2, "BLOCKS": 5},
    "dots, 8 pixels": {"PIXELS": 8, "NEIGHBORS": 4, "ROWS": 2, "BLOCKS": 2},
    "dots, 5 blocks, middle first": {"BLOCKS": 5, "CENTER": 1},
    "dots, 5 blocks, 2 rows, middle first": {"BLOCKS": 5, "CENTER": 1, "ROWS": 2},
    "dots, 5 blocks, streamed": {"BLOCKS": 5, "STREAMED": 1},
}


def compiled(plan):
    way, defines = plan
    return ct.Kernel(f"{preprocess.FOLDER}/{way}.cu", f"letterbox_{way}", dict(defines), load=False)


def compile_all():
    ct.device()
    plans = {("pixel", tuple(sorted(preprocess.plan_of(640, "pixel").items())))}
    for plan in VARIANTS.values():
        way = plan.get("way", "dots")
        own = {name: value for name, value in plan.items() if name != "way"}
        for width in (640, 642, 641):
            for last in (0, 1):
                if last and width != 641:
                    continue
                one = preprocess.plan_of(width, way, **own)
                if last:
                    one["CHANNELS_LAST"] = 1
                plans.add((way, tuple(sorted(one.items()))))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        made = pool.map(compiled, plans)
    print(f"{len(list(made))} kernels")


def bf16(words):
    return (words.astype("uint32") << 16).view("float32").astype("float64")


def photographs(sizes, seed=0):
    chance = np.random.default_rng(seed)
    return [chance.integers(0, 256, (h, w, 3), dtype="uint8") for h, w in sizes]


WRONG, RIGHT = [], []


def check(sizes, height, width, align=16, last=False, **plan):
    images = photographs(sizes)
    batch = Batch(images, align)
    shape = (len(sizes), height, width, 3) if last else (len(sizes), 3, height, width)
    out = ct.empty(shape, "uint16")
    ct.poison(out)
    letterbox(batch, out, channels_last=last, **plan)()
    got = bf16(out.get())
    want = np.stack([reference.letterbox(i, height, width) for i in images])
    want = want.transpose(0, 2, 3, 1) if last else want
    # Half of a last place of bf16, and a weight's error: 1e-4 of 255 levels.
    error = np.abs(got - want) - 2**-8 * np.abs(want)
    name = (
        f"{plan}, {sizes[:2]} -> {height} x {width}, align {align}, last {last}: {error.max():.2g}"
    )
    (RIGHT if error.max() <= 1e-3 else WRONG).append(name)


def failing(call, *args, **more):
    what = [args, more]
    try:
        call(*args, **more)
    except Exception as error:
        print("FAILED", what, "\n   ", (str(error).splitlines() or [repr(error)])[:3], flush=True)
        if "illegal" in str(error).lower() or "launch" in str(error).lower():
            traceback.print_exc()


RAGGED = [(1, 1), (1, 7), (7, 1), (2, 3), (33, 65), (641, 639), (100, 1000)]


def checks():
    for side in ((1, 1), (3, 5), (64, 64), (31, 33), (66, 130)):
        failing(check, RAGGED, *side, way="pixel")
        for plan in VARIANTS.values():
            failing(check, RAGGED, *side, **plan)
        for way in ("dots", "rows"):
            failing(check, RAGGED, *side, last=True, way=way)
            failing(check, RAGGED, *side, align=1, way=way)
    for way in ("pixel", "rows", "dots"):
        failing(check, SIZES[:3], 640, 640, way=way)
        failing(check, [(3000, 4000)], 640, 640, way=way)
    print(f"checks: {len(RIGHT)} right, {len(WRONG)} wrong")
    for name in WRONG:
        print("WRONG", name)


def copy_of(useful):
    import torch

    a = torch.randint(0, 255, (useful // 2,), dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    return lambda: b.copy_(a)


def contest(name, sizes, variants, rounds=12):
    images = photographs(sizes, 1)
    batch, useful = Batch(images, 16), reference.useful_bytes(sizes, SIDE, SIDE)
    print(
        f"\n== {name}: useful {useful / 1e6:.1f} MB, images {sum(i.nbytes for i in images) / 1e6:.1f} MB"
    )
    out = ct.empty((len(sizes), 3, SIDE, SIDE), "uint16")
    runs = {"pixel": letterbox(batch, out, way="pixel")}
    for label in variants:
        runs[label] = letterbox(batch, out, **VARIANTS[label])
    runs["copy of the useful bytes"] = copy_of(useful)
    found = ct.bench(runs, bytes=useful, name=name, rounds=rounds)
    best = min(variants, key=lambda one: found[one].median_us)
    copy = found.ratio(best, "copy of the useful bytes").median
    print(f"BEST {best}: {copy:.3f} x copy (goal 0.85)", flush=True)
    return sorted(variants, key=lambda one: found[one].median_us)


def floors():
    """What only writing takes, and only border."""
    import torch

    out = ct.empty((64, 3, SIDE, SIDE), "uint16")
    whole = torch.empty(out.nbytes, dtype=torch.uint8, device="cuda")
    batch = Batch(photographs([(1, 640)] * 64))
    runs = {"border": letterbox(batch, out), "border, streamed": letterbox(batch, out, STREAMED=1)}
    runs["torch's fill"] = lambda: whole.fill_(1)
    ct.bench(runs, bytes=out.nbytes, name="64 outputs, written", rounds=12)


if __name__ == "__main__":
    compile_all()
    print(f"compiled after {time.time() - START:.1f} s", flush=True)
    checks()
    print(f"checked after {time.time() - START:.1f} s", flush=True)
    chance = np.random.default_rng(0)
    mixed = [SIZES[i] for i in chance.integers(0, len(SIZES), 64)]
    order = list(VARIANTS)[1:6]
    for name, sizes in (("64 of 720 x 1280", [(720, 1280)] * 64), ("64 of different sizes", mixed)):
        try:
            order = contest(name, sizes, VARIANTS)
        except Exception:
            traceback.print_exc()
    failing(floors)
    # Each size alone: which of them loses?
    few = ["4 pixels, 4 rows", "skips", *[one for one in order if one.startswith("dots")][:3]]
    for size in SIZES:
        if time.time() - START < LIMIT - 8:
            failing(contest, f"64 of {size[0]} x {size[1]}", [size] * 64, few, rounds=8)
    print(f"done after {time.time() - START:.1f} s")
