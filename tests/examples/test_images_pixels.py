"""examples/images/pixels without a GPU: every kernel on a CPU, ragged sizes, planted faults, and what launchers say of their grids."""

import ctypes
from pathlib import Path

import gpp
import numpy as np
import pytest

from cudatut import paths

HERE = Path(__file__).resolve().parent
SOURCE = paths.examples_dir() / "images/pixels/pixels.cu"
SIZES = [(1, 1), (1, 2), (1, 3), (1, 5), (7, 1), (4, 4), (5, 13), (9, 65), (33, 31)]
OVER = "{}((unsigned char*)out, (const unsigned char*)image, of[0], of[1])"
CALLS = {  # the call, pixels of a thread, the result
    "swap_channels": (OVER.format("swap_channels"), 0, "swap"),
    "swap_turned": (OVER.format("swap_turned"), 0, "swap"),
    "to_chw": (OVER.format("to_chw"), 0, "planes"),
    "swap_four": ("swap_four((unsigned*)out, (const unsigned*)image, of[2])", 4, "swap"),
    "to_chw_four": ("to_chw_four((unsigned char*)out, (const unsigned*)image, of[2])", 4, "planes"),
    "swap_sixteen": ("swap_sixteen((uint4*)out, (const uint4*)image, of[2])", 16, "swap"),
}


def picture(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype="uint8")


def library(call, folder, change=lambda text: text):
    header = folder / "kernels.h"
    header.write_text(change(SOURCE.read_text()).replace('extern "C"', "static"))
    flags = ("-O1", "-std=c++20", "-shared", "-fPIC", f"-DCALL={call}")
    made = gpp.compiled(HERE / "images_on_cpu.cpp", *flags, places=(f'-DKERNELS="{header}"',))
    return ctypes.CDLL(str(made)).run


def done(run, each, image, turned=False):
    """What the kernel writes, and 32 bytes behind it, which it should leave alone. each: pixels of a thread, 0 for a grid over
    the image, or -1 for a thread for each byte."""
    height, width, _ = image.shape
    out = np.full(image.size + 32, 77, "uint8")
    if each:
        threads = image.size if each < 0 else -(-height * width // each)
        grid, block = (-(-threads // 256), 1), (256, 1)
    else:
        across, down = (height, width) if turned else (width, height)
        grid, block = (-(-across // 32), -(-down // 8)), (32, 8)
    numbers = (ctypes.c_int * 3)(height, width, height * width)
    run(out.ctypes, np.ascontiguousarray(image).ctypes, *grid, *block, numbers)
    return out[: image.size], out[image.size :]


def expected(image, what):
    return image[:, :, ::-1] if what == "swap" else image.transpose(2, 0, 1)


@pytest.mark.parametrize("name", CALLS)
def test_every_kernel_on_ragged_sizes(name, tmp_path):
    call, each, what = CALLS[name]
    run = library(call, tmp_path)
    for size in SIZES:
        image = picture(*size)
        got, behind = done(run, each, image, name == "swap_turned")
        assert np.array_equal(got, expected(image, what).reshape(-1)), size
        assert (behind == 77).all(), size


FAULTS = {
    "swap_channels": ("2 - c", "c"),
    "to_chw": ("(long long)c * height + y", "(long long)c * width + y"),
    "swap_four": ("0x7034", "0x7043"),
    "to_chw_four": ("0x7410", "0x7510"),
    "swap_sixteen": ("{t.b, t.c, u.a, u.b}", "{t.c, t.b, u.a, u.b}"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_noticed(name, tmp_path):
    before, after = FAULTS[name]
    call, each, what = CALLS[name]

    def change(text):
        assert before in text
        return text.replace(before, after)

    image = picture(33, 32)
    got, _ = done(library(call, tmp_path, change), each, image)
    assert not np.array_equal(got, expected(image, what).reshape(-1))


@pytest.mark.parametrize("keep", [0, 1])
def test_a_byte_keeps_its_last_eight_bits_or_stays_at_255(keep, tmp_path):
    call = f"brighter((unsigned char*)out, (const unsigned char*)image, 3 * of[2], 80, {keep})"
    image = np.arange(256, dtype="uint8").repeat(3).reshape(16, 16, 3)
    got, behind = done(library(call, tmp_path), -1, image)
    light = image.reshape(-1).astype(int) + 80
    assert np.array_equal(got, np.minimum(light, 255) if keep else light % 256)
    assert (behind == 77).all()
