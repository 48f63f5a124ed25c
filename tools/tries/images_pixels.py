"""Try-out of images/pixels on the GPU: right on ragged sizes, then times. Run from the root of a checkout.

Predicted, H200: one byte per access keeps many requests under way for few bytes, so swap_channels and to_chw reach some half
of the copy; swap_four, whose loads are 4 bytes at a stride of 12, 0.8 of it and more.
"""

import traceback

import numpy as np

import cudatut as ct
from cudatut.book.images.pixels import launch

RNG = np.random.default_rng(35)
KERNELS = {
    "swap_channels": (launch.swap_channels, lambda a: a[:, :, ::-1]),
    "to_chw": (launch.to_chw, lambda a: a.transpose(2, 0, 1)),
    "swap_four": (launch.swap_four, lambda a: a[:, :, ::-1]),
}
SIZES = [(1, 1), (1, 2), (1, 3), (1, 5), (7, 1), (33, 31), (9, 65), (257, 1023), (1080, 1920)]

failed = 0
for height, width in SIZES:
    image = RNG.integers(0, 256, (height, width, 3), np.uint8)
    for name, (launcher, reference) in KERNELS.items():
        try:
            wanted = np.ascontiguousarray(reference(image))
            x, out = ct.to_device(image), ct.empty(wanted.shape, np.uint8)
            launcher(x, out)()
            ct.synchronize()
            ct.check(out, wanted, f"{name} {height} x {width}", atol=0, rtol=0)
        except Exception:
            failed += 1
            print("FAILED", name, height, width)
            traceback.print_exc()
print("failed:", failed)

for height, width in [(1080, 1920), (4320, 7680)]:
    image = RNG.integers(0, 256, (height, width, 3), np.uint8)
    x = ct.to_device(image)
    outs = {k: ct.empty(r(image).shape, np.uint8) for k, (_, r) in KERNELS.items()}
    runs = {name: launch_it(x, outs[name]) for name, (launch_it, _) in KERNELS.items()}
    try:
        import cupy

        a, b = cupy.asarray(x), cupy.empty(x.shape, cupy.uint8)
        runs["CuPy copy"] = lambda a=a, b=b: cupy.copyto(b, a)
        runs["CuPy [..., ::-1]"] = lambda a=a, b=b: cupy.copyto(b, a[:, :, ::-1])
    except ImportError as error:
        print(error)
    ct.bench(runs, bytes=2 * image.nbytes, name=f"{height} x {width}")
