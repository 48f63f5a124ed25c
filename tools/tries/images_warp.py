"""Try-out of images/warp on the GPU: right on ragged sizes, then times. Run from the root of a checkout.

Predicted, H200, 4320 x 7680 turned (100 MB in, 100 MB out at most; a copy takes 46 us):
  plain, linear    twelve byte loads a pixel, of which a warp touches many lines when it is turned: 0.15 of the copy; blocks of
                   16 x 16 beside 32 x 8 gain some 10 % at 90 degrees, where a row of the block runs down a column of the image
  float            faster by what 64-bit sums cost, some 10 %; wrong by up to a level or two at 7680 columns
  words            0.3 of the copy
  four bytes       one load for three, stores of a word: 0.4 of its own bytes (133 + 133 MB)
  texture, points  four reads as before, but no address arithmetic and borders for free: as four bytes, or slower: a texture
                   unit gives 4 samples a clock and SM, so 33 M pixels x 4 / (132 x 4) at 1.7 GHz are 147 us
  filtered         one read: 37 us by the same count, so memory is the limit; weights of 8 bits are off by one level, seldom two
  array            as pitch at 0 degrees, better at 90, where a row of the pitched texture is a line a pixel
"""

# ruff: noqa: B023 - what a loop makes is called at once

import os
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np

sys.path.insert(0, os.getcwd())
import cudatut as ct
from cudatut.book.images.warp import reference, warp
from cudatut.book.images.warp.reference import BORDERS, rotation

START, LIMIT = time.time(), 70
RNG = np.random.default_rng(35)
SIZES = [(1, 1), (1, 2), (2, 1), (3, 3), (1, 9), (7, 5), (31, 33), (65, 130)]
BLOCKS = [(16, 16), (32, 8), (8, 32), (64, 4), (8, 8)]
failed = 0


def attempt(what, call):
    global failed
    try:
        call()
    except Exception as error:
        failed += 1
        print("FAILED", what, "|", (str(error).splitlines() or [repr(error)])[:3], flush=True)


def compile_all():
    ct.device()
    wanted = [("warp", f"warp<{taps}, {b.upper()}>", ()) for taps in (1, 2, 4) for b in BORDERS]
    wanted += [("warp", name, ()) for name in ("warp_forward", "warp_float<CONSTANT>")]
    wanted += [("four", name, ()) for name in ("pad", "warp_points", "warp_filtered")]
    for b in ("CONSTANT", "REPLICATE"):
        wanted += [("four", f"warp_four<{b}>", ()), ("words", f"warp_words<{b}>", ())]
    wanted += [("words", "warp_words<CONSTANT>", (("BY_BITS", 0),))]

    def one(it):
        ct.Kernel(f"{warp.FOLDER}/{it[0]}.cu", it[1], dict(it[2]), load=False)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(one, wanted))


def picture(height, width):
    return RNG.integers(0, 251, (height, width, 3), np.uint8)


def fresh(shape):
    """An output whose poison no value between those of a picture is."""
    out = ct.empty(shape, np.uint8)
    ct.poison(out, 251)
    return out


def judged(name, out, values, near=reference.NEAR):
    ct.check(out, reference.rounded(values, out.get(), near), name)


