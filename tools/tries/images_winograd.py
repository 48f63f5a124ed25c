"""Try-out of Winograd's convolution: ragged shapes, exact; errors of random ones; then times, parts apart, beside cuDNN.

Run from the root of a checkout on the GPU: python tools/tries/images_winograd.py [check|time|sweep]; sweep: ResNet-50's layers, too

Measured in the first run (H200, 2026-11-30): all exact; small anchor 89.8 us (cuDNN 129.5; predicted 80), large anchor 1,554 us
(cuDNN 4,679; predicted 1,490); products 58 us of the small anchor, 32 TFLOP/s of 62; 64 x 64, 8 x 4 would have taken 49 us.
Since then: results of a product go from registers to memory, words and weights are one launch, blocks stay and copy the next
tile's words while they finish one. Predicted for the second run:
  inputs         as long as words alone, + 0.5 us: 5 us less for the small anchor
  stay           small anchor 40 us for products (a wait of some 2,000 cycles before each tile's 10,000 is gone): 46 TFLOP/s.
                 Large anchor 54 TFLOP/s, 1,100 us of 1,180
  small anchor   72 us in all; large anchor 1,460 us
"""

import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

sys.path.insert(0, ".")
import cudatut as ct
from cudatut.book.images.implicit_gemm.launch import offsets
from cudatut.book.images.scoreboard.shapes import DRAWN, RESNET_50
from cudatut.book.images.shapes import LARGE, SMALL, Shape, reference
from cudatut.book.images.winograd import launch
from cudatut.book.images.winograd import reference as winograd
from cudatut.book.rivals import cudnn_conv

START, LIMIT_S = time.perf_counter(), 45
WHAT = sys.argv[1] if len(sys.argv) > 1 else "both"
failed = 0


def since():
    return f"after {time.perf_counter() - START:.1f} s"


def attempt(what, call):
    global failed
    try:
        return call()
    except Exception as error:
        failed += 1
        print("FAILED", what, (str(error).splitlines() or [repr(error)])[:3], flush=True)
        if "illegal" in str(error) or "launch failed" in str(error):
            traceback.print_exc()
            raise SystemExit("the context is lost") from None


def compile_all():
    ct.device()
    jobs = [("transforms", f"winograd_inputs<{m}>") for m in (2, 4)]
    jobs += [("transforms", f"winograd_results<{m},{n}>") for m in (2, 4) for n in (1, 2, m)]
    for c in launch.CONFIGS:
        numbers = c.bm, c.bn, c.bk, c.tm, c.tn, c.stages, c.blocks
        for kind in ("products", "stay"):
            jobs.append(("products", f"winograd_{kind}<{','.join(map(str, numbers))}>"))

    def one(job):
        ct.Kernel(f"images/winograd/{job[0]}.cu", job[1], load=False)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, sorted(set(jobs))))
    print("compiled", len(jobs), since(), flush=True)


def arrays(shape, images, weights):
    y = ct.empty((shape.images, shape.filters, *shape.out), "float32")
    return ct.to_device(images), ct.to_device(weights), y


