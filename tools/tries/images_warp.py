"""Try-out of images/warp on the GPU: tiles and gathers, then times. Run from the root of a checkout.

What runs before found (H200, 5760 x 5760, the copy 50 us): all plain kernels, packed, four bytes and textures right; at 0, 30, 90
degrees plain 217, 280, 489 us, words 148, 180, 227, packed 165, 184, 234, points 190 at any angle, filtered to three channels
(sampled) 77, 78, 80. Predicted for what has not run:
  tile             12 wavefronts at any angle, 72 instructions a pixel and 7 to 14 for the box: 80 to 90 us
  tile, WEIGHTS    50 instructions a pixel and the box: 60 to 70 us
  gathered         one read of four neighbors for each pixel, as sampled, and 75 instructions for the weights: 85 us at any angle
  gathered, WEIGHTS  70 us
  DOTS 1, 2        six of twelve byte permutations fewer on the pipe that has half rate: 10 % less; all twelve: nothing more
"""

# ruff: noqa: B023 - what a loop makes is called at once

import contextlib
import io
import os
import statistics
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np

sys.path.insert(0, os.getcwd())
import cudatut as ct
from cudatut.book.images.warp import reference, warp
from cudatut.book.images.warp.reference import BORDERS, rotation
from cudatut.book.images.warp.textures import Texture

START, LIMIT = time.time(), 30
RNG = np.random.default_rng(35)
SIZES = [(1, 1), (3, 3), (1, 9), (7, 5), (31, 33), (65, 130)]
failed, done = 0, 0


def spent():
    return time.time() - START


def attempt(what, call):
    global failed, done
    done += 1
    try:
        call()
    except Exception as error:
        failed += 1
        if failed <= 20:
            print("FAILED", what, "|", (str(error).splitlines() or [repr(error)])[:3], flush=True)


def compile_all():
    ct.device()
    wanted = [("warp", f"warp<{taps}, CONSTANT>", ()) for taps in (1, 2, 4)]
    wanted += [("warp", name, ()) for name in ("warp_float<CONSTANT>",)]
    wanted += [("four", name, ()) for name in ("pad", "warp_points", "warp_filtered")]
    for b in ("CONSTANT", "REPLICATE"):
        wanted += [("four", f"warp_four<{b}>", ()), ("words", f"warp_words<{b}>", ())]
        wanted += [("packed", f"warp_packed<{b}>", (("ROWS", 4),))]
        wanted += [("packed", f"warp_packed<{b}>", (("ROWS", 2), ("WEIGHTS", 1)))]
        wanted += [("packed", f"warp_packed<{b}>", ()), ("tile", f"warp_tile<{b}>", ())]
        wanted += [("tile", f"warp_tile<{b}>", (("HIGH", high),)) for high in (16, 32, 64)]
        for high in (32, 64):
            wanted += [("tile", f"warp_tile<{b}>", (("HIGH", high), ("WEIGHTS", 1)))]
    wanted += [("packed", "warp_sampled", (("ROWS", rows),)) for rows in (2, 4, 8)]
    wanted += [("packed", "warp_sampled", ()), ("packed", "warp_gathered", ())]
    wanted += [("packed", "warp_gathered", (("ROWS", rows),)) for rows in (2, 4, 8)]
    wanted += [("packed", "warp_gathered", (("ROWS", 4), ("WEIGHTS", 1)))]
    for dots in (1, 2):
        wanted += [("packed", "warp_gathered", (("DOTS", dots), ("ROWS", 4)))]
        wanted += [("tile", "warp_tile<CONSTANT>", (("DOTS", dots),))]

    def one(it):
        ct.Kernel(f"{warp.FOLDER}/{it[0]}.cu", it[1], dict(it[2]), load=False)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(one, wanted))


def picture(height, width):
    return RNG.integers(0, 251, (height, width, 3), np.uint8)


def fresh(shape):
    """An output whose poison no value between those of a picture is."""
    out = ct.empty(shape, np.uint8)
    ct.poison(out, 253)
    return out


def checked(got, wanted, name):
    with contextlib.redirect_stdout(io.StringIO()):  # thousands of lines
        ct.check(got, wanted, name)


def judged(name, out, values, near=reference.NEAR):
    got = out.get()
    wanted = reference.rounded(values, got[..., :3], near)
    checked(out, np.dstack([wanted, got[..., 3:]]), name)


def padded(image, compare=True):
    height, width, _ = image.shape
    start = np.full((height, warp.pitch_of(width), 4), 99, np.uint8)
    x, pixels = ct.to_device(image), ct.to_device(start)
    warp.pad(x, pixels)()
    if compare:
        start[:, :width, :3], start[:, :width, 3] = image, 255
        checked(pixels.get(), start, f"pad {height} x {width}")
    return pixels


