"""The kernels of examples/images/warp by g++, launched by their launchers: sizes, borders and blocks against NumPy, and planted faults.

Each launcher's arrays are NumPy's; a thread runs after the other (warp_on_cpu.cpp). Textures weigh exactly here.
"""

import ctypes
from functools import cache, partial
from pathlib import Path

import gpp
import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.warp import reference, warp
from cudatut.book.images.warp.reference import BORDERS, rotation

HERE = Path(__file__).parent
FOLDER = ct.paths.examples_dir() / "images/warp"
SHAPES = [((1, 1), (3, 4)), ((1, 2), (1, 1)), ((3, 3), (9, 14)), ((7, 5), (20, 36)), ((31, 33), (31, 33))]  # fmt: skip
BLOCK = (8, 4)


class Argument(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_longlong), ("integer", ctypes.c_longlong),
        ("number", ctypes.c_double), ("bytes", ctypes.c_void_p),
    ]  # fmt: skip


class Kernel:
    """A kernel of a .cu file, as the launchers call it."""

    def __init__(self, source, name, defines=None):
        self.name, path = name, Path(source)
        macros = [f"-D{key}={value}" for key, value in (defines or {}).items()]
        places = (f'-DFILE="{path}"', f"-DKERNEL={name}", *macros)
        flags = ("-O1", "-std=c++17", "-shared", "-fPIC")
        made = gpp.compiled(HERE / "warp_on_cpu.cpp", *flags, places=places)
        self.run = ctypes.CDLL(str(made)).run

    def __call__(self, *arguments, grid, block, shared=0, stream=None):
        given, kept = (Argument * len(arguments))(), []
        for one, value in zip(given, arguments):
            if isinstance(value, np.void):
                kept.append(ctypes.create_string_buffer(value.tobytes()))
                one.bytes = ctypes.addressof(kept[-1])
            elif isinstance(value, float):
                one.kind, one.number = 1, value
            else:
                one.integer = int(value)
        assert self.run(given, len(arguments), *grid[:2], *block[:2]) == 0, "arguments"


class Array:
    """uint8 in the host's memory, as if the GPU had it; around it are bytes that nobody may write."""

    def __init__(self, host):
        self.all = np.full(host.nbytes + 1024, 0xAB, "uint8")
        start = -self.all.ctypes.data % 256 + 256
        self.host = self.all[start : start + host.nbytes].reshape(host.shape)
        self.host[...] = host
        self.shape, self.dtype, self.start = host.shape, host.dtype, start
        self.__cuda_array_interface__ = {
            "shape": host.shape, "typestr": "|u1", "version": 3, "strides": None,
            "data": (self.host.ctypes.data, False),
        }  # fmt: skip

    def untouched(self):
        end = self.start + self.host.size
        return bool((self.all[: self.start] == 0xAB).all() and (self.all[end:] == 0xAB).all())


class Image(ctypes.Structure):
    _fields_ = [
        ("pixels", ctypes.c_void_p), ("pitch", ctypes.c_longlong),
        ("height", ctypes.c_int), ("width", ctypes.c_int), ("clamp", ctypes.c_int),
    ]  # fmt: skip


class Texture:
    def __init__(self, pixels, width, filtered, border, array, gather):
        height, pitch, _ = pixels.shape
        self.image = Image(pixels.host.ctypes.data, pitch, height, width, not border)
        self.handle = np.uint64(ctypes.addressof(self.image))


@cache
def kernel(source, name, defines=()):
    return Kernel(FOLDER / f"{source}.cu", name, dict(defines))


@pytest.fixture(autouse=True)
def by_cpu(monkeypatch):
    monkeypatch.setattr(warp, "kernel", kernel)
    monkeypatch.setattr(warp, "Texture", Texture)
    monkeypatch.setattr("cudatut.gpu.operands._several_gpus", lambda: False)


def picture(height, width):
    return np.random.default_rng(height).integers(0, 256, (height, width, 3), "uint8")


def matrices(height, width):
    return [
        [[1, 0, 0], [0, 1, 0]],
        [[1, 0, -1.25], [0, 1, 0.75]],
        rotation(30, height, width, 0.8),
        rotation(90, height, width),
        [[1.5, 0.4, -3], [-0.2, 0.3, 5]],
        [[1, 0, 5000], [0, 1, 0]],
    ]


def wrong(make, values, channels=3, near=reference.NEAR):
    """How many values of what a launcher writes are not those of the reference."""
    out = Array(np.full((*values.shape[:2], channels), 7, "uint8"))
    make(out)()
    assert out.untouched()
    got = out.host[..., :3]
    return int((reference.rounded(values, got, near) != got).sum())


def everywhere(call, taps, border, value=77, channels=3, near=reference.NEAR):
    for shape, to in SHAPES:
        image = picture(*shape)
        x = Array(image)
        for m in matrices(*shape):
            values = reference.warp(image, m, *to, taps, border, value)
            made = partial(call, x, m=m)
            assert wrong(made, values, channels, near) == 0, (shape, to, m)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("border", range(4))
@pytest.mark.parametrize("how", warp.TAPS)
def test_plain_loads_at_every_border(how, border):
    def call(x, out, m):
        return warp.warp(x, out, m, how, BORDERS[border], 77, block=BLOCK)

    everywhere(call, warp.TAPS[how], border)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("border", range(2))
