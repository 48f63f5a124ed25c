"""Try-out of implicit GEMM: every kernel against the reference on ragged shapes, then tiles, boxes and parts beside cuDNN.

Run from the root of a checkout on a GPU of compute capability 9.0: python tools/tries/images_implicit_gemm.py [check|fp32|bf16]
"""

import random
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from statistics import geometric_mean, median

import numpy as np

import cudatut as ct
from cudatut.book.images.implicit_gemm import im2col, launch
from cudatut.book.images.implicit_gemm.launch import Tile
from cudatut.book.images.shapes import RAGGED, Shape, reference

START = time.perf_counter()
WHAT = sys.argv[1] if len(sys.argv) > 1 else "all"
BUDGET_S = {"check": 8, "fp32": 17, "bf16": 15}  # of each part, after compilation

# What the run before has told: the TMA refuses a box whose innermost coordinate is no multiple of 16 bytes (illegal
# instruction), so boxes are for windows of one column. `taps` is 5 to 6 % faster than `offsets` on the anchors (predicted 4).
# All ragged shapes were right but for boxes.
# Predicted now: `lines`, 89.5 % FFMAs in its loop against 84.1: 47 TFLOP/s on the small anchor, 51.7 on the large one.
# bf16 stores whole lines: layers whose time goes into stores gain, MobileNet's expand from 206 us to 130, YOLO layer1 from
# 224 to 190, ResNet's 1x1 5 %. Tiles that are left after whole rounds are shared by all SMs, part by part: ConvNeXt's
# project from 54 us to 45, DeepLab's downsample from 35 to 31.
OF_LINES = {
    "s2": launch.OF_LINES,
    "s3": launch.OF_LINES._replace(stages=3),
    "k8 s4": launch.OF_LINES._replace(bk=8, stages=4),
    "64x64": Tile(64, 64, 16, 8, 8, 2, 5),
}
OF_BOXES = {
    "64x128": launch.WIDE,
    "64x128 b4": Tile(64, 128, 16, 8, 8, 3, 4),
    "64x64": Tile(64, 64, 16, 8, 8, 3, 6),
}
TAPS = [one for one in launch.CONFIGS if one.bm * one.bn >= 2048 and one.bm <= 64]
MORE = (
    Shape(2, 64, 12, 20, 72, (3, 3), pad=(1, 1)),
    Shape(3, 24, 9, 28, 20, (3, 3), (2, 1), (1, 1)),
    Shape(2, 20, 28, 28, 136, (3, 3), pad=(1, 1)),
    Shape(2, 40, 9, 4, 20, (5, 3), pad=(7, 1), dilation=(3, 1), groups=2),
    Shape(2, 96, 8, 8, 48, (3, 3), pad=(1, 1), groups=2),
    Shape(2, 256, 9, 9, 256, (3, 3), pad=(1, 1), groups=32),
    Shape(2, 128, 9, 10, 128, (3, 3), (2, 2), (1, 1), groups=32),
    Shape(1, 64, 7, 7, 64, (3, 3), pad=(1, 1), groups=64),
    Shape(2, 3, 30, 31, 64, (7, 7), (2, 2), (3, 3)),
    Shape(2, 3, 30, 31, 40, (3, 3), (2, 2)),
    Shape(2, 512, 7, 7, 128, (3, 3), pad=(1, 1)),
    Shape(3, 40, 6, 6, 144, (1, 1)),
)


def to_bf16(x):
    """float32 to the nearest bf16, as uint16."""
    bits = np.ascontiguousarray(x, "float32").view("uint32")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("uint16")


def from_bf16(x):
    return (x.astype("uint32") << 16).view("float32")


def last(x):
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def after():
    return time.perf_counter() - START


def data(shape, seed=0):
    rng = ct.rng(seed)
    images = rng.integers(-4, 5, (shape.images, shape.channels, shape.height, shape.width))
    weights = rng.integers(-4, 5, (shape.filters, shape.channels // shape.groups, *shape.window))
    return images.astype("float32"), weights.astype("float32")


def compile_all():
    """Everything at once, in threads: loaded later, by the thread with the context."""
    ct.activate()
    arch = ct.device().arch
    folder = launch.FOLDER
    jobs = []
    if WHAT != "bf16":
        jobs += [(f"{folder}/offsets.cu", one.name(True), arch) for one in (*TAPS, launch.NARROW)]
        jobs += [(f"{folder}/offsets.cu", launch.WIDE.name(False), arch)]
        jobs += [(f"{folder}/taps.cu", one.name(w, True), arch) for one in TAPS for w in (1, 4)]
        jobs += [(f"{folder}/lines.cu", one.name(), arch) for one in OF_LINES.values()]
        jobs += [
            (f"{folder}/boxes.cu", one.name(*patch), arch)
            for one in OF_BOXES.values()
            for patch in launch.STRIPS
        ]
        jobs += [(f"{folder}/taps.cu", "turned_weights", arch)]
    if WHAT != "fp32":
        jobs += [(f"{folder}/im2col_tma.cu", boxes.name, "sm_90a") for boxes in launch.BOXES]
        jobs += [
            (f"{folder}/gather.cu", f"gather<{bn},{bits}>", arch)
            for bn in (32, 64)
            for bits in ("true", "false")
        ]
        jobs += [(f"{folder}/any_bf16.cu", "any_bf16", arch)]
        jobs += [(f"{folder}/gather.cu", "packed_weights", arch)]

    def one(job):
        source, name, arch = job
        try:
            ct.Kernel(source, name, arch=arch, load=False)
        except Exception as error:
            print("FAILED to compile", name, str(error)[:500])

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, jobs))
    print(f"compiled {len(jobs)} after {after():.0f} s", flush=True)


