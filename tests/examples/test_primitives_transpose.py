"""examples/primitives/transpose without a GPU: the kernels on a CPU, the count of passes, the order of the tiles, what
launchers refuse."""

import itertools
import subprocess
from pathlib import Path

import gpp
import numpy as np
import pytest

import cudatut as ct
from cudatut import paths
from cudatut.book.primitives.transpose import launch, model

HERE = Path(__file__).resolve().parent
FOLDER = paths.examples_dir() / "primitives/transpose"
SHAPES = ((1, 1), (31, 33), (1, 129), (120, 32), (121, 33), (130, 70))
SIZES = "in, out, rows, columns, from, to"


def tiles(high, wide):
    return f"((rows + {high - 1}) / {high}) * ((columns + {wide - 1}) / {wide})"


def banded(name, high, wide, threads, elements="float", read=None, span=0):
    """The launch of a kernel whose blocks take tiles in bands."""
    up = f"((rows + {span + high - 1 - bool(span)}) / {high})"
    across = f"((columns + {wide - 1}) / {wide})"
    kernel = f"{name}<{elements},{read or high},{wide},{threads}{',' + str(span) if span else ''}"
    kernel += ",0>" if name == "transpose_vectors" else ">"
    return f"launch({up} * {across}, {threads}, 1, [=] {{ {kernel}({SIZES}, min(group, {up})); }})"


def by_two(name, high, wide, x, y):
    return f"launch({tiles(high, wide)}, {x}, {y}, [=] {{ {name}<float>({SIZES}); }})"


# file, launch, elements, the multiple that pitches have to be
KERNELS = {
    "naive": ("naive.cu", by_two("transpose_naive", 8, 32, 32, 8), "float", 1),
    "naive, reads columns": ("naive.cu", by_two("transpose_naive_columns", 32, 8, 32, 8), "float", 1),
    "tiled": ("tiled.cu", by_two("transpose_tiled", 32, 32, 32, 32), "float", 1),
    "padded": ("tiled.cu", by_two("transpose_padded", 32, 32, 32, 32), "float", 1),
    "swizzled": ("tiled.cu", by_two("transpose_swizzled", 32, 32, 32, 32), "float", 1),
    "several": ("several.cu", banded("transpose_several", 64, 32, 64), "float", 1),
    "several, bytes": ("several.cu", banded("transpose_several", 8, 64, 32, "unsigned char"), "unsigned char", 1),
    "vectors": ("vectors.cu", banded("transpose_vectors", 64, 64, 64), "float", 4),
    "vectors, 2 bytes": ("vectors.cu", banded("transpose_vectors", 64, 64, 64, "unsigned short"), "unsigned short", 8),
    "vectors, 8 bytes": ("vectors.cu", banded("transpose_vectors", 32, 32, 64, "double"), "double", 2),
    "aligned": ("aligned.cu", banded("transpose_aligned", 56, 32, 64, read=64, span=8), "float", 1),
    "aligned to lines": ("aligned.cu", banded("transpose_aligned", 96, 32, 64, read=128, span=32), "float", 1),
    "aligned, 2 bytes": ("aligned.cu", banded("transpose_aligned", 48, 32, 64, "unsigned short", 64, 16), "unsigned short", 1),
}  # fmt: skip
PAIRS = "((rows + 31) / 32) * ((rows + 31) / 32 + 1) / 2"
GROUP = "min(group, ((rows + 31) / 32 + 1) / 2)"
IN_PLACE = {
    "in place": ("in_place.cu", f"launch({PAIRS}, 64, 1, [=] {{ transpose_in_place<float,32,64>(in, rows, from, {GROUP}); }})", "float", 1),
    "in place, vectors": ("in_place.cu", f"launch({PAIRS}, 64, 1, [=] {{ transpose_in_place_vectors<float,32,64,true>(in, rows, from, {GROUP}); }})", "float", 4),
}  # fmt: skip