def matrices(height, width):
    yield "identity", [[1, 0, 0], [0, 1, 0]]
    yield "shift", [[1, 0, -1.25], [0, 1, 0.75]]
    yield "turn", rotation(30, height, width, 0.8)
    yield "quarter", rotation(90, height, width)
    yield "shear", [[1.5, 0.4, -3], [-0.2, 0.3, 5]]
    yield "away", [[1, 0, 5000], [0, 1, 0]]


def checks():
    for size in SIZES:
        image = picture(*size)
        x, width, pixels = ct.to_device(image), size[1], None

        def prepared():
            nonlocal pixels
            pixels = padded(image)

        attempt(f"pad {size}", prepared)
        if pixels is None:
            continue
        for to in (size, (9, 14), (40, 67)):
            for name, matrix in matrices(*size):
                for number, border in enumerate(BORDERS[:2]):
                    label = f"{border} {name} {size} to {to}"
                    values = reference.warp(image, matrix, *to, 2, number, 77)
                    zero = reference.warp(image, matrix, *to, 2, number, 0)

                    def packed(near=reference.NEAR, **plan):
                        out, block = fresh((*to, 3)), (8, 16)
                        warp.warp(x, out, matrix, "linear", border, 77, "packed", block, **plan)()
                        judged(f"packed {label} {plan}", out, values, near)

                    def tile(near=reference.NEAR, **plan):
                        out = fresh((*to, 3))
                        warp.warp(x, out, matrix, "linear", border, 77, "tile", **plan)()
                        judged(f"tile {label} {plan}", out, values, near)

                    def four():
                        out = fresh((*to, 4))
                        warp.four(pixels, width, out, matrix, border, 77)()
                        judged(f"four {label}", out, values)

                    def texture(filtered, array, channels=4):
                        out, block = fresh((*to, channels)), (8, 16)
                        warp.by_texture(
                            pixels, width, out, matrix, filtered, border, array, block
                        )()
                        # Both weights of a texture are multiples of 1/256: off by 1/512, or 1/256 if cut off: two levels.
                        near = 2.0 if filtered else reference.NEAR
                        what = f"texture {filtered} {array} {channels} {label}"
                        judged(what, out, zero, near)

                    def gathered(near=reference.NEAR, **plan):
                        out = fresh((*to, 3))
                        given = (matrix, False, border, True, (8, 16), True)
                        warp.by_texture(pixels, width, out, *given, **plan)()
                        judged(f"gathered {label} {plan}", out, zero, near)

                    attempt(f"gathered {label}", gathered)
                    attempt(f"gathered bits {label}", lambda: gathered(0.02, ROWS=4, WEIGHTS=1))
                    attempt(f"packed {label}", packed)
                    attempt(f"packed bits {label}", lambda: packed(0.02, WEIGHTS=1, ROWS=2))
                    attempt(f"tile {label}", tile)
                    attempt(f"tile 16 {label}", lambda: tile(HIGH=16))
                    attempt(f"tile bits {label}", lambda: tile(0.02, WEIGHTS=1, HIGH=32))
                    attempt(f"four {label}", four)
                    for array in (False, True):
                        attempt(f"points {array} {label}", lambda: texture(False, array))
                        attempt(f"filtered {array} {label}", lambda: texture(True, array))
                        attempt(f"sampled {array} {label}", lambda: texture(True, array, 3))
        if spent() > 14:
            print("checks cut short behind", size)
            break


def torch_warp(image, matrix):
    """The same map for grid_sample: coordinates from -1 to 1 between the edges. Its grid is made once, outside of what is timed."""
    import torch

    height, width, _ = image.shape
    back = torch.tensor(
        [[float(v) for v in row] for row in reference.inverted(matrix)], dtype=torch.float64
    )
    y = torch.arange(height, device="cuda", dtype=torch.float64)[:, None]
    x = torch.arange(width, device="cuda", dtype=torch.float64)
    column, row = (float(a) * x + float(b) * y + float(c) for a, b, c in back)
    grid = torch.stack([(2 * column + 1) / width - 1, (2 * row + 1) / height - 1], -1).float()[None]
    planes = torch.as_tensor(image).cuda().movedim(-1, 0)[None].float().contiguous()
    kept = {}

    def run():
        kept["out"] = torch.nn.functional.grid_sample(
            planes, grid, mode="bilinear", padding_mode="zeros", align_corners=False
        )

    return run, lambda: kept["out"]


