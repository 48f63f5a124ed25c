"""Try-out of implicit GEMM: every kernel against the reference on ragged shapes, then each rung and variants beside cuDNN.

Run from the root of a checkout on the GPU machine: python tools/tries/images_implicit_gemm.py [check|time]
What each step should gain is said beside it; nothing here has been measured yet.
"""

import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import cudatut as ct
from cudatut.book.images.implicit_gemm import im2col, launch
from cudatut.book.images.implicit_gemm.launch import Boxes, Tile
from cudatut.book.images.implicit_gemm.shapes import LARGE, RAGGED, SMALL, reference

START, LIMIT_S = time.perf_counter(), 70
WHAT = sys.argv[1] if len(sys.argv) > 1 else "both"

# fp32. Predicted for WIDE: 94 % of the FMA rate as the product has it, less 7 to 8 % for the table, the test and the address
# of 16 copies of single words to 1,024 FMAs of a thread: about 52 TFLOP/s on both anchors (392 tiles for 396 places, and
# 6,272 for 396: 99 % filled). `maps` computes divisions for each word and two loads for each FMA: about 3 TFLOP/s.
TILES = {
    "64x128": launch.WIDE,
    # 8 x 16 results a thread: half the copies for an FMA, +4 %; the small anchor has only 98 such tiles: much slower there.
    "128x256, 8x16": Tile(128, 256, 16, 8, 16, 3, 1),
    # Half as many barriers, but more registers for addresses.
    "64x128, 32 deep": Tile(64, 128, 32, 8, 8, 2, 3),
    # Filters of the whole small anchor in a tile: pixels are fetched once; 196 tiles for 132 SMs: 74 % filled.
    "128x128, 256 threads": Tile(128, 128, 16, 8, 8, 3, 2),
    # Small tiles, for small products.
    "32x64": launch.FEW,
    "64x64": Tile(64, 64, 16, 8, 8, 3, 6),
}
# bf16. Predicted: 2 x 64 x 256 as the persistent product, about 780 TFLOP/s on the large anchor (1,568 tiles: 11.9 rounds).
# 3 x 64 x 128: 131 tiles for 132 SMs on the small anchor, one round of 18 steps, about 4 us and the start: 2x the others,
# which need two rounds. With 64 filters a tile B is read twice as often: slower, for small products only.
BOXES = {
    "128x256, 4": Boxes(2, 256, 4),
    "192x128, 5": Boxes(3, 128, 5),
    "128x128, 6": Boxes(2, 128, 6),
    "128x64, 8": Boxes(2, 64, 8),
    "192x128, 3": Boxes(3, 128, 3),  # are five stages needed? -3 % predicted
}


def to_bf16(x):
    """float32 to the nearest bf16, as uint16."""
    bits = np.ascontiguousarray(x, "float32").view("uint32")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("uint16")


def from_bf16(x):
    return (x.astype("uint32") << 16).view("float32")


def last(x):
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def data(shape, seed=0):
    rng = ct.rng(seed)
    images = rng.integers(-4, 5, (shape.images, shape.channels, shape.height, shape.width))
    weights = rng.integers(-4, 5, (shape.filters, shape.channels // shape.groups, *shape.window))
    return images.astype("float32"), weights.astype("float32")


def compile_all():
    """Everything at once, in threads: loaded later, by the thread with the context."""
    ct.activate()  # for its compute capability
    folder = launch.FOLDER
    jobs = [
        (f"{folder}/offsets.cu", tile.name(bits), None)
        for tile in TILES.values()
        for bits in (True, False)
    ]
    jobs += [(f"{folder}/im2col_tma.cu", boxes.name, "sm_90a") for boxes in BOXES.values()]
    jobs += [
        (f"{folder}/maps.cu", "implicit_maps", None),
        (f"{folder}/any_bf16.cu", "any_bf16", None),
    ]

    def one(job):
        source, name, arch = job
        try:
            ct.Kernel(source, name, arch=arch, load=False)
        except Exception as error:
            print("FAILED to compile", name, str(error)[:500])

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, jobs))
    print(f"compiled {len(jobs)} after {time.perf_counter() - START:.0f} s", flush=True)


def tried(name, make, results, expected, read=lambda y: y):
    """Runs one launcher on a poisoned output and compares exactly: whole numbers."""
    try:
        ct.poison(results)
        make()()
        got = read(results.get())
        wrong = np.flatnonzero(~(got == expected))
        if len(wrong):
            at = np.unravel_index(wrong[0], expected.shape)
            print(
                f"WRONG {name}: {len(wrong)} of {expected.size}, first at {tuple(map(int, at))}: {got[at]} for {expected[at]}"
            )
        return not len(wrong)
    except Exception as error:
        print(f"FAILED {name}: {type(error).__name__}: {str(error)[:300]}")
        if "illegal" in str(error) or "launch failed" in str(error):
            traceback.print_exc()
            raise SystemExit("the context is lost") from None
        return False


