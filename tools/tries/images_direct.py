"""Try-out of direct convolution: every rung against the reference on ragged shapes, then each rung and variants beside cuDNN.

Run from the root of a checkout on the GPU machine: python tools/tries/images_direct.py [check|time]

Nothing here has been measured yet. Predicted on the small anchor (N32 C128 28x28 K128, 3 x 3: 7.4 GFLOP) and the large one
(N64 C256 56x56 K256: 237 GFLOP), H200, 66.9 TFLOP/s of FMAs at most:
  naive     two loads and some ten instructions of index and test to an FMA; lanes of a warp mostly share the weight, and the
            image lies in L1: about 3 TFLOP/s
  constant  the weight by the constant cache, which a warp reads at once: one load less for an FMA, 1.2x. A filter of the
            large anchor has 2,304 weights, so 7 at a time: 37 launches and copies, each with 784 blocks, cost little there;
            on the small one (14 filters at a time, 10 launches of 98 blocks of 256) SMs stay idle, so no gain
  tiled     no tests and no loads of global memory in the inner loop, but two barriers for a channel and 9 FMAs between them:
            as fast as naive, perhaps slower; L1 has served the overlap of windows all along
  several   56 results a thread: 7 + 2 loads of shared memory to 56 FMAs: 45 % of the FMAs' rate, 25 to 30 TFLOP/s
  window    27 + 18 loads to 504 FMAs, loops unrolled: FMAs are what counts; what is lost: barriers, copies between steps that
            nothing overlaps within a block (four blocks an SM do), lanes beyond the edge (28 of 32: 0.875 on the small
            anchor, none on the large): 35 TFLOP/s small, 42 large
"""

import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np

sys.path.insert(0, ".")
import cudatut as ct
from cudatut.book.images.direct import launch
from cudatut.book.images.direct.launch import Part
from cudatut.book.images.shapes import LARGE, RAGGED, SMALL, Shape, reference
from cudatut.book.rivals import cudnn_conv

START, LIMIT_S = time.perf_counter(), 70
WHAT = sys.argv[1] if len(sys.argv) > 1 else "both"
# What each is for.
PARTS = {
    "7x8, 8 wide": launch.MANY,  # 28 and 56 rows are whole tiles
    "8x8, 8 wide": Part(8, 8, 8, 4),  # more FMAs to a load, but 28 rows are 0.875 of 32
    "4x8, 8 wide": Part(4, 8, 8, 4),  # fewer registers, more blocks: hides copies better?
    "7x8, 4 wide": Part(
        7, 8, 4, 4
    ),  # 56 down: fewer lanes beyond the edge of 28 columns, narrower loads
    "7x8, 16 wide": Part(7, 8, 16, 4),  # 14 down: longer rows in global memory
    "7x8, 8 warps": Part(7, 8, 8, 8),  # 64 filters use one tile: half the copies of the image
    "7x16, 2 warps": Part(7, 16, 8, 2),  # 112 sums a thread: half the loads of words for an FMA
    "7x4, 8 warps": Part(7, 4, 8, 8),
}
STEPS = 2, 4, 8  # channels of a step: barriers and copies against shared memory
# Other layers: depthwise (memory counts), the first of a network, strided, pointwise, small images.
LAYERS = {
    "depthwise 3x3, 112": Shape(32, 96, 112, 112, 96, (3, 3), pad=(1, 1), groups=96),
    "first, 7x7 / 2": Shape(32, 3, 224, 224, 64, (7, 7), (2, 2), (3, 3)),
    "3x3 / 2": Shape(32, 128, 56, 56, 128, (3, 3), (2, 2), (1, 1)),
    "1x1": Shape(32, 256, 28, 28, 128, (1, 1)),
    "3x3, 7x7 pixels": Shape(32, 512, 7, 7, 512, (3, 3), pad=(1, 1)),
    "dilated by 2": Shape(8, 128, 28, 28, 128, (3, 3), pad=(2, 2), dilation=(2, 2)),
}
MORE = (
    Shape(1, 3, 9, 9, 5, (3, 3), (2, 2), (1, 1)),
    Shape(2, 4, 6, 70, 9, (5, 5), pad=(2, 2)),
    Shape(1, 9, 60, 9, 40, (3, 3), pad=(1, 1)),
    Shape(1, 6, 12, 12, 40, (7, 7), (2, 2), (3, 3)),
    Shape(2, 6, 9, 9, 6, (3, 3), pad=(1, 1), groups=6),
    Shape(1, 3, 9, 9, 3, (3, 3), (200, 200), (1, 1)),
    Shape(1, 2000, 3, 3, 2, (3, 3), pad=(1, 1)),  # a filter that constant memory does not hold
    Shape(1, 3, 2, 5, 70000, (1, 1)),
)
failed = 0