def program(name, folder, change=lambda text: text):
    file, run, elements, _ = (KERNELS | IN_PLACE)[name]
    text = change((FOLDER / file).read_text())
    text = text.replace("extern __shared__ uint4 bytes[];", "uint4* const bytes = dynamic_shared;")
    header = folder / "kernels.h"
    header.write_text(text)
    flags = (
        "-O1", "-std=c++20", f"-DRUN={run}", f"-DELEMENT={elements}",
        f"-DIN_PLACE={int(name in IN_PLACE)}",
    )  # fmt: skip
    places = (f'-DKERNELS="{header}"', f"-I{FOLDER}")
    return gpp.compiled(HERE / "transpose_on_cpu.cpp", *flags, places=places)


def wrong(made, *numbers):
    done = subprocess.run(
        [made, *map(str, numbers)], capture_output=True, text=True, check=False, timeout=60
    )
    return int(done.stdout) if done.returncode == 0 else f"ended with {done.returncode}"


def up(n, to):
    return -(-n // to) * to


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_turns_every_shape_and_writes_nothing_else(name, tmp_path):
    made, multiple = program(name, tmp_path), KERNELS[name][-1]
    lates = (0, 1, 5) if multiple == 1 else (0,)
    for (rows, columns), more, late in itertools.product(SHAPES, (0, 3), lates):
        pitches = up(columns + more, multiple), up(rows + more, multiple)
        group = 1000 if more else 2
        assert wrong(made, rows, columns, *pitches, group, late) == 0, (rows, columns, more, late)


@pytest.mark.parametrize("name", IN_PLACE)
def test_squares_are_turned_in_their_place(name, tmp_path):
    made, multiple = program(name, tmp_path), IN_PLACE[name][-1]
    for side, group in itertools.product((1, 31, 32, 33, 65, 129), (1, 2, 1000)):
        pitch = up(side + 1, multiple)
        assert wrong(made, side, side, pitch, pitch, group, 0) == 0, (side, group)


FAULTS = {
    "aligned": ("tile[r - first][y]", "tile[x][y]"),
    "several": ("= tile[x][y];", "= tile[y][x];"),
    "vectors": ("tile[y][x ^ y / PER % 8]", "tile[y][x]"),
    "in place": ("at.row - t % 2", "at.row"),
}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_noticed(name, tmp_path):
    before, after = FAULTS[name]

    def change(text):
        assert before in text
        return text.replace(before, after)

    made = program(name, tmp_path, change)
    found = [
        wrong(made, rows, rows, up(rows, 4), up(rows, 4), 2, 1 if name == "aligned" else 0)
        for rows in (96, 121)
    ]
    assert any(found)


def test_passes_by_layout():
    assert model.passes(range(32)) == 1
    assert model.passes(range(0, 32 * 32, 32)) == 32
    assert model.passes([7] * 32) == 1, "one word for all is one pass"
    assert model.lines(range(0, 128, 4)) == 1
    assert model.lines(range(4, 132, 4)) == 2
    assert model.by_vectors(range(0, 128, 4)) == 4
    assert model.per_line("naive")["write"] == 32 == model.per_line("tiled")["load"]
    for rung in ("padded", "swizzled", "several", "vectors"):
        assert sum(model.per_line(rung).values()) == 4, rung


def test_the_order_of_the_drawing_has_every_tile_once(monkeypatch):
    monkeypatch.syspath_prepend(str(paths.examples_dir().parent / "docs"))
    from figures.primitives import transpose

    for rows, columns, group in ((4, 6, 1), (4, 6, 2), (4, 6, 4), (5, 3, 2), (1, 7, 1)):
        found = {transpose.tile_at(b, rows, columns, group) for b in range(rows * columns)}
        assert found == set(itertools.product(range(rows), range(columns)))
    assert [transpose.tile_at(b, 4, 6, 4) for b in range(4)] == [(r, 0) for r in range(4)]
    layouts = {name: transpose.most_in_a_bank(name, 8, 2) for name in transpose.LAYOUTS}
    assert layouts == {"plain": 8, "padded": 1, "swizzled": 1}


class Matrix:
    """An array as launchers see it; nothing lies there."""

    def __init__(self, shape, dtype="float32", address=1 << 20, strides=None):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": self.dtype.str, "data": (address, False), "strides": strides, "version": 3,
        }  # fmt: skip