def check():
    right = total = 0
    for shape in RAGGED:
        images, weights = data(shape)
        expected = reference(shape, images, weights)
        x, w = ct.to_device(images), ct.to_device(weights)
        y = ct.empty(expected.shape, "float32")
        jobs = {"maps": lambda x=x, w=w, y=y, s=shape: launch.maps(s, x, w, y)}
        for name, tile in TILES.items():
            jobs[name] = lambda t=tile, x=x, w=w, y=y, s=shape: launch.offsets(s, x, w, y, t)
        for name, make in jobs.items():
            right, total = right + tried(f"{name} {tuple(shape)}", make, y, expected), total + 1
        expected = from_bf16(to_bf16(last(expected)))
        x, w = ct.to_device(to_bf16(last(images))), ct.to_device(to_bf16(last(weights)))
        y = ct.empty(expected.shape, "uint16")
        jobs = {"bf16": lambda x=x, w=w, y=y, s=shape: launch.bf16(s, x, w, y)}
        if not im2col.refused(shape):
            for name, boxes in BOXES.items():
                jobs[name] = lambda b=boxes, x=x, w=w, y=y, s=shape: launch.bf16(s, x, w, y, b)
        for name, make in jobs.items():
            right, total = (
                right + tried(f"{name} {tuple(shape)}", make, y, expected, from_bf16),
                total + 1,
            )
    print(f"{right} of {total} right after {time.perf_counter() - START:.0f} s", flush=True)


def rivals(shape, images, weights, dtype, channels_last):
    """cuDNN through PyTorch, with benchmark=True and TF32 off; or None."""
    import torch

    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark_limit = 0  # all plans
    order = torch.channels_last if channels_last else torch.contiguous_format
    x, w = (
        torch.from_numpy(one).cuda().to(dtype).to(memory_format=order) for one in (images, weights)
    )

    def run():
        return torch.nn.functional.conv2d(
            x, w, stride=shape.stride, padding=shape.pad, dilation=shape.dilation, groups=shape.groups
        )  # fmt: skip

    return run


def timed():
    import torch

    for name, shape in (("small anchor", SMALL), ("large anchor", LARGE)):
        rng = ct.rng(1)
        images = rng.standard_normal(
            (shape.images, shape.channels, shape.height, shape.width), "float32"
        )
        weights = rng.standard_normal(
            (shape.filters, shape.channels // shape.groups, *shape.window), "float32"
        )
        for kind in ("bf16", "fp32"):
            if time.perf_counter() - START > LIMIT_S - 12:
                print("out of time before", name, kind)
                return
            runs = {}
            if kind == "fp32":
                x, w = ct.to_device(images), ct.to_device(weights)
                y = ct.empty((shape.images, shape.filters, *shape.out), "float32")
                makers = {"maps": lambda: launch.maps(shape, x, w, y)} if shape is SMALL else {}
                makers |= {
                    n: lambda t=t: launch.offsets(shape, x, w, y, t) for n, t in TILES.items()
                }
            else:
                x, w = (ct.to_device(to_bf16(last(one))) for one in (images, weights))
                y = ct.empty((shape.images, *shape.out, shape.filters), "uint16")
                makers = {n: lambda b=b: launch.bf16(shape, x, w, y, b) for n, b in BOXES.items()}
            try:
                rival = rivals(
                    shape,
                    images,
                    weights,
                    torch.float32 if kind == "fp32" else torch.bfloat16,
                    kind == "bf16",
                )
                expected = rival().float().contiguous().cpu().numpy()
                runs["cuDNN"] = rival
            except Exception as error:
                print("FAILED cuDNN", name, kind, str(error)[:300])
                expected = None
            for label, make in makers.items():
                try:
                    run = make()
                    run()
                    if expected is not None:
                        got = y.get() if kind == "fp32" else np.moveaxis(from_bf16(y.get()), -1, 1)
                        off = float(np.abs(got - expected).max() / np.abs(expected).max())
                        if not off < (1e-4 if kind == "fp32" else 1e-2):
                            print(
                                f"WRONG {label} on the {name}, {kind}: off by {off:.2e} of the largest"
                            )
                            continue
                    runs[label] = run
                except Exception as error:
                    print("FAILED", label, name, kind, str(error)[:300])
            ct.bench(
                runs,
                flops=shape.flops,
                name=f"{name}, {kind}",
                rounds=15 if kind == "fp32" else 40,
                limit=False,
            )
            print(f"after {time.perf_counter() - START:.0f} s", flush=True)


compile_all()
if WHAT != "time":
    check()
if WHAT != "check":
    timed()