def sizes(shape):
    return (
        (shape.images, shape.channels, shape.height, shape.width),
        (shape.filters, shape.channels // shape.groups, *shape.window),
        (shape.images, shape.filters, *shape.out),
    )


def whole(shape, seed=0):
    rng, (a, b, _) = ct.rng(seed), sizes(shape)
    return rng.integers(-4, 5, a).astype("float32"), rng.integers(-4, 5, b).astype("float32")


def makers(shape, x, w, y, grid=PARTS):
    """name -> maker of each rung that takes the shape."""
    given = shape, x, w, y
    found = {"naive": lambda: launch.naive(*given)}
    if shape.product[2] <= launch.HELD:
        found["constant"] = lambda: launch.constant(*given)
    if not launch.refuses_tiles(shape):
        found["tiled"] = lambda: launch.tiled(*given)
    for name, part in grid.items():
        if not launch.refuses_several(shape, part):
            found[f"several {name}"] = lambda p=part: launch.several(*given, p)
        if not launch.refuses_window(shape):
            found[f"window {name}"] = lambda p=part: launch.window(*given, p)
    return found | {"direct": lambda: launch.direct(*given)}


def compile_all(shapes):
    ct.device()
    jobs = {("naive", "direct_naive"), ("constant", "direct_constant"), ("tiled", "direct_tiled")}
    for shape in shapes:
        for part in {launch.suits(shape), *PARTS.values(), launch.FEW}:
            jobs.add(("several", f"direct_several<{part.text}>"))
            if launch.refuses_window(shape):
                continue
            steps = {launch.channels_of(shape, part), *(STEPS if shape is LARGE else ())}
            for step in steps:
                numbers = part.text, step, *shape.window, shape.stride[0]
                jobs.add(("window", f"direct_window<{','.join(map(str, numbers))}>"))

    def one(job):
        try:
            ct.Kernel(f"{launch.FOLDER}/{job[0]}.cu", job[1], load=False)
        except Exception as error:
            print("FAILED to compile", job, str(error)[:500])

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, sorted(jobs)))
    print(f"compiled {len(jobs)} after {time.perf_counter() - START:.0f} s", flush=True)


def check(shapes):
    global failed
    total = 0
    for shape in shapes:
        images, weights = whole(shape)
        expected = reference(shape, images, weights)
        x, w = ct.to_device(images), ct.to_device(weights)
        y = ct.empty(expected.shape, "float32")
        few = {"7x8, 8 wide": launch.MANY, "few": launch.FEW, "8x8, 32 wide": Part(8, 8, 32, 4)}
        for name, make in makers(shape, x, w, y, few).items():
            total += 1
            try:
                ct.poison(y)
                make()()
                ct.check(y, expected, name=f"{name} {tuple(shape)}", rtol=0)
            except Exception as error:
                failed += 1
                print("FAILED", name, tuple(shape), str(error).splitlines()[:3], flush=True)
                if "illegal" in str(error) or "launch failed" in str(error):
                    traceback.print_exc()
                    raise SystemExit("the context is lost") from None
        if shape.product[2] > launch.HELD:
            try:
                launch.constant(shape, x, w, y)
                print("FAILED constant took", tuple(shape))
            except ValueError as error:
                print("refused as it should be:", error)
    print(
        f"{total - failed} of {total} right after {time.perf_counter() - START:.0f} s", flush=True
    )


def contest(name, shape, grid, steps=()):
    if time.perf_counter() - START > LIMIT_S - 12:
        print("out of time before", name)
        return
    rng, (a, b, c) = ct.rng(1), sizes(shape)
    x = ct.to_device(rng.standard_normal(a, "float32"))
    w = ct.to_device(rng.standard_normal(b, "float32"))
    y, ours = ct.empty(c, "float32"), {}
    rivals = cudnn_conv.contestants(
        x, w, y, shape.stride, shape.pad, shape.dilation, shape.groups, tries=0
    )
    try:
        rivals["cuDNN"]()
        ct.synchronize()
        expected = y.get().astype("float64")
    except Exception as error:
        print("FAILED cuDNN", name, str(error)[:300])
        expected = None
    jobs = makers(shape, x, w, y, grid)
    del jobs["direct"]
    if shape.flops > 1e11:  # 80 ms each
        jobs.pop("naive"), jobs.pop("constant", None), jobs.pop("tiled", None)
    for step in steps:
        jobs[f"window, {step} channels"] = lambda s=step: launch.window(
            shape, x, w, y, launch.MANY, s
        )
    for label, make in jobs.items():
        try:
            run = make()
            run()
            if expected is not None:
                off = np.abs(y.get() - expected).max() / np.abs(expected).max()
                if not off < 1e-4:
                    print(f"WRONG {label} on {name}: off by {off:.2e} of the largest")
                    continue
            ours[label] = run
        except Exception as error:
            print("FAILED", label, name, str(error)[:300])
    ct.bench(rivals | ours, flops=shape.flops, name=name, rounds=15)
    print(f"after {time.perf_counter() - START:.0f} s", flush=True)


compile_all([*RAGGED, *MORE, SMALL, LARGE, *LAYERS.values()])
if WHAT != "time":
    check([*RAGGED, *MORE])
if WHAT != "check":
    contest("small anchor", SMALL, PARTS)
    contest("large anchor", LARGE, PARTS, STEPS)
    for name, shape in LAYERS.items():
        contest(name, shape, {"chosen": launch.suits(shape)})