def padded(image):
    x = ct.to_device(image)
    height, width, _ = image.shape
    pixels = ct.to_device(np.full((height, warp.pitch_of(width), 4), 99, np.uint8))
    warp.pad(x, pixels)()
    wanted = np.full(pixels.shape, 99, np.uint8)
    wanted[:, :width, :3], wanted[:, :width, 3] = image, 255
    ct.check(pixels, wanted, f"pad {height} x {width}")
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
        x = ct.to_device(image)
        pixels = None
        try:
            pixels = padded(image)
        except Exception:
            traceback.print_exc()
        for to in (size, (1, 1), (9, 14), (40, 67)):
            for name, matrix in matrices(*size):
                label = f"{name} {size} to {to}"
                for border in BORDERS:
                    number = BORDERS.index(border)
                    for how, taps in warp.TAPS.items():

                        def plain():
                            out = fresh((*to, 3))
                            warp.warp(x, out, matrix, how, border, 77)()
                            judged(
                                f"{how} {border} {label}",
                                out,
                                reference.warp(image, matrix, *to, taps, number, 77),
                            )

                        attempt(label, plain)
                    if number > 1:
                        continue
                    values = reference.warp(image, matrix, *to, 2, number, 77)

                    def words():
                        out = fresh((*to, 3))
                        warp.warp(x, out, matrix, "linear", border, 77, "words")()
                        judged(f"words {border} {label}", out, values)

                    def four():
                        out = fresh((*to, 4))
                        warp.four(pixels, size[1], out, matrix, border, 77)()
                        got = out.get()
                        ct.check(
                            out,
                            np.dstack([reference.rounded(values, got[..., :3]), got[..., 3]]),
                            f"four {border} {label}",
                        )

                    zero = reference.warp(image, matrix, *to, 2, number, 0)

                    def texture(filtered, array):
                        out = fresh((*to, 4))
                        warp.by_texture(pixels, size[1], out, matrix, filtered, border, array)()
                        # Filtered: both weights are multiples of 1/256, off by 1/512 at most, or 1/256 if cut off: two levels.
                        got, near = out.get(), 2.0 if filtered else reference.NEAR
                        ct.check(
                            out,
                            np.dstack([reference.rounded(zero, got[..., :3], near), got[..., 3]]),
                            f"texture {filtered} {array} {border} {label}",
                        )

                    attempt(label, words)
                    attempt(label, four)
                    for filtered in (False, True):
                        for array in (False, True):
                            attempt(
                                f"texture {filtered} {array} {border} {label}",
                                lambda: texture(filtered, array),
                            )

                def sent():
                    out = ct.to_device(np.zeros((*to, 3), np.uint8))
                    warp.forward(ct.to_device(np.full_like(image, 200)), out, matrix)()
                    off = (
                        (out.get()[..., 0] == 200) != reference.forward(image, matrix, *to)
                    ).sum()
                    if off > 0.02 * to[0] * to[1]:
                        print(f"note: forward {label}: {off} pixels differ (ties in fp32)")

                attempt(label, sent)
        if time.time() - START > 35:
            print("checks cut short behind", size)
            break


def differences(image, degrees):
    height, width, _ = image.shape
    matrix = rotation(degrees, height, width, 0.9)
    values = reference.warp(image, matrix, height, width)
    ground = np.rint(values).astype(int)

    def tell(name, found):
        off = np.abs(found.astype(int) - ground)
        print(
            f"  {name}: differs in {(off > 0).mean():.4f} of the values, at most by {off.max()}, mean {off.mean():.4f}"
        )

    x, out = ct.to_device(image), ct.empty(image.shape, np.uint8)
    for way in ("plain", "float", "words"):
        warp.warp(x, out, matrix, way=way)()
        tell(way, out.get())
    pixels, quads = padded(image), ct.empty((height, width, 4), np.uint8)
    warp.by_texture(pixels, width, quads, matrix, filtered=True)()
    tell("filtered texture", quads.get()[..., :3])
    try:
        import cv2

        tell(
            "OpenCV warpAffine",
            cv2.warpAffine(image, matrix, (width, height), flags=cv2.INTER_LINEAR),
        )
        cubic = np.rint(reference.warp(image, matrix, height, width, 4).clip(0, 255)).astype(int)
        off = np.abs(
            cv2.warpAffine(image, matrix, (width, height), flags=cv2.INTER_CUBIC).astype(int)
            - cubic
        )
        print(f"  OpenCV, cubic: at most {off.max()}, mean {off.mean():.4f}")
        print("  OpenCV", cv2.__version__)
    except Exception:
        traceback.print_exc()
    try:
        run, result = torch_warp(image, matrix)
        run()
        got = result().float().round().clamp(0, 255)[0].movedim(0, -1).cpu().numpy()
        tell("PyTorch affine_grid and grid_sample", got)
        import torch
        from torchvision.transforms.v2 import functional as tv

        chw = torch.as_tensor(image).cuda().movedim(-1, 0)
        turned = tv.rotate(chw, degrees, interpolation=tv.InterpolationMode.BILINEAR)
        same = np.rint(
            reference.warp(image, rotation(degrees, height, width), height, width)
        ).astype(int)
        off = np.abs(turned.movedim(0, -1).cpu().numpy().astype(int) - same)
        print(
            f"  torchvision rotate: differs in {(off > 0).mean():.4f}, at most by {off.max()}, mean {off.mean():.4f}"
        )
    except Exception:
        traceback.print_exc()