def tried(name, make, results, expected, read=lambda y: y):
    """Runs one launcher twice on a poisoned output and compares exactly: whole numbers."""
    try:
        run = make()
        for _ in range(2):  # the tickets are 0 again
            ct.poison(results)
            run()
            got = read(results.get())
            wrong = np.flatnonzero(~(got == expected))
            if len(wrong):
                at = np.unravel_index(wrong[0], expected.shape)
                print(
                    f"WRONG {name}: {len(wrong)} of {expected.size}, first at {tuple(map(int, at))}: {got[at]} for {expected[at]}"
                )
                return False
        return True
    except Exception as error:
        print(f"FAILED {name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
        if "illegal" in str(error) or "launch failed" in str(error):
            traceback.print_exc()
            raise SystemExit("the context is lost") from None
        return False


def check():
    right, total, begin, chance = 0, 0, after(), random.Random(1)

    def some(jobs):
        """The first two, and a few that are drawn: logic has been tested on a CPU."""
        names = list(jobs)
        drawn = chance.sample(names[2:], max(0, min(10, len(names) - 2)))
        return {name: jobs[name] for name in names[:2] + drawn}

    for shape in (*RAGGED, *MORE):
        if after() > begin + BUDGET_S["check"]:
            print("out of time before", tuple(shape))
            break
        images, weights = data(shape)
        expected = reference(shape, images, weights)
        x, w = ct.to_device(images), ct.to_device(weights)
        y = ct.empty(expected.shape, "float32")
        given = shape, x, w, y
        jobs = {"fp32": lambda g=given: launch.fp32(*g)}
        if not launch.no_boxes(shape, 0):
            for name, tile in OF_BOXES.items():
                for patch in launch.STRIPS:
                    jobs[f"boxes {name} {patch}"] = lambda g=given, t=tile, p=patch: launch.boxes(
                        *g, t, p
                    )
        if not launch.no_lines(shape, 0):
            for name, tile in OF_LINES.items():
                jobs[f"lines {name}"] = lambda g=given, t=tile: launch.lines(*g, t)
        for name, make in some(jobs).items():
            right, total = right + tried(f"{name} {tuple(shape)}", make, y, expected), total + 1
        expected = from_bf16(to_bf16(last(expected)))
        x, w = ct.to_device(to_bf16(last(images))), ct.to_device(to_bf16(last(weights)))
        y = ct.empty(expected.shape, "uint16")
        given = shape, x, w, y
        jobs = {
            "bf16": lambda g=given: launch.bf16(*g),
            "gather": lambda g=given: launch.gather(*g),
        }
        if not im2col.refused(shape):
            for boxes in launch.BOXES:
                for shared in (False, True):
                    if launch.wider(shape, boxes.bk):
                        jobs[f"{tuple(boxes)}, {shared}"] = lambda g=given, b=boxes, p=shared: (
                            launch.bf16(*g, b, p)
                        )
        for name, make in some(jobs).items():
            right, total = (
                right + tried(f"bf16 {name} {tuple(shape)}", make, y, expected, from_bf16),
                total + 1,
            )
    print(f"{right} of {total} right after {after():.0f} s", flush=True)


def fp32_of(case, shape, x, w, y):
    """Label to (launcher, cycles that the model predicts)."""
    given = shape, x, w, y
    found = {"ours": lambda: launch.fp32(*given), "offsets": lambda: launch.offsets(*given)}
    found["offsets 64x128"] = lambda: launch.offsets(*given, launch.WIDE)
    steps = shape.window[0] * shape.window[1] * ct.cdiv(shape.channels // shape.groups, launch.DEEP)
    for tile in [*TAPS, launch.NARROW] if shape.groups > 1 else TAPS:
        if tile.bm > 8 * shape.product[0]:
            continue
        words = launch.words_of(shape, 0)
        every = range(1, min(16, ct.cdiv(steps, 2)) + 1)
        best = min(every, key=lambda p: launch.cost(shape, tile, steps * 16, words, p))
        for parts in sorted({1, best}):
            found[f"taps {tile.bm}x{tile.bn},{tile.tm}x{tile.tn}/{parts}"] = (
                lambda t=tile, p=parts: launch.taps(*given, t, p)
            )
    if not launch.no_boxes(shape, 0):
        for name, tile in OF_BOXES.items():
            found[f"boxes {name}"] = lambda t=tile: launch.boxes(*given, t)
    if not launch.no_lines(shape, 0):
        for name, tile in OF_LINES.items():
            found[f"lines {name}"] = lambda t=tile: launch.lines(*given, t)
    return found


def bf16_of(case, shape, x, w, y):
    given = shape, x, w, y
    found = {"ours": lambda: launch.bf16(*given)}
    if im2col.refused(shape):
        return found
    for boxes in launch.BOXES:
        together = launch.wider(shape, boxes.bk)
        if not together or boxes.bn > 2 * together.product[0]:
            continue
        for shared in (False, True):
            found[f"{boxes.pixels}x{boxes.bn}x{boxes.bk}{' shared' if shared else ''}"] = (
                lambda b=boxes, p=shared: launch.bf16(*given, b, p)
            )
    if shape.product[0] <= 64 or case.layer.network == "anchor":
        found["gather"] = lambda: launch.gather(*given)
    return found


def timed(kind, cases):
    """All tiles of all cases beside cuDNN: a line each."""
    from cudatut.book.images.scoreboard.field import Field
    from cudatut.gpu import rivals

    begin, field, ratios = after(), Field(kind, cases), {}
    for case in cases:
        if after() > begin + BUDGET_S[kind]:
            print("out of time before", kind, case.name)
            break
        x, w, y = field.arrays(case)
        shape = Shape(*case.numbers)
        from cudatut.book.rivals import cudnn_conv

        layer = case.layer
        runs = {
            name: run
            for name, run in cudnn_conv.contestants(
                x, w, y, layer.stride, layer.pad, layer.dilation, layer.groups
            ).items()
            if run and name == "cuDNN"
        }
        told = ""
        for label, make in (fp32_of if kind == "fp32" else bf16_of)(case, shape, x, w, y).items():
            try:
                run = make()
                if label == "ours":
                    ct.poison(y)
                run()
                if label == "ours":
                    field.check(case)
                    told = f"{getattr(run, 'tile', getattr(run, 'boxes', ''))} / {getattr(run, 'parts', getattr(run, 'shared', ''))}"
                runs[label] = run
            except Exception as error:
                print("FAILED", label, case.name, kind, str(error)[:300])
        times = ct.take_turns(runs, 5, random.Random(0))
        us = {label: median(some) for label, some in times.items()}
        base = us.get("cuDNN", 0)
        best = min((v, k) for k, v in us.items() if k != "cuDNN")
        ratios[case.name] = base / us["ours"] if base and "ours" in us else None, base / best[0]
        print(
            f"{kind} {case.name}: cuDNN {base:.1f} us, {case.flops / base / 1e6 if base else 0:.1f} TFLOP/s; ours"
            f" {ratios[case.name][0] or 0:.3f}x, chosen {told}; best {base / best[0]:.3f}x {best[1]}"
        )
        print(
            "   ",
            ", ".join(f"{k} {v:.1f}" for k, v in sorted(us.items(), key=lambda x: x[1])),
            flush=True,
        )
        if layer.network in ("anchor", "ConvNeXt-T") and "cuDNN" in runs:
            print("    kernels of cuDNN:", rivals.name_kernels("cuDNN", runs["cuDNN"]), flush=True)
    own = [a for a, _ in ratios.values() if a]
    best = [b for _, b in ratios.values() if b]
    if own:
        print(
            f"{kind}: geometric mean ours {geometric_mean(own):.3f}, best {geometric_mean(best):.3f} of {len(own)}"
        )
    print(f"{kind} after {after():.0f} s", flush=True)


def cases_of(kind):
    from cudatut.book.images.scoreboard import shapes

    depthwise = {
        case for case in shapes.DRAWN + shapes.VARIED if case.layer.groups == case.layer.channels
    }
    drawn = [case for case in shapes.DRAWN if case not in depthwise]
    varied = [case for case in shapes.VARIED if case not in depthwise]
    if kind == "fp32":
        large = [case for case in drawn if case.flops > 2e11]
        drawn = [case for case in drawn if case not in large] + large
        return shapes.ANCHORS + drawn + varied[:1] + varied[2:] + shapes.CUDATUTORIAL[3:4]
    return shapes.ANCHORS + drawn + varied + [shapes.CUDATUTORIAL[i] for i in (0, 3, 1, 5)]


compile_all()
if WHAT in ("all", "check"):
    check()
for kind in ("fp32", "bf16"):
    if WHAT in ("all", kind):
        try:
            timed(kind, cases_of(kind))
        except Exception:
            traceback.print_exc()
