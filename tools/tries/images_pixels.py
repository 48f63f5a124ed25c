"""Try-out of images/pixels on the GPU: right on ragged sizes, then times. Run from the root of a checkout. Ran on 2026-11-30, all right.

Predicted, H200, 4320 x 7680 (199 MB in and out; a copy took 47 us):
  swap_turned    a warp's store touches 32 sectors instead of 3: 10.7 times the sectors, so some 10 times as long as swap_channels
  to_chw_four    as swap_four, 0.95 of the copy: stores of words side by side, loads at a stride of 12 bytes
  swap_sixteen   a quarter of the instructions, but memory was the limit of swap_four already: within 3 % of it; less at 1080 x 1920
                 (129,600 threads are 3.8 blocks of 256 on each SM)
"""

import traceback

import numpy as np

import cudatut as ct
from cudatut.book.images.pixels import launch

RNG = np.random.default_rng(35)
KERNELS = {
    "swap_channels": (launch.swap_channels, lambda a: a[:, :, ::-1]),
    "swap_turned": (launch.swap_turned, lambda a: a[:, :, ::-1]),
    "to_chw": (launch.to_chw, lambda a: a.transpose(2, 0, 1)),
    "swap_four": (launch.swap_four, lambda a: a[:, :, ::-1]),
    "to_chw_four": (launch.to_chw_four, lambda a: a.transpose(2, 0, 1)),
    "swap_sixteen": (launch.swap_sixteen, lambda a: a[:, :, ::-1]),
}
SIZES = [(1, 1), (1, 2), (1, 3), (1, 5), (7, 1), (33, 31), (9, 65), (257, 1023), (1080, 1920)]

launch.compile_ahead()
failed = 0
for height, width in SIZES:
    image = RNG.integers(0, 256, (height, width, 3), np.uint8)
    for name, (launcher, reference) in KERNELS.items():
        try:
            wanted = np.ascontiguousarray(reference(image))
            x, out = ct.to_device(image), ct.empty(wanted.shape, np.uint8)
            launcher(x, out)()
            ct.synchronize()
            assert np.array_equal(out.get(), wanted), "wrong"
        except Exception:
            failed += 1
            print("FAILED", name, height, width)
            traceback.print_exc()
print("failed:", failed)

for height, width in [(1080, 1920), (2160, 3840), (4320, 7680)]:
    image = RNG.integers(0, 256, (height, width, 3), np.uint8)
    x = ct.to_device(image)
    outs = {k: ct.empty(r(image).shape, np.uint8) for k, (_, r) in KERNELS.items()}
    runs = {name: launch_it(x, outs[name]) for name, (launch_it, _) in KERNELS.items()}
    try:
        import cv2
        import torch

        a = torch.as_tensor(x, device="cuda")
        b, planes = (
            torch.empty_like(a),
            torch.empty(3, height, width, dtype=torch.uint8, device="cuda"),
        )
        runs["copy"] = lambda a=a, b=b: b.copy_(a)
        runs["PyTorch, flip"] = lambda a=a: a.flip(-1)
        runs["PyTorch, CHW"] = lambda a=a, p=planes: p.copy_(a.movedim(-1, 0))
        print("OpenCV", cv2.__version__)
    except Exception as error:
        print(error)
    ct.bench(runs, bytes=2 * image.nbytes, name=f"{height} x {width}")
