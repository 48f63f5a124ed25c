"""Try-out of the chapter cutlass_conv: what does CUTLASS do with a stride of 9, which its check lets pass and the TMA's im2col mode does
not have? In a process of its own, since the launch may fail. Some 15 s where the library is kept, 50 where it is compiled.

Expected: cuTensorMapEncodeIm2col refuses the map, CUTLASS prints that and goes on (NDEBUG); the launch then fails (illegal instruction or
address), or the results are wrong. Stride 8 is right. If it is an error, the page says that whoever calls has to look at the stride.

    PYTHONPATH=. python tools/tries/images_cutlass_conv.py
"""

import time

import cudatut as ct
from cudatut.book.images.cutlass_conv import conv

START = time.time()
CODE = """
import numpy as np
import cudatut as ct
from cudatut.book.images.cutlass_conv import conv
from cudatut.book.images.implicit_gemm.shapes import Shape, reference
from cudatut.book.numbers.bf16 import to_bf16, to_float
shape = Shape(1, 64, 99, 99, 64, (3, 3), (STRIDE, STRIDE))
x = to_bf16(ct.rng(1).standard_normal((1, 99, 99, 64), dtype="float32"))
w = to_bf16(ct.rng(2).standard_normal((64, 3, 3, 64), dtype="float32"))
y = ct.empty((1, *shape.out, 64), "uint16")
run = conv.Made(conv.Tile(128, 128, 64, 1, 1), shape, ct.to_device(x), ct.to_device(w), y)
print("made", flush=True)
run()
ct.synchronize()
exact = reference(shape, *(to_float(one).transpose(0, 3, 1, 2) for one in (x, w))).transpose(0, 2, 3, 1)
print("largest error", float(np.nanmax(np.abs(to_float(y.get()) - exact))), "of", float(np.abs(exact).max()))
"""

if __name__ == "__main__":
    conv.libraries((conv.Tile(128, 128, 64, 1, 1),))
    print(f"compiled after {time.time() - START:.0f} s", conv.report(conv.Tile(128, 128, 64, 1, 1)), flush=True)
    for stride in (8, 9):
        try:
            print(stride, ct.isolated(CODE.replace("STRIDE", str(stride)), timeout_s=25), flush=True)
        except Exception as error:
            print(stride, "FAILED", type(error).__name__, str(error)[:1500], flush=True)
    print(f"done after {time.time() - START:.0f} s")
