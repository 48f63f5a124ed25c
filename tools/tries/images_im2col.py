"""Try-out of im2col: each kernel against the matrix in NumPy on ragged shapes, the whole against the reference, then times.

Run from the root of a checkout on the GPU machine: python tools/tries/images_im2col.py [check|time]

Nothing here has been measured yet. Predicted, H200, 4,278 GB/s of a copy; bytes that count: image once, matrix once.
  im2col of the large anchor (206 MB to 1,850 MB: 481 us at the copy's rate)
    words   five divisions of 64 bits for a word: instructions count, 0.15 of the copy
    places  two divisions for a column, then nine loads and stores each; stores of 128 bytes a warp: 0.8
    four    stores of 512 bytes a warp and a quarter of them; loads as before: 0.9; writes without reads may run faster
            than a copy does
  convolve, large anchor: product of 256 x 200,704 x 2,304 at our sgemm's 0.94 of FMAs' limit, 58 TFLOP/s: 4.1 ms; im2col
    0.5 ms; turning 206 MB to images first 0.1 ms: 4.7 ms, 50 TFLOP/s, as cuDNN (50.1). im2col costs a tenth there, since 256
    filters use each word of the matrix; on the small anchor (128 filters, 116 MB of matrix, 27 us of 160) a sixth, and
    half of the matrix may still lie in L2 when the product reads it
  fewer images at once: 16 images of the large anchor (462 MB) as fast; one (29 MB, in L2) saves its traffic and the turning,
    but a product of 256 x 3,136 has 98 tiles for 396 places: sgemm shares the depth; slower, 0.8
  pointwise (1 x 1): no matrix, but 32 products of 784 columns: launches and small products; convolve copies the image once
    (matrix as large as the image) and has one product: which wins depends on images, not clear
"""

import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np

sys.path.insert(0, ".")
import cudatut as ct
from cudatut.book.images.im2col import launch
from cudatut.book.images.im2col.reference import matrix
from cudatut.book.images.shapes import LARGE, RAGGED, SMALL, Shape, reference
from cudatut.book.published.sgemm import sgemm
from cudatut.book.rivals import cudnn_conv

START, LIMIT_S = time.perf_counter(), 70
WHAT = sys.argv[1] if len(sys.argv) > 1 else "both"
LAYERS = {
    "1x1, 56x56": Shape(32, 64, 56, 56, 256, (1, 1)),
    "1x1, 14x14": Shape(32, 1024, 14, 14, 256, (1, 1)),
    "3x3, 7x7 pixels": Shape(32, 512, 7, 7, 512, (3, 3), pad=(1, 1)),
    "first, 7x7 / 2": Shape(32, 3, 224, 224, 64, (7, 7), (2, 2), (3, 3)),
}
failed = 0


def sizes(shape):
    return (
        (shape.images, shape.channels, shape.height, shape.width),
        (shape.filters, shape.channels // shape.groups, *shape.window),
        (shape.images, shape.filters, *shape.out),
    )


def attempt(what, call):
    global failed
    try:
        call()
    except Exception as error:
        failed += 1
        print("FAILED", what, (str(error).splitlines() or [repr(error)])[:3], flush=True)
        if "illegal" in str(error) or "launch failed" in str(error):
            traceback.print_exc()
            raise SystemExit("the context is lost") from None


def compile_all():
    ct.device()
    jobs = [("images/im2col/im2col.cu", f"im2col_{kind}") for kind in launch.KINDS]
    jobs += [("images/im2col/images_first.cu", "images_first")]
    flags = (False, False)
    jobs += [
        (sgemm.SOURCE, config.name(vec, *flags)) for config in sgemm.CONFIGS for vec in (1, 2, 4)
    ]

    def one(job):
        ct.Kernel(*job, load=False)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, jobs))
    print(f"compiled {len(jobs)} after {time.perf_counter() - START:.0f} s", flush=True)


