"""Try-out of the chapter postprocess: is every way right, and what does each part take? At most 70 s.

Run from the root of a checkout: python tools/tries/images_postprocess.py. What each step should gain is said in the .md beside it.
"""

import os
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np

sys.path.insert(0, os.getcwd())
import cudatut as ct
from cudatut.book.images.postprocess import postprocess, reference
from cudatut.book.images.postprocess.postprocess import WAYS, nms
from cudatut.book.primitives.sort import sort as sorts

START, LIMIT = time.time(), 70
GRID = [
    {"way": way, "threads": threads, "at_once": at_once, "columns": columns}
    for way, threads, at_once, columns in (
        ("boxes", 256, 4, 4), ("boxes", 512, 4, 4), ("boxes", 1024, 4, 4),
        ("tiles", 512, 4, 4), ("tiles", 1024, 1, 4), ("tiles", 1024, 4, 4), ("tiles", 1024, 8, 4),
        ("ahead", 512, 4, 4), ("ahead", 1024, 1, 4), ("ahead", 1024, 4, 4), ("ahead", 1024, 8, 4),
        ("ahead", 1024, 4, 1), ("ahead", 1024, 4, 2), ("ahead", 1024, 4, 8), ("ahead", 1024, 4, 16),
    )
]  # fmt: skip


def compile_all():
    ct.device()
    wanted = {("score_keys", ()), ("sorted_boxes", ())}
    for one in GRID:
        wanted.add(("pair_mask", (("COLUMNS", one["columns"]),)))
        wanted.add((f"keep_{one['way']}", (("AT_ONCE", one["at_once"]), ("THREADS", one["threads"]))))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(lambda w: ct.Kernel(postprocess.NMS, w[0], dict(w[1]), load=False), wanted))
    sorts.compile_ahead([sorts.Sweep("uint32", True)])


def failing(what, call):
    try:
        call()
    except Exception as error:
        print("FAILED", what, "\n   ", (str(error).splitlines() or [repr(error)])[:3], flush=True)
        if "illegal" in str(error).lower():
            traceback.print_exc()


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
        label = f"{how.get('way')} n={n} size={size} {turn}"
        ct.check(count, np.array([len(want)], "int32"), name=f"{label}: count", rtol=0)
        ct.check(kept.get()[: len(want)], want, name=f"{label}: kept", rtol=0)


def checks():
    for how in ({"way": way, "threads": threads} for way in WAYS for threads in (512, 1024)):
        for n in (1, 2, 31, 33, 63, 64, 65, 127, 129, 500, 2049, 3001):
            for size in (20, 300):
                failing((how, n, size), lambda: check(n, size, **how))
        failing((how, "least"), lambda: check(1500, 100, least=0.5, **how))
        failing((how, "none"), lambda: check(100, 100, least=2.0, **how))
        failing((how, "classes"), lambda: check(1500, 300, classes=5, **how))
        failing((how, "limit 0"), lambda: check(700, 100, limit=0.0, **how))
        failing((how, "limit 1"), lambda: check(700, 100, limit=1.0, **how))
    for columns in (1, 2, 8, 16):
        failing(("columns", columns), lambda: check(2049, 200, columns=columns))
    failing("9000, sorted by sweeps", lambda: check(9_000, 60))
    failing("decode", decoding)


def decoding():
    for n, classes in ((1, 1), (33, 80), (8400, 80)):
        out = np.random.default_rng(n).standard_normal((4 + classes, n)).astype("float32")
        out[:4] = np.abs(out[:4]) * 100
        boxes, scores, which = ct.empty((n, 4), "float32"), ct.empty(n, "float32"), ct.empty(n, "int32")
        postprocess.decode(ct.to_device(out), boxes, scores, which, 0.5, 0, 80, 1280, 960)()
        for got, want, name in zip((boxes, scores, which), reference.decode(out, 0.5, 0, 80, 1280, 960), ("boxes", "scores", "classes")):
            ct.check(got, want, name=f"decode {n} {name}", atol=None if name == "classes" else 1e-3)


def contest(n, size):
    import torch
    import torchvision

    boxes, scores = (ct.to_device(x) for x in reference.some_boxes(n, size=size, seed=7))
    kept, count = ct.empty(n, "int32"), ct.empty(1, "int32")
    runs = {}
    for how in GRID:
        runs[" ".join(f"{key[:3]} {value}" for key, value in how.items())] = nms(boxes, scores, kept, count, **how)
    a, s = torch.as_tensor(boxes, device="cuda"), torch.as_tensor(scores, device="cuda")
    theirs = torchvision.ops.nms(a, s, 0.5).cpu().numpy()
    last = list(runs)[-1]
    runs[last]()
    mine = kept.get()[: int(count.get()[0])]
    print(f"\n== {n} boxes of {size}: {len(mine)} stay, torchvision {len(theirs)}; both: {len(np.intersect1d(mine, theirs))}")
    runs["torchvision"] = lambda: torchvision.ops.nms(a, s, 0.5)
    found = ct.bench(runs, bytes=20 * n, name=f"NMS of {n} boxes of {size}", rounds=8, limit=False)
    best = min((one for one in runs if one != "torchvision"), key=lambda one: found[one].median_us)
    print(f"BEST {best}: torchvision / ours {found.ratio(best, 'torchvision').median:.2f} (goal 1.5)")
    ct.bench(dict(runs[best].parts), bytes=20 * n, name=f"parts of {best}", rounds=8, limit=False)


if __name__ == "__main__":
    compile_all()
    print(f"compiled after {time.time() - START:.1f} s", flush=True)
    checks()
    print(f"checked after {time.time() - START:.1f} s", flush=True)
    for n, size in ((20_000, 100), (20_000, 20), (20_000, 300), (1_000, 100), (100_000, 50)):
        if time.time() - START < LIMIT - 10:
            failing((n, size), lambda: contest(n, size))
    print(f"done after {time.time() - START:.1f} s")