def random(shape):
    rng = ct.rng(1)
    return (
        rng.standard_normal((shape.images, shape.channels, shape.height, shape.width), "float32"),
        rng.standard_normal((shape.filters, shape.channels // shape.groups, 3, 3), "float32"),
    )


def label(config, stays):
    return f"{config.label}, {config.stages} stages{', stays' if stays else ''}"


def exact(shape, given, expected, m, at_once, config, stays):
    x, w, y = given
    run = launch.winograd(shape, x, w, y, m, at_once, config, stays)
    for one in (y, *run.memory):
        ct.poison(one)
    run()
    name = f"F({m}) {at_once} {label(config, stays) if config else ''} {tuple(shape)}"
    ct.check(y, expected, name=name, rtol=0)


def check():
    more = [
        SMALL._replace(images=2, height=27, width=30, filters=100, channels=72),
        Shape(2, 64, 7, 7, 96, (3, 3), pad=(1, 1), groups=2),
        Shape(1, 7, 1, 3000, 5, (3, 3), pad=(1, 1)),
        Shape(5, 64, 29, 41, 300, (3, 3), pad=(1, 1)),
        Shape(2, 32, 13, 9, 34, (3, 3), pad=(1, 1), groups=2),
        Shape(1, 66000, 1, 1, 4, (3, 3), pad=(1, 1)),  # more channels than a grid has rows
    ]
    for shape in [*winograd.SHAPES, *more]:
        images, weights = winograd.numbers(shape, most=1)
        given = arrays(shape, images, weights)
        expected = reference(shape, images, weights)
        for m in launch.WAYS:
            for config in (None, *launch.CONFIGS):
                whole = config and shape.channels // shape.groups % config.bk == 0
                for stays in (None, False, True) if whole else (None,):
                    at_once = None if config else 1
                    call = partial(exact, shape, given, expected, m, at_once, config, stays)
                    attempt(f"F({m})", call)
    print("all exact" if not failed else f"{failed} failed", since(), flush=True)


def show(shape, given, numbers, expected, scale, what, m, make):
    y = given[2]
    ct.poison(y)
    make()()
    ct.synchronize()
    off, rms = np.abs(y.get() - expected), np.sqrt((expected**2).mean())
    allowed = winograd.bound(shape, *numbers, m)
    print(
        f"errors, {scale}, {what}: rms {np.sqrt((off**2).mean()) / rms:.3e}, largest {off.max() / rms:.3e}"
        f" of the results' rms {rms:.4g}; of the bound {(off / allowed).max():.2e}",
        flush=True,
    )


def errors():
    shape = SMALL._replace(images=2)
    normal = random(shape)
    for scale, numbers in (("normal", normal), ("positive", tuple(map(np.abs, normal)))):
        given = arrays(shape, *numbers)
        expected = reference(shape, *numbers)
        one = partial(show, shape, given, numbers, expected, scale)
        attempt("offsets", partial(one, "implicit GEMM", 1, partial(offsets, shape, *given)))
        rivals = cudnn_conv.contestants(*given, pad=shape.pad)
        attempt("cuDNN", partial(one, "cuDNN", 1, partial(rivals.get, "cuDNN")))
        for m in launch.WAYS:
            make = partial(launch.winograd, shape, *given, m)
            attempt(f"F({m})", partial(one, f"F({m} x {m})", m, make))
    print(since(), flush=True)


def checked(run, y, expected, label):
    ct.poison(y)
    run()
    off = np.abs(y[:1].get() - expected).max() / np.abs(expected).max()
    print(f"  {label}: off by {off:.1e} of the largest", flush=True)
    if not off < 1e-4:
        raise ValueError(f"off by {off:.2e}")
    return run


def contest(name, shape, details):
    if time.perf_counter() - START > LIMIT_S:
        print("out of time before", name)
        return
    x, w, y = arrays(shape, *random(shape))
    rivals = cudnn_conv.contestants(x, w, y, shape.stride, shape.pad, shape.dilation, shape.groups)
    rivals["cuDNN"]()
    ct.synchronize()
    expected = y[:1].get()
    runs = {"cuDNN": rivals["cuDNN"]}
    print(
        name,
        tuple(shape),
        "suits",
        launch.suits(shape),
        {m: round(launch.cost(shape, m)) for m in launch.WAYS},
    )
    runs["implicit GEMM"] = offsets(shape, x, w, y)
    for m in launch.WAYS:
        run = attempt(f"F({m})", lambda m=m: launch.winograd(shape, x, w, y, m))
        if run and attempt(f"F({m})", lambda m=m, run=run: checked(run, y, expected, f"F({m})")):
            runs[f"F({m} x {m})"] = run
            print(f"  F({m}): {run.config.label}, {run.at_once} images at once", flush=True)
    if details:
        runs["F(4 x 4), weights fixed"] = launch.winograd(shape, x, w, y, 4, fixed=True)
        for at_once in (8, 16, 32):
            if at_once < shape.images:
                run = launch.winograd(shape, x, w, y, 4, at_once)
                runs[f"F(4 x 4), {at_once} images at once"] = run
    attempt(
        "bench", lambda: ct.bench(runs, flops=shape.flops, name=f"convolution, {name}", rounds=15)
    )
    m = 2 if not details and launch.chosen(shape) == 2 else 4
    run = runs.get(f"F({m} x {m})")
    if not run:
        return
    some = launch.work(shape, m, run.at_once)
    parts = launch.parts(run)
    rounds = shape.images / run.at_once
    of_weights = w.nbytes + some.weights
    needed = {
        "inputs": x.nbytes + some.words * rounds + of_weights,
        "products": some.held * rounds + some.weights,
        "results": y.nbytes + some.products * rounds,
        "weights": of_weights,
    }
    attempt(
        "parts", lambda: ct.bench(parts, bytes=needed, name=f"parts of F({m}), {name}", rounds=15)
    )
    flops = 2 * some.places * some.tiles * shape.filters * shape.channels // shape.groups
    products = {"chosen": parts["products"]}
    whole = shape.channels // shape.groups % 16 == 0
    for config in launch.CONFIGS:
        for stays in (False, True)[: 1 + whole]:
            call = partial(launch.winograd, shape, x, w, y, m, None, config, stays)
            other = attempt("products", call)
            if other:
                products[label(config, stays)] = launch.parts(other)["products"]
    attempt(
        "products",
        lambda: ct.bench(products, flops=flops, name=f"products of F({m}), {name}", rounds=8),
    )
    print(since(), flush=True)


compile_all()
if WHAT not in ("time", "sweep"):
    check()
    attempt("errors", errors)
if WHAT != "check":
    attempt("small", lambda: contest("small anchor", SMALL, True))
    attempt("large", lambda: contest("large anchor", LARGE, True))
    for case in [*DRAWN, *(RESNET_50 if WHAT == "sweep" else ())]:
        one = Shape(*case.numbers)
        if winograd.refuses(one) is None and min(one.product[0], one.product[2] // 9) >= 16:
            attempt(case.name, lambda case=case, one=one: contest(case.name, one, False))
print("done", since())