def torch_warp(image, matrix):
    """The same map for grid_sample: coordinates from -1 to 1 between the edges. Its grid is made once, outside of what is timed."""
    import torch

    height, width, _ = image.shape
    back = np.array([[float(v) for v in row] for row in reference.inverted(matrix)])
    y, x = np.mgrid[:height, :width].astype("float64")
    column, row = (a * x + b * y + c for a, b, c in back)
    grid = np.stack([(2 * column + 1) / width - 1, (2 * row + 1) / height - 1], -1).astype(
        "float32"
    )
    grid = torch.as_tensor(grid).cuda()[None]
    planes = torch.as_tensor(image).cuda().movedim(-1, 0)[None].float().contiguous()
    kept = {}

    def run():
        kept["out"] = torch.nn.functional.grid_sample(
            planes, grid, mode="bilinear", padding_mode="zeros", align_corners=False
        )

    return run, lambda: kept["out"]


def contest(height, width, degrees):
    image = picture(height, width)
    matrix = rotation(degrees, height, width)
    x, out = ct.to_device(image), ct.empty(image.shape, np.uint8)
    pixels, quads = padded(image), ct.empty((height, width, 4), np.uint8)
    three, four = 2 * image.nbytes, 2 * height * width * 4
    runs, moved = {}, {}

    def put(name, run, nbytes=three):
        runs[name], moved[name] = run, nbytes

    for block in BLOCKS:
        put(f"plain {block}", warp.warp(x, out, matrix, block=block))
        put(f"words {block}", warp.warp(x, out, matrix, way="words", block=block))
        put(f"four {block}", warp.four(pixels, width, quads, matrix, block=block), four)
    put("float", warp.warp(x, out, matrix, way="float"))
    put("nearest", warp.warp(x, out, matrix, "nearest"))
    put("cubic", warp.warp(x, out, matrix, "cubic"))
    put("words, converted", warp.warp(x, out, matrix, way="words", BY_BITS=0))
    for block in ((16, 16), (32, 8), (8, 32)):
        for filtered in (False, True):
            for array in (False, True):
                name = f"{'filtered' if filtered else 'points'} {'array' if array else 'pitch'} {block}"
                try:
                    put(
                        name,
                        warp.by_texture(
                            pixels, width, quads, matrix, filtered, array=array, block=block
                        ),
                        four,
                    )
                except Exception:
                    traceback.print_exc()
    put("pad", warp.pad(x, pixels), image.nbytes + height * width * 4)
    try:
        import torch

        a = torch.randint(0, 255, (image.nbytes,), dtype=torch.uint8, device="cuda")
        b = torch.empty_like(a)
        put("copy", lambda: b.copy_(a))
        put("grid_sample, fp32, grid given", torch_warp(image, matrix)[0])
    except Exception:
        traceback.print_exc()
    # At 45 degrees a part of the image is not needed and a part of the output is border: bytes count alike for all.
    found = ct.bench(runs, bytes=moved, name=f"{height} x {width}, {degrees} degrees", rounds=8)
    plain = [name for name in runs if name.startswith(("plain", "words"))]
    best = min(plain, key=lambda one: found[one].median_us)
    for other in ("copy", "grid_sample, fp32, grid given"):
        if other in runs:
            print(f"BEST of three bytes, {best}: {found.ratio(best, other).median:.3f} x {other}")


if __name__ == "__main__":
    compile_all()
    print(f"compiled after {time.time() - START:.1f} s", flush=True)
    checks()
    print(f"checked after {time.time() - START:.1f} s, failed: {failed}", flush=True)
    for size, degrees in (((480, 640), 17), ((1080, 1920), 45)):
        print("differences", size, degrees)
        attempt("differences", lambda: differences(picture(*size), degrees))
    for degrees in (0, 90, 30):
        if time.time() - START < LIMIT - 12:
            attempt(("contest", degrees), lambda: contest(4320, 7680, degrees))
    print(f"done after {time.time() - START:.1f} s, failed: {failed}")
