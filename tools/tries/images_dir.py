"""Second try-out of direct convolution and of im2col; each beside the old way.

Run from the root of a checkout on the GPU machine: python tools/tries/images_dir.py [check|time|direct|im2col]

Predicted before it ran: weights along their filter 1.2x on the large anchor (a load of 32 filters' weights has 32 sectors, and
L1 has more to do with them than with all loads of the compute), the next step ahead another 1.1x, together near 45 TFLOP/s of
cuDNN's 50.5; on the small anchor as much, from 26 to 34. Depthwise (one filter a block): no change from the weights.
im2col: `row` loads 6 words for 3 x 3 windows where `four` loads 12, and 13 for 7 x 7 / 2 where it loads 28: small anchor 37 to 33 us,
large 520 to 490, the first of a ResNet 98 to 65; streamed stores no gain. Filling the matrix with zeros tells what writes alone take.
"""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, ".")
import numpy as np

import cudatut as ct
from cudatut.book.images.direct import launch
from cudatut.book.images.direct.launch import Part
from cudatut.book.images.im2col import launch as im2col
from cudatut.book.images.im2col.reference import matrix
from cudatut.book.images.shapes import LAYERS, RAGGED, reference
from cudatut.book.rivals import cudnn_conv

START, LIMIT_S = time.perf_counter(), 30
WHAT = sys.argv[1] if len(sys.argv) > 1 else "both"
ACROSS = (("ACROSS", 1),)
VARIANTS = {
    "several, across": lambda *g: launch.several(*g, launch.suits(g[0]), defines=ACROSS),
    "several": lambda *g: launch.several(*g, launch.suits(g[0])),
    "window, across": lambda *g: launch.window(*g, defines=ACROSS),
    "window": lambda *g: launch.window(*g),
    "ahead": lambda *g: launch.ahead(*g),
    "ahead, many": lambda *g: launch.window(*g, ahead=True),
    "ahead, 8 warps": lambda *g: launch.ahead(*g, launch.EIGHT),
    "ahead, 7x4, 8 warps": lambda *g: launch.ahead(*g, Part(7, 4, 8, 8)),
    "ahead, 7x16, 2 warps": lambda *g: launch.ahead(*g, Part(7, 16, 8, 2)),
}
EXAMPLES = (
    "images/direct", "images/direct_pictures", "images/direct_claims", "images/direct_attempts", "images/direct_contest",
    "images/direct_solutions", "images/im2col", "images/im2col_claims", "images/im2col_attempts", "images/im2col_contest",
    "images/im2col_solutions",
)  # fmt: skip


def examples():
    """Each as a reader would run it, several at a time: times are worth nothing."""

    def one(name):
        begin = time.perf_counter()
        command = [sys.executable, "-m", "cudatut", "run", name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=100)
            said, status = done.stdout + done.stderr, done.returncode
        except subprocess.TimeoutExpired as error:
            said, status = f"{error.stdout} {error.stderr}", "too late"
        return name, status, time.perf_counter() - begin, said

    with ThreadPoolExecutor(6) as pool:
        for name, status, seconds, said in pool.map(one, EXAMPLES):
            print(f"\n===== {name}: {status} after {seconds:.0f} s", flush=True)
            lines = [line for line in said.splitlines() if ": passed (" not in line]
            print("\n".join(lines[-160:]), flush=True)


def failing(what, call):
    try:
        return call()
    except Exception as error:
        print("FAILED", what, str(error)[:400], flush=True)


def numbers(shape, integers=True):
    rng = ct.rng(0)
    a = shape.images, shape.channels, shape.height, shape.width
    b = shape.filters, shape.channels // shape.groups, *shape.window
    if integers:
        return rng.integers(-4, 5, a).astype("float32"), rng.integers(-4, 5, b).astype("float32")
    return rng.standard_normal(a, "float32"), rng.standard_normal(b, "float32")


def constant(shape):
    images, weights = numbers(shape)
    y = ct.empty((shape.images, shape.filters, *shape.out), "float32")
    ct.poison(y)
    launch.constant(shape, ct.to_device(images), ct.to_device(weights), y)()
    ct.check(y, reference(shape, images, weights), name=f"constant {shape.text}", rtol=0)