def contest(side, degrees):
    image = picture(side, side)
    matrix = rotation(degrees, side, side)
    matrix[:, 2] += 0.3, 0.4  # between pixels at 0 degrees, too
    x, out = ct.to_device(image), ct.empty(image.shape, np.uint8)
    pixels = padded(image, False)
    back = np.array(reference.inverted(matrix), float)
    rows, columns = np.mgrid[0:side:32, 0:side:32]
    within = [
        (a * columns + b * rows + c >= 0) & (a * columns + b * rows + c < side) for a, b, c in back
    ]
    share = float(np.mean(within[0] & within[1]))
    useful = int(image.nbytes * (1 + share))
    print(f"{degrees} degrees: {share:.3f} of the output lie in the image")
    runs = {}

    def put(name, make):
        try:
            runs[name] = make()
        except Exception as error:
            print("NOT", name, str(error).splitlines()[:2])

    for block in ((16, 16), (32, 8), (8, 16)):
        put(f"plain {block}", lambda: warp.warp(x, out, matrix, block=block))
        put(f"words {block}", lambda: warp.warp(x, out, matrix, way="words", block=block))
        put(
            f"packed 4 {block}",
            lambda: warp.warp(x, out, matrix, way="packed", block=block, ROWS=4),
        )
    for high in (16, 32, 64):
        put(f"tile {high}", lambda: warp.warp(x, out, matrix, way="tile", HIGH=high))
    for high in (32, 64):
        put(
            f"tile bits {high}",
            lambda: warp.warp(x, out, matrix, way="tile", HIGH=high, WEIGHTS=1),
        )
    for dots in (1, 2):
        put(f"tile dots {dots}", lambda: warp.warp(x, out, matrix, way="tile", DOTS=dots))
    for block in ((16, 16), (32, 8), (8, 16)):
        for rows in (2, 4, 8):
            given = (pixels, side, out, matrix)
            put(
                f"sampled {rows} {block}",
                lambda: warp.by_texture(*given, True, array=True, block=block, ROWS=rows),
            )
            put(
                f"gathered {rows} {block}",
                lambda: warp.by_texture(*given, gather=True, block=block, ROWS=rows),
            )
        for dots in (1, 2):
            put(
                f"gathered dots {dots} {block}",
                lambda: warp.by_texture(*given, gather=True, block=block, ROWS=4, DOTS=dots),
            )
        put(
            f"gathered bits 4 {block}",
            lambda: warp.by_texture(*given, gather=True, block=block, ROWS=4, WEIGHTS=1),
        )
    texture = Texture(pixels, side, gather=True)
    put("copy into a CUDA array", lambda: texture.refresh)
    put("pad", lambda: warp.pad(x, pixels))
    import torch
    from torchvision.transforms.v2 import functional as tv

    a = torch.randint(0, 255, (useful // 2,), dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    put("copy", lambda: lambda: b.copy_(a))
    put("grid_sample, fp32, grid given", lambda: torch_warp(image, matrix)[0])
    chw = torch.as_tensor(image).cuda().movedim(-1, 0).contiguous()
    put(
        "torchvision affine",
        lambda: (
            lambda: tv.affine(
                chw, -float(degrees), [0, 0], 1.0, [0.0, 0.0], tv.InterpolationMode.BILINEAR
            )
        ),
    )
    found = ct.bench(runs, bytes=useful, name=f"{side} x {side}, {degrees} degrees", rounds=6)
    for kind in (
        "plain",
        "words",
        "packed",
        "tile",
        "tile bits",
        "sampled",
        "gathered",
        "gathered bits",
    ):
        names = [
            n for n in runs if n.startswith(kind + " ") and ("bits" in kind or "bits" not in n)
        ]
        best = min(names, key=lambda one: found[one].median_us)
        others = ("copy", "grid_sample, fp32, grid given", "torchvision affine")
        ratios = [f"{found.ratio(best, other).median:.3f} x {other}" for other in others]
        print(f"BEST {best}: {found[best].median_us:.1f} us;", "; ".join(ratios))
    import cv2

    times = []
    for _ in range(3):
        begin = time.time()
        cv2.warpAffine(image, matrix, (side, side), flags=cv2.INTER_LINEAR)
        times.append(1e6 * (time.time() - begin))
    print(f"OpenCV, {cv2.getNumThreads()} threads: {statistics.median(times):.0f} us", flush=True)


if __name__ == "__main__":
    compile_all()
    print(f"compiled after {spent():.1f} s", flush=True)
    checks()
    print(f"checked after {spent():.1f} s, {done} attempts, failed: {failed}", flush=True)
    for degrees in (0, 90, 30):
        if spent() < LIMIT - 5:
            try:
                contest(5760, degrees)
            except Exception:
                traceback.print_exc()
    print(f"done after {spent():.1f} s, failed: {failed}")