@pytest.mark.parametrize(
    "way, plan", [("words", {}), ("packed", {}), ("packed", {"ROWS": 1}), ("packed", {"ROWS": 4}), ("packed", {"WEIGHTS": 1}), ("tile", {}), ("tile", {"HIGH": 16}), ("tile", {"WEIGHTS": 1}), ("tile", {"DOTS": 1}), ("tile", {"DOTS": 2})]
)  # fmt: skip
def test_words(way, plan, border):
    def call(x, out, m):
        return warp.warp(x, out, m, "linear", BORDERS[border], 77, way, BLOCK, **plan)

    everywhere(call, 2, border, near=0.02 if "WEIGHTS" in plan else reference.NEAR)


@pytest.mark.parametrize("block", [(4, 8), (32, 1), (8, 16), (12, 8)])
def test_lanes_exchange_pixels_in_blocks_of_any_shape(block):
    image, m = picture(31, 33), rotation(30, 31, 33)
    values = reference.warp(image, m, 30, 45)
    x = Array(image)
    assert wrong(lambda out: warp.warp(x, out, m, way="packed", block=block), values) == 0


@pytest.mark.parametrize("block", [(6, 16), (8, 3), (4, 4)])
def test_blocks_without_whole_warps_are_refused(block):
    x, out = Array(picture(4, 4)), Array(picture(4, 4))
    with pytest.raises(ValueError, match="block"):
        warp.warp(x, out, [[1, 0, 0], [0, 1, 0]], way="packed", block=block)


def fourth(x):
    height, width, _ = x.shape
    out = Array(np.full((height, warp.pitch_of(width), 4), 99, "uint8"))
    warp.pad(x, out)()
    return out


def test_pad():
    for shape, _ in SHAPES:
        image = picture(*shape)
        found = fourth(Array(image)).host
        assert (found[:, : shape[1], :3] == image).all() and (found[:, : shape[1], 3] == 255).all()
        assert (found[:, shape[1] :] == 99).all()


@pytest.mark.parametrize("border", range(2))
def test_four_bytes_and_textures(border):
    edge = BORDERS[border]

    def four(x, out, m):
        return warp.four(fourth(x), x.shape[1], out, m, edge, 77, BLOCK)

    def points(x, out, m):
        return warp.by_texture(fourth(x), x.shape[1], out, m, False, edge, block=BLOCK)

    def filtered(x, out, m):
        return warp.by_texture(fourth(x), x.shape[1], out, m, True, edge, block=BLOCK)

    def gathered(x, out, m):
        return warp.by_texture(fourth(x), x.shape[1], out, m, False, edge, block=BLOCK, gather=True)

    everywhere(four, 2, border, channels=4)
    everywhere(gathered, 2, border, value=0, channels=3)
    everywhere(points, 2, border, value=0, channels=4)
    # fp32 positions of the texture's unit
    everywhere(filtered, 2, border, value=0, channels=4, near=0.01)
    everywhere(filtered, 2, border, value=0, channels=3, near=0.01)


FAULTS = {
    "a neighbor too far": ("packed.cuh", "pixel, 1);", "pixel, 2);"),
    "words begin elsewhere": ("packed.cuh", "k == 1 ? 0x5421", "k == 1 ? 0x4321"),
    "the last pixels of a row": ("packed.cuh", "x - x % 4 + 3 < out_width", "x - x % 4 + 2 < out_width"),
    "a row too many": ("packed.cu", "top < height - 2", "top < height"),
    "a column too many": ("packed.cu", "left < width - 1", "left < width"),
    "rows of a thread": ("packed.cu", "first_row + k * down_by", "first_row + k * over"),
    "a tile's last column": ("tile.cu", "across * (WIDE - 1)", "across * (WIDE - 2)"),
    "a tile's rows": ("tile.cu", "down * (HIGH - 1)", "down * (HIGH - 9)"),
    "a tile beyond the border": ("tile.cu", "left + columns <= width", "left < width"),
    "rows in shared memory": ("tile.cu", "six(w + pitch, byte)", "six(w + pitch + 1, byte)"),
    "the next rows of a thread": ("tile.cu", "row += WARPS * m.e", "row += WARPS * m.b"),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_noticed(fault, monkeypatch, tmp_path):
    file, right, bad = FAULTS[fault]
    for name in ("packed.cuh", "packed.cu", "tile.cu"):
        text = (FOLDER / name).read_text(encoding="utf-8")
        for header in ("map.cuh", "sample.cuh"):
            text = text.replace(f'"{header}"', f'"{FOLDER / header}"')
        text = text.replace('"../resize/words.cuh"', f'"{FOLDER.parent / "resize/words.cuh"}"')
        if name == file:
            assert text.count(right) == 1
            text = text.replace(right, bad)
        (tmp_path / name).write_text(text, encoding="utf-8")
    way = "tile" if file == "tile.cu" else "packed"
    faulty = Kernel(tmp_path / f"{way}.cu", f"warp_{way}<REPLICATE>")
    monkeypatch.setattr(warp, "kernel", lambda source, name, macros=(): faulty)
    found = 0
    for to in ((29, 31), (64, 70)):
        image = picture(61, 63)
        x = Array(image)
        for m in (
            rotation(30, 61, 63, 0.9),
            rotation(170, 61, 63, 1.2),
            [[1, 0, 0.5], [0, 1, 0.5]],
        ):
            values = reference.warp(image, m, *to, 2, 1)
            out = Array(np.full((*to, 3), 7, "uint8"))
            warp.warp(x, out, m, border="replicate", way=way, block=BLOCK)()
            found += not out.untouched()
            found += int((reference.rounded(values, out.host) != out.host).sum())
    assert found


def test_a_tile_that_shared_memory_has_no_room_for_is_refused():
    x, out = Array(picture(4, 4)), Array(picture(4, 4))
    with pytest.raises(ValueError, match="packed"):
        warp.warp(x, out, [[0.1, 0, 0], [0, 0.1, 0]], way="tile")