def check():
    total = 0
    for shape in RAGGED:
        rng, (a, b, c) = ct.rng(0), sizes(shape)
        images = rng.integers(-4, 5, a).astype("float32")
        weights = rng.integers(-4, 5, b).astype("float32")
        x, w = ct.to_device(images), ct.to_device(weights)
        rows, pitch = launch.extents(shape)
        wanted = np.zeros((rows, pitch), "float32")
        filled = matrix(shape, images)
        wanted[:, : filled.shape[1]] = filled
        m, y = ct.empty((rows, pitch), "float32"), ct.empty(c, "float32")
        expected = reference(shape, images, weights)

        def copied(kind, m=m, x=x, shape=shape, wanted=wanted):
            ct.poison(m)
            launch.im2col(shape, x, m, kind)()
            ct.check(m, wanted, name=f"{kind} {tuple(shape)}", rtol=0)

        def convolved(at_once, y=y, x=x, w=w, shape=shape, expected=expected):
            ct.poison(y)
            launch.convolve(shape, x, w, y, at_once)()
            ct.check(y, expected, name=f"convolve {at_once} {tuple(shape)}", rtol=0)

        for kind in launch.KINDS:
            attempt(kind, lambda k=kind, f=copied: f(k))
        for at_once in (None, 1, 2):
            attempt(f"convolve {at_once}", lambda n=at_once, f=convolved: f(n))
        total += 6
        if shape.window == (1, 1) and shape.stride == (1, 1):
            total += 1

            def single(y=y, x=x, w=w, shape=shape, expected=expected):
                ct.poison(y)
                launch.pointwise(shape, x, w, y)()
                ct.check(y, expected, name=f"pointwise {tuple(shape)}", rtol=0)

            attempt("pointwise", single)
    print(
        f"{total - failed} of {total} right after {time.perf_counter() - START:.0f} s", flush=True
    )


def contest(name, shape):
    if time.perf_counter() - START > LIMIT_S - 12:
        print("out of time before", name)
        return
    rng, (a, b, c) = ct.rng(1), sizes(shape)
    x = ct.to_device(rng.standard_normal(a, "float32"))
    w = ct.to_device(rng.standard_normal(b, "float32"))
    y, m = ct.empty(c, "float32"), ct.empty(launch.extents(shape), "float32")
    print(name, launch.memory(shape), launch.memory(shape, 1), flush=True)
    half = m.reshape(-1)[: m.size // 2], m.reshape(-1)[m.size // 2 : m.size // 2 * 2]
    runs = {kind: launch.im2col(shape, x, m, kind) for kind in launch.KINDS}
    runs["copy of the matrix's half"] = ct.vendor.copy(*half)
    needed = dict.fromkeys(runs, x.nbytes + m.nbytes)
    needed["copy of the matrix's half"] = 2 * half[0].nbytes
    ct.bench(runs, bytes=needed, name=f"im2col, {name}", rounds=20)
    runs = cudnn_conv.contestants(
        x, w, y, shape.stride, shape.pad, shape.dilation, shape.groups, tries=0
    )
    try:
        runs["cuDNN"]()
        ct.synchronize()
        expected = y.get().astype("float64")
    except Exception as error:
        print("FAILED cuDNN", name, str(error)[:300])
        expected = None
    for at_once in sorted({1, 4, 16, shape.images}):
        label = f"{at_once} images at once"
        try:
            run = launch.convolve(shape, x, w, y, at_once)
            run()
            if expected is not None:
                off = np.abs(y.get() - expected).max() / np.abs(expected).max()
                if not off < 1e-4:
                    print(f"WRONG {label} on {name}: off by {off:.2e} of the largest")
                    continue
            runs[label] = run
        except Exception as error:
            print("FAILED", label, name, str(error)[:300])
    # What the whole is made of.
    rows, pitch = launch.extents(shape)
    p = ct.empty((shape.filters, pitch), "float32")
    runs["the product alone"] = sgemm.launcher(
        shape.filters, pitch, rows, 1.0, w, rows, m, pitch, 0.0, p, pitch
    )
    if shape.window == (1, 1):
        runs["pointwise"] = launch.pointwise(shape, x, w, y)
    ct.bench(runs, flops=shape.flops, name=f"convolution, {name}", rounds=20)
    print(f"after {time.perf_counter() - START:.0f} s", flush=True)


compile_all()
if WHAT != "time":
    check()
if WHAT != "check":
    contest("small anchor", SMALL)
    contest("large anchor", LARGE)
    for name, shape in LAYERS.items():
        contest(name, shape)
