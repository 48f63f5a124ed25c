"""The launchers of examples/images/implicit_gemm with kernels that run on a CPU: their own text in random interleavings, with the
machine of tests/tensor/hopper_on_cpu. Launchers decide about grids, parts, tables and tensor maps as ever."""

import re
import tempfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import emulator
import numpy as np

import cudatut as ct
from cudatut.book.images.implicit_gemm import im2col, launch

HERE = Path(__file__).parent
SMS = 3  # few, so that blocks have several tiles
# Words of CUDA that the machine lacks; numbers of blocks and threads on three axes.
WORDS = """
namespace machine {
struct Numbers { int x, y, z; };
inline Numbers at_block;
inline int wide = 1 << 20;
}
struct int4 { int x, y, z, w; };
struct uint2 { unsigned x, y; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
#define blockIdx machine::at_block
#define blockDim (machine::Numbers{machine::wide, 1, 1})
#define threadIdx (machine::Numbers{machine::self->index % machine::wide, machine::self->index / machine::wide, 0})
"""


def in_words(text: str) -> str:
    text = text.replace(
        "extern __shared__ float4 shared[];",
        "float4* const shared = (float4*)machine::dynamic_shared(16);",
    )
    text = text.replace(
        "extern __shared__ __align__(128) float tiles[];",
        "float* const tiles = (float*)machine::dynamic_shared(128);",
    )
    text = text.replace("  int number;\n", "  unsigned number;\n")
    return WORDS + re.sub(r"(?<!extern )__shared__ __align__\(\d+\) ", "__shared__ ", text)


class Array(np.ndarray):
    """Memory that a kernel may get."""

    address = property(lambda self: self)
    __array_priority__ = 1

    def __int__(self):
        return 0


def array(values):
    return np.array(values, order="C").view(Array)


class Tensor:
    """A tensor map: the array, and the numbers of the program."""

    def __init__(self, of, box, swizzle, windows=(0,) * 7):
        sizes = of.shape[::-1]
        pitches = [int(np.prod(of.shape[axis + 1 :])) for axis in range(of.ndim)][::-1]
        span = swizzle or 128
        self.of = of.base if isinstance(of.base, Array) else of
        self.numbers = (
            of.itemsize, of.ndim, *sizes, *box[::-1], *pitches, bool(swizzle), span, *windows
        )  # fmt: skip


class Kernels:
    """In place of `launch.kernel`. change: of the text of all kernels."""

    def __init__(self, change=lambda text: text, seed=1):
        self.change, self.seed = change, seed
        self.program = cache(self.program)

    def program(self, source, name):
        folder = Path(tempfile.mkdtemp(prefix="convolution"))
        return emulator.built(
            folder,
            HERE / "convolutions.cpp",
            f"{launch.FOLDER}/{source}",
            lambda text: in_words(self.change(text)),
            NAME=name,
        )

    def __call__(self, source, name, arch=None):
        return Launch(self, source, name)


class Launch:
    def __init__(self, kernels, source, name):
        self.kernels, self.source, self.name = kernels, source, name

    def __call__(self, *given, grid, block, shared=0):
        # Arrays of maps come as arguments of their own behind the kernel's.
        further = [one.of for one in given if isinstance(one, Tensor)]
        data, arrays, maps = [], [], 0
        for one in (*given, *further):
            if isinstance(one, Tensor):
                data.append(
                    np.array([ord("m"), len(given) + maps, *one.numbers], "int64").tobytes()
                )
                maps += 1
                continue
            if isinstance(one, np.ndarray):
                arrays.append(one)
            elif isinstance(one, int):
                one = np.int32(one)
            bytes_ = one if isinstance(one, bytes) else one.tobytes()
            kind = ord("a") if isinstance(one, np.ndarray) else ord("b")
            data.append(np.array([kind, len(bytes_)], "int64").tobytes() + bytes_)
        head = np.array([len(data)], "int64").tobytes()
        whole = [(*(n if isinstance(n, tuple) else (n,)), 1, 1, 1) for n in (grid, block)]
        out, bad = emulator.ended(
            self.kernels.program(self.source, self.name),
            (*whole[0][:3], *whole[1][:2], self.kernels.seed),
            head + b"".join(data),
        )
        if bad:
            raise AssertionError(bad)
        for one in arrays:
            one.reshape(-1).view("uint8")[:] = np.frombuffer(out[: one.nbytes], "uint8")
            out = out[one.nbytes :]
        assert not out


def im2col_map(images, shape, pixels, channels):
    assert im2col.refused(shape) is None
    lower, upper = im2col.corners(shape)
    windows = *lower[::-1], *upper[::-1], *shape.stride[::-1], pixels
    return Tensor(images, (1, 1, 1, channels), 2 * channels, windows)


def on_cpu(monkeypatch, kernels):
    """Launchers then take arrays of `array`, and launch these kernels."""
    device = SimpleNamespace(sm_count=SMS, arch="sm_90")
    fake = SimpleNamespace(
        cdiv=ct.cdiv,
        device=lambda: device,
        to_device=array,
        empty=lambda shape, dtype: array(np.full(shape, np.nan, dtype)),
        tensor_map=lambda of, box, swizzle=None: Tensor(of, box, swizzle),
    )
    monkeypatch.setattr(launch, "ct", fake)
    monkeypatch.setattr(launch, "kernel", kernels)
    monkeypatch.setattr(
        launch,
        "_taken",
        lambda launcher, shape, x, w, y, *rest: (shape.check(launcher), (x, w, y))[1],
    )
    monkeypatch.setattr(launch.im2col, "im2col_map", im2col_map)
