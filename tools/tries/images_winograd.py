"""Try-out of Winograd's convolution: ragged shapes, exact; errors of random ones; then times, parts apart, beside cuDNN.

Run from the root of a checkout on the GPU: python tools/tries/images_winograd.py [check|time]

Nothing here has been measured yet. Predicted, H200, transforms at 3.4 TB/s, products by the cost model of sgemm:
  large anchor  F(4 x 4) 1.49 ms (transforms 0.40, products 1.08), F(2 x 2) 2.55 ms; cuDNN 4.68 ms
  small anchor  F(4 x 4) 80 us (transforms 25, products 45, launches 10), F(2 x 2) 114 us; cuDNN 129 us
  fewer images at once, so that V and M stay in the L2 cache (50 MB): three images of the large anchor have 43 MB; transforms
    could then cost a half, 0.2 ms less, and products of 588 columns fill the SMs worse, 10 % of 1.08 ms, and 22 rounds of
    three launches cost 0.1 ms: about even; 16 images: nothing stays, nothing is lost
  36 launches of the book's sgemm for the 36 products: products of 256 x 12,544 x 256 take 30 us each; as one launch, but the
    turned weights copy four words at a time
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
from cudatut.book.images.scoreboard.shapes import DRAWN
from cudatut.book.images.shapes import LARGE, SMALL, Shape, reference
from cudatut.book.images.winograd import launch
from cudatut.book.images.winograd import reference as winograd
from cudatut.book.published.sgemm import sgemm
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
    jobs = [
        ("transforms", f"winograd_{what}<{m}>") for what in ("words", "weights") for m in (2, 4)
    ]
    jobs += [("transforms", f"winograd_results<{m},{n}>") for m in (2, 4) for n in (1, 2, m)]
    for c in sgemm.CONFIGS:
        numbers = c.bm, c.bn, c.bk, c.tm, c.tn, c.stages, c.blocks
        jobs.append(("products", f"winograd_products<{','.join(map(str, numbers))}>"))

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


def exact(shape, given, expected, m, at_once, config):
    x, w, y = given
    ct.poison(y)
    launch.winograd(shape, x, w, y, m, at_once, config)()
    name = f"F({m}) {at_once} {config.label if config else ''} {tuple(shape)}"
    ct.check(y, expected, name=name, rtol=0)


def check():
    more = [
        SMALL._replace(images=2, height=27, width=30, filters=100, channels=72),
        Shape(2, 64, 7, 7, 96, (3, 3), pad=(1, 1), groups=2),
        Shape(1, 7, 1, 3000, 5, (3, 3), pad=(1, 1)),
        Shape(1, 66000, 1, 1, 4, (3, 3), pad=(1, 1)),  # more channels than a grid has rows
    ]
    for shape in [*winograd.SHAPES, *more]:
        images, weights = winograd.numbers(shape, most=1)
        given = arrays(shape, images, weights)
        expected = reference(shape, images, weights)
        for m in launch.WAYS:
            for config in (None, *sgemm.CONFIGS):
                attempt(
                    f"F({m})",
                    partial(exact, shape, given, expected, m, None if config else 1, config),
                )
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
        for at_once in (1, 2, 3, 4, 8, 16, 32):
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
    parts = {what: launch.part(run, what) for what in ("weights", "words", "products", "results")}
    rounds = shape.images / run.at_once
    needed = {
        "weights": w.nbytes + some.weights,
        "words": x.nbytes + some.words * rounds,
        "products": some.held * rounds + some.weights,
        "results": y.nbytes + some.products * rounds,
    }
    attempt(
        "parts", lambda: ct.bench(parts, bytes=needed, name=f"parts of F({m}), {name}", rounds=15)
    )
    flops = 2 * some.places * some.tiles * shape.filters * shape.channels // shape.groups
    products = {"chosen": parts["products"]}
    if details:
        for config in sgemm.CONFIGS[:6]:
            other = launch.winograd(shape, x, w, y, m, config=config)
            products[config.label] = launch.part(other, "products")
        if shape.groups == 1:
            u, v, p = run.memory
            rows, columns = some.filters, some.tiles
            depth = shape.channels
            each = [
                sgemm.launcher(
                    shape.filters, columns, depth, 1.0, u[i * depth * rows : (i + 1) * depth * rows], rows,
                    v[i * depth * columns : (i + 1) * depth * columns], columns, 0.0,
                    p[i * shape.filters * columns : (i + 1) * shape.filters * columns], columns, True,
                )
                for i in range(some.places)
            ]  # fmt: skip

            def apart():
                for one in each:
                    one()

            products["sgemm, one by one"] = apart
    attempt(
        "products",
        lambda: ct.bench(products, flops=flops, name=f"products of F({m}), {name}", rounds=15),
    )
    print(since(), flush=True)


compile_all()
if WHAT != "time":
    check()
    attempt("errors", errors)
if WHAT != "check":
    attempt("small", lambda: contest("small anchor", SMALL, True))
    attempt("large", lambda: contest("large anchor", LARGE, True))
    for case in DRAWN:
        one = Shape(*case.numbers)
        if winograd.refuses(one) is None and min(one.product[0], one.product[2] // 9) >= 16:
            attempt(case.name, lambda case=case, one=one: contest(case.name, one, False))
print("done", since())
