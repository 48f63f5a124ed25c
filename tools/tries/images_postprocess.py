"""Try-out of the chapter postprocess, second run: the way 'together'. At most 30 s.

Run from the root of a checkout: python tools/tries/images_postprocess.py. What is expected is said in the .md beside it.
"""

import os
import sys
import time
import traceback

import numpy as np

sys.path.insert(0, os.getcwd())
import cudatut as ct
from cudatut.book.images.postprocess import reference
from cudatut.book.images.postprocess.postprocess import nms

START, LIMIT = time.time(), 30


def failing(what, call):
    try:
        return call()
    except Exception as error:
        print("FAILED", what, "\n   ", (str(error).splitlines() or [repr(error)])[:3], flush=True)
        if "illegal" in str(error).lower():
            traceback.print_exc()
    return None


def check(n, size, limit=0.5, least=-np.inf, classes=0, **how):
    boxes, scores = reference.some_boxes(n, size=size, seed=n)
    labels = np.random.default_rng(n).integers(0, classes, n).astype("int32") if classes else None
    if n > 40:
        scores[3::17] = np.nan
    want = reference.nms(boxes, scores, limit, least, labels)
    kept, count = ct.empty(n, "int32"), ct.empty(1, "int32")
    own = ct.to_device(labels) if classes else None
    run = nms(ct.to_device(boxes), ct.to_device(scores), kept, count, limit, least, own, **how)
    for turn in ("first", "second"):
        ct.poison(kept), ct.poison(count)
        run()
        label = f"{how} n={n} size={size} {turn}"
        ct.check(count, np.array([len(want)], "int32"), name=f"{label}: count", rtol=0)
        ct.check(kept.get()[: len(want)], want, name=f"{label}: kept", rtol=0)


def contest(kind, n, grid):
    boxes, scores = (ct.to_device(x) for x in reference.KINDS[kind](n))
    kept, count = ct.empty(n, "int32"), ct.empty(1, "int32")
    nms(boxes, scores, kept, count, way="ahead")()
    want = kept.get()[: int(count.get()[0])]
    runs = {"ahead": nms(boxes, scores, kept, count, way="ahead")}
    for how in grid:
        name = " ".join(f"{key} {value}" for key, value in how.items()) or "default"
        runs[name] = run = nms(boxes, scores, kept, count, **how)
        ct.poison(kept)
        run()
        same = np.array_equal(kept.get()[: len(want)], want) and int(count.get()[0]) == len(want)
        if not same:
            print("WRONG", kind, n, name)
    found = ct.bench(runs, name=f"{n} {kind}", rounds=8, limit=False)
    best = min(runs, key=lambda one: found[one].median_us)
    print(f"BEST {best}; ahead / best {found.ratio(best, 'ahead').median:.2f}")
    last = runs["default"] if "default" in runs else runs[best]
    last()
    ct.bench(dict(last.parts), name=f"parts, {n} {kind}", rounds=8, limit=False)


GRID = [{}] + [
    {"threads": threads, "at_once": at_once}
    for threads in (64, 128, 256, 512) for at_once in (1, 2, 4, 8)
] + [{"columns": columns} for columns in (1, 2, 8)]  # fmt: skip

if __name__ == "__main__":
    for n in (1, 2, 31, 33, 63, 64, 65, 127, 129, 500, 2049, 3001):
        for size in (20, 300):
            failing((n, size), lambda n=n, size=size: check(n, size))
    failing("least", lambda: check(1500, 100, least=0.5))
    failing("none", lambda: check(100, 100, least=2.0))
    failing("classes", lambda: check(1500, 300, classes=5))
    failing("limits", lambda: [check(700, 100, limit=limit) for limit in (0.0, 1.0)])
    failing("shapes", lambda: [check(2049, 200, **how) for how in GRID[1:]])
    failing("9000", lambda: check(9_000, 60))
    print(f"checked after {time.time() - START:.1f} s", flush=True)
    for kind, n, grid in (
        ("100 pixels", 20_000, GRID), ("300 pixels", 20_000, GRID[:1]), ("around 50 things", 20_000, GRID[:1]),
        ("a chain", 20_000, [{}, {"threads": 64, "at_once": 1}, {"threads": 512}]), ("each 100 times", 20_000, GRID[:1]),
        ("100 pixels", 1_000, [{}, {"threads": 64}, {"columns": 1}, {"columns": 1, "threads": 64}, {"columns": 1, "threads": 128}]),
        ("20 pixels", 100_000, [{}, {"threads": 512, "at_once": 4}, {"threads": 512, "at_once": 8}]),
    ):  # fmt: skip
        if time.time() - START < LIMIT - 3:
            failing((kind, n), lambda one=(kind, n, grid): contest(*one))
    print(f"done after {time.time() - START:.1f} s")
