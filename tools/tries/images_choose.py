"""Try-out of the choice of kernels: every kernel of ours that takes a convolution, beside cuDNN, and whether the choice is the fastest.

Run from the root of a checkout on the GPU machine: python tools/tries/images_choose.py [fp32] [bf16] [seconds=60]

Cases: the anchors, the drawn, CUDATutorial's, the varied and ResNet-50's, in this order, until the time is over. One line a case:
the fastest, by how much it is ahead of what `choose.way` takes, and cuDNN's time by the chosen one's.
"""

import random
import sys
import time
import traceback
from statistics import geometric_mean, median

import cudatut as ct
from cudatut.book.gemm.kernels import sgemm
from cudatut.book.images.scoreboard import choose, shapes
from cudatut.book.images.scoreboard.field import Field
from cudatut.book.images.shapes import Shape
from cudatut.book.rivals import cudnn_conv

START = time.perf_counter()
LIMIT_S = next((float(x[8:]) for x in sys.argv if x.startswith("seconds=")), 60)
KINDS = [x for x in sys.argv[1:] if x in choose.WAYS] or list(choose.WAYS)
GROUPS = {
    "anchors": shapes.ANCHORS, "drawn": shapes.DRAWN, "CUDATutorial": shapes.CUDATUTORIAL, "varied": shapes.VARIED,
    "ResNet-50": shapes.RESNET_50,
}  # fmt: skip
ROUNDS = 7


def ahead(kind, field, cases):
    """Compiles what all launchers of these cases will ask for, on all cores."""
    jobs = set()

    class Noted:
        def __init__(self, source, name, *rest, **more):
            if not any(rest):
                jobs.add((source, name, None, (), more.get("arch")))

    modules = (
        choose.depthwise,
        choose.direct,
        choose.im2col,
        choose.implicit,
        choose.winograd,
        sgemm,
    )
    ct.Kernel = Noted
    try:
        for module in modules:
            module.kernel.cache_clear()
        for case in cases:
            shape = Shape(*case.numbers)
            for name in choose.able(kind, shape):
                try:
                    choose.WAYS[kind][name](shape, *field.arrays(case))
                except Exception as error:
                    print(
                        f"FAILED to make {name}, {case.name}, {kind}: {type(error).__name__}: {str(error)[:200]}",
                        flush=True,
                    )
    finally:
        del ct.Kernel
        for module in modules:
            module.kernel.cache_clear()
    for job, error in ct.compile_ahead(sorted(jobs, key=str)).items():
        print("FAILED to compile", job, str(error)[:300])
    print(
        f"{kind}: {len(jobs)} kernels compiled after {time.perf_counter() - START:.0f} s",
        flush=True,
    )


def contest(kind, field, case):
    """Name -> median in us, after each was checked."""
    x, w, y = field.arrays(case)
    layer, shape = case.layer, Shape(*case.numbers)
    known, exact = {}, Field.exact
    # All ways of a case are checked on the same words.
    field.exact = lambda case, at: (
        known.setdefault(int(at[0]), None)
        or known.update({int(at[0]): exact(field, case, at)})
        or known[int(at[0])]
    )
    runs = {}
    for name in choose.able(kind, shape):
        try:
            run = choose.WAYS[kind][name](shape, x, w, y)
            ct.poison(y)
            run()
            field.check(case, name)
            runs[name] = run
        except Exception as error:
            print(
                f"FAILED {name}, {case.name}, {kind}: {type(error).__name__}: {str(error)[:300]}",
                flush=True,
            )
            if "illegal" in str(error) or "launch failed" in str(error):
                traceback.print_exc()
                raise SystemExit("the context is lost") from None
    rest = layer.stride, layer.pad, layer.dilation, layer.groups
    for name, run in cudnn_conv.contestants(x, w, y, *rest).items():
        if run and (name == "cuDNN" or (kind == "fp32" and layer.groups == layer.channels)):
            runs[name] = run
    for run in runs.values():
        run()
    times = ct.take_turns(runs, ROUNDS, random.Random(0))
    return {name: median(times[name]) for name in runs}


for kind in KINDS:
    every = [case for cases in GROUPS.values() for case in cases]
    field, found = Field(kind, every), {}
    ahead(kind, field, every)
    start = time.perf_counter()
    for group, cases in GROUPS.items():
        for case in cases:
            if time.perf_counter() - start > LIMIT_S / len(KINDS):
                print("out of time before", case.name, kind)
                break
            shape = Shape(*case.numbers)
            us = contest(kind, field, case)
            way = choose.way(kind, shape)
            ours = {name: t for name, t in us.items() if name in choose.WAYS[kind]}
            if way not in ours:
                print("the choice failed:", way, case.name)
                continue
            best = min(ours, key=ours.get)
            found.setdefault(group, []).append(
                us["cuDNN"] / us[way] if "cuDNN" in us else float("nan")
            )
            print(
                f"{kind} {case.name}: {way}, {found[group][-1]:.3f} of cuDNN" + ("" if best == way else f"; {best} is {us[way] / us[best]:.2f} x as fast")
                + "; " + ", ".join(f"{name} {t:.1f}" for name, t in us.items()),
                flush=True,
            )  # fmt: skip
        if group in found:
            print(
                f"{kind}, {group}: geometric mean {geometric_mean(found[group]):.3f} over {len(found[group])} after {time.perf_counter() - START:.0f} s",
                flush=True,
            )
    del field