FAR = 1 << 30


@pytest.mark.parametrize(
    "x, out, said",
    [
        (np.ones((3, 4), "float32"), Matrix((4, 3), address=FAR), "host"),
        (Matrix((3, 4)), Matrix((3, 4), address=FAR), "must be"),
        (Matrix((3, 4)), Matrix((4, 3)), "shares memory"),
        (Matrix((3, 4)), Matrix((4, 3), "float64", FAR), "float"),
        (Matrix((3, 4), "complex128"), Matrix((4, 3), "complex128", FAR), "16 bytes"),
        (Matrix((3, 4), strides=(4, 12)), Matrix((4, 3), address=FAR), "lie apart"),
    ],
)
def test_what_is_no_pair_of_matrices_is_refused(monkeypatch, x, out, said):
    from cudatut.gpu import operands

    monkeypatch.setattr(operands, "_several_gpus", lambda: False)
    for launcher in (launch.naive, launch.tiled, launch.several, launch.vectors, launch.transpose):
        with pytest.raises((TypeError, ValueError), match=said):
            launcher(x, out)


def test_rows_that_begin_elsewhere_are_refused_by_what_needs_vectors(monkeypatch):
    from cudatut.gpu import operands

    monkeypatch.setattr(operands, "_several_gpus", lambda: False)
    x, out = Matrix((8, 6)), Matrix((6, 8), address=FAR)
    for launcher in (launch.vectors, launch.tma):
        with pytest.raises(ValueError, match="multiples of 16 bytes"):
            launcher(x, out)
    x, out = Matrix((6, 8)), Matrix((8, 6), address=FAR, strides=(32, 4))
    with pytest.raises(ValueError, match="beyond the row"):
        launch.tma(x, out)
    with pytest.raises(ValueError, match="squares"):
        launch.in_place(Matrix((8, 12)))
    with pytest.raises(ValueError, match="band"):
        launch.several(Matrix((8, 12)), Matrix((12, 8), address=FAR), group=0)


@pytest.mark.parametrize(
    "rows, columns, dtype, more, chosen",
    [
        (64, 64, "float32", 0, ("vectors",)),
        (640, 640, "float32", 0, ("vectors",)),
        (640, 640, "float32", 4, ("vectors",)),
        (640, 640, "float32", 1, ("aligned",)),  # rows begin anywhere
        (100, 100, "float32", 0, ("aligned",)),  # one whole tile of four
        (192, 200, "float32", 0, ("vectors",)),  # 9 of 12
        (128, 128, "uint8", 0, ("aligned",)),  # tiles of 128 x 256
        (32, 33, "float32", 0, ("aligned",)),
        (640, 31, "float32", 1, ("several", (256, 8), 256)),
        (31, 640, "float32", 0, ("several", (8, 256), 256)),
    ],
)
def test_the_kernel_follows_from_shape_and_pitch(monkeypatch, rows, columns, dtype, more, chosen):
    from cudatut.gpu import operands

    monkeypatch.setattr(operands, "_several_gpus", lambda: False)
    for name in ("several", "vectors", "aligned"):
        monkeypatch.setattr(launch, name, lambda x, out, *how, name=name: (name, *how))
    size = np.dtype(dtype).itemsize
    x, out = (
        Matrix((high, wide), dtype, at, ((wide + more) * size, size))
        for high, wide, at in ((rows, columns, 1 << 20), (columns, rows, FAR))
    )
    assert launch.transpose(x, out) == chosen


def test_nothing_is_launched_for_no_elements(monkeypatch):
    from cudatut.gpu import operands

    monkeypatch.setattr(operands, "_several_gpus", lambda: False)
    monkeypatch.setattr(ct, "Kernel", lambda *arguments, **more: None)
    launch._kernel.cache_clear()
    for rows, columns in ((0, 5), (5, 0)):
        launch.transpose(Matrix((rows, columns)), Matrix((columns, rows), address=FAR))()
    launch._kernel.cache_clear()