def contest(name, shape):
    if time.perf_counter() - START > LIMIT_S:
        return print("out of time before", name)
    images, weights = numbers(shape)
    x, w = ct.to_device(images), ct.to_device(weights)
    y = ct.empty((shape.images, shape.filters, *shape.out), "float32")
    few = min(8, shape.filters) if shape.groups == 1 else shape.filters
    right = reference(shape._replace(images=1, filters=few), images[-1:], weights[-few:])
    runs = {}
    if shape.flops < 2e10:
        for rung in ("naive", "constant", "tiled"):
            runs[rung] = failing(rung, lambda rung=rung: getattr(launch, rung)(shape, x, w, y))
    for label, make in VARIANTS.items():
        run = failing((label, name), lambda make=make: make(shape, x, w, y))
        if run is None:
            continue

        def right_one(run=run, label=label):
            ct.poison(y)
            run()
            ct.check(y[-1:].get()[:, -few:], right, name=f"{label}, {name}", rtol=0)
            runs[label] = run

        failing((label, name), right_one)
    x2, w2 = numbers(shape, integers=False)
    x.set(x2), w.set(w2)
    rivals = cudnn_conv.contestants(
        x, w, y, shape.stride, shape.pad, shape.dilation, shape.groups, tries=0
    )
    runs = {one: run for one, run in runs.items() if run}
    ct.bench(runs | rivals, flops=shape.flops, name=name, rounds=12)
    print(f"after {time.perf_counter() - START:.0f} s", flush=True)


def matrices(name, shape):
    if time.perf_counter() - START > LIMIT_S:
        return print("out of time before", name)
    import pycuda.driver as cuda

    x = ct.to_device(numbers(shape)[0])
    m = ct.empty(im2col.extents(shape), "float32")
    half = m.reshape(-1)[: m.size // 2], m.reshape(-1)[m.size // 2 : m.size // 2 * 2]
    runs = {"copy of the matrix's half": ct.vendor.copy(*half)}
    runs["zeros"] = lambda: cuda.memset_d32_async(int(m.gpudata), 0, m.size, None)
    for kind in ("four", "row"):
        for blocks in (1 << 30, 8192, 4096, 2048, 1024):
            if kind == "row" and im2col.refuses_row(shape):
                continue
            label = f"{kind}, {blocks} blocks"
            make = lambda k=kind, b=blocks: im2col.im2col(shape, x, m, k, blocks=b)  # noqa: E731
            run = failing(label, make)
            if run and not failing(label, run):
                runs[label] = run
    needed = dict.fromkeys(runs, x.nbytes + m.nbytes)
    needed["zeros"] = m.nbytes
    needed["copy of the matrix's half"] = 2 * half[0].nbytes
    ct.bench(runs, bytes=needed, name=f"im2col, {name}", rounds=20)


def right_matrix(shape):
    x = numbers(shape)[0]
    wanted, found = np.zeros(im2col.extents(shape), "float32"), matrix(shape, x)
    wanted[:, : found.shape[1]] = found
    m = ct.empty(wanted.shape, "float32")
    for kind in im2col.KINDS:
        if kind == "row" and im2col.refuses_row(shape):
            continue
        ct.poison(m)
        im2col.im2col(shape, ct.to_device(x), m, kind)()
        ct.check(m, wanted, name=f"im2col {kind} {shape.text}", rtol=0)


if WHAT == "check":
    examples()
    raise SystemExit
ct.device()
jobs = set()
for shape in LAYERS.values():
    for part in {launch.suits(shape), launch.EIGHT, Part(7, 4, 8, 8), Part(7, 16, 8, 2)}:
        for ahead in (False, True):
            channels = launch.channels_of(shape, part, ahead)
            jobs.add(("images/direct/window.cu", launch.instance(shape, part, channels, ahead)))
print("compile:", len(jobs), failing("compile", lambda: ct.compile_ahead(sorted(jobs))))
print(f"after {time.perf_counter() - START:.0f} s", flush=True)
START = time.perf_counter()
if WHAT != "direct":
    for one in RAGGED:
        failing(("im2col", one.text), lambda one=one: right_matrix(one))
    for name, shape in LAYERS.items():
        failing(name, lambda name=name, shape=shape: matrices(name, shape))
    print(f"after {time.perf_counter() - START:.0f} s", flush=True)
    START = time.perf_counter()
if WHAT == "im2col":
    raise SystemExit
for one in RAGGED:
    if one.product[2] <= launch.HELD:
        failing(("constant", one.text), lambda one=one: constant(one))
for name in (
    "large anchor", "small anchor", "the first of a ResNet", "stride of 2", "7 x 7 pixels", "depthwise",
    "pointwise",
):  # fmt: skip
    failing(name, lambda name=name: contest(name, LAYERS[name]))
