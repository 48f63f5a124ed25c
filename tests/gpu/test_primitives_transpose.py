"""examples/primitives/transpose: every launcher on ragged sizes, types and pitches, properties, planted faults, what is refused."""

import numpy as np
import pytest

import cudatut as ct
from cudatut import paths
from cudatut.book.primitives.transpose import launch

FOLDER = paths.examples_dir() / "primitives/transpose"
SHAPES = ((1, 1), (31, 33), (33, 31), (1, 257), (255, 1), (257, 255), (64, 128), (1000, 777))
TYPES = ("uint8", "uint16", "float32", "float64")
LAUNCHERS = {
    "naive": (launch.naive, 1),
    "columns": (lambda x, out: launch.naive(x, out, columns=True), 1),
    "tiled": (launch.tiled, 1),
    "padded": (lambda x, out: launch.tiled(x, out, "padded"), 1),
    "swizzled": (lambda x, out: launch.tiled(x, out, "swizzled"), 1),
    "several": (lambda x, out: launch.several(x, out, (32, 32), 256, group=3), 1),
    "vectors": (lambda x, out: launch.vectors(x, out, group=2), 16),
    "vectors, along out": (launch.vectors, 16),
    "aligned": (launch.aligned, 1),
    "aligned, bands": (lambda x, out: launch.aligned(x, out, group=2), 1),
    "transpose": (launch.transpose, 1),
    "transpose, wide": (launch.transpose, 16),
}  # fmt: skip


def numbers(rows, pitch, dtype, seed=0):
    return ct.rng(seed).integers(0, 200, (rows, pitch)).astype(dtype)


def up(n, to):
    return -(-n // to) * to


def turned(make, rows, columns, pitches, dtype="float32"):
    """Runs a launcher on views; raises where an element is wrong or one beside the view has changed."""
    host = numbers(rows, pitches[0], dtype)
    marks = np.full((columns, pitches[1]), 201).astype(dtype)
    x, out = ct.to_device(host), ct.to_device(marks)
    make(x[:, :columns], out[:, :rows])()
    marks[:, :rows] = host[:, :columns].T
    ct.check(out, marks, rtol=0, name=f"{rows} x {columns} {dtype}, {pitches}")
    ct.check(x, host, rtol=0, name="what was read")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", LAUNCHERS)
def test_every_launcher_turns_every_shape(name, dtype):
    make, nbytes = LAUNCHERS[name]
    per = max(1, nbytes // np.dtype(dtype).itemsize)
    for rows, columns in SHAPES:
        for more in (0, 3):
            turned(make, rows, columns, (up(columns + more, per), up(rows + more, per)), dtype)


@pytest.mark.parametrize("span", [8, 16, 32])
def test_whole_pieces_wherever_the_array_begins(span):
    for late in range(0, 9, 3):
        host = numbers(1, 200 * 121 + late, "float32").ravel()
        x, out = ct.to_device(host), ct.empty(200 * 121 + late, "float32")
        launch.aligned(
            x[late:].reshape(200, 121), out[late:].reshape(121, 200), span=span, group=1
        )()
        ct.check(out[late:], host[late:].reshape(200, 121).T.ravel(), rtol=0)


@pytest.mark.parametrize("dtype", TYPES)
def test_turned_twice_is_the_matrix_itself(dtype):
    host = numbers(777, 1000, dtype)
    x = ct.to_device(host)
    once, twice = ct.empty((1000, 777), dtype), ct.empty((777, 1000), dtype)
    launch.transpose(x, once)()
    launch.transpose(once, twice)()
    ct.check(twice, host, rtol=0)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("group", [1, 3, launch.ALL])
def test_in_place(group, both):
    for side in (1, 31, 64, 65, 128, 255, 700):
        for more in (up(side, 4) - side, 3):
            host = numbers(side, side + more, "float32", side)
            x = ct.to_device(host)
            run = launch.in_place(x[:, :side], group=group, both=both)
            run()
            wanted = host.copy()
            wanted[:, :side] = host[:, :side].T
            ct.check(x, wanted, rtol=0)
            run()
            ct.check(x, host, rtol=0, name="turned back")


@pytest.mark.parametrize("walk", [False, True])
def test_the_tma_writes_nothing_between_rows_of_16_bytes(walk):
    ct.require("sm_90")
    for rows, columns in ((4, 7), (64, 64), (132, 33), (1000, 777), (2100, 3011)):
        for stages in (1, 3):
            turned(
                lambda x, out, stages=stages: launch.tma(x, out, stages=stages, walk=walk, group=2),
                rows,
                columns,
                (up(columns, 4), rows + 4),
            )
    x, out = ct.empty((33, 64), "float32"), ct.empty((64, 36), "float32")
    with pytest.raises(ValueError, match="beyond the row"):
        launch.tma(x, out[:, :33])


def test_more_elements_than_an_int_counts():
    rows, columns = 50_000, 45_056  # bytes: more than 2^31
    if ct.device().memory_bytes < 12 << 30:
        pytest.skip("needs 12 GB")
    row = numbers(1, columns, "uint8").ravel()
    x, out = ct.empty((rows, columns), "uint8"), ct.empty((columns, rows), "uint8")
    x.fill(0)
    x[rows - 1].set(row)
    for make in (launch.transpose, launch.aligned):
        ct.poison(out)
        make(x, out)()
        got = out[columns - 9 :].get()
        ct.check(got[:, rows - 1], row[-9:], rtol=0)
        assert not got[:, : rows - 1].any()


FAULTS = {  # file, kernel, what is replaced, by what
    "no barrier": ("tiled.cu", "transpose_padded<float>", "  __syncthreads();\n", ""),
    "another row of the tile": ("tiled.cu", "transpose_padded<float>", "= tile[x][y];", "= tile[y][x];"),
    "no guard": ("tiled.cu", "transpose_padded<float>", "if (column + y < columns && row + x < rows)", "if (row + x < rows)"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_noticed(name):
    file, kernel, before, after = FAULTS[name]
    text = (FOLDER / file).read_text()
    assert before in text
    rows, columns = 330, 250
    host = numbers(rows, columns, "float32")
    wanted = np.full((ct.cdiv(columns, 32) * 32, rows), 201, "float32")  # room for a whole tile
    marks = wanted.copy()
    wanted[:columns] = host.T
    x = ct.to_device(host)

    def run(source):
        out = ct.to_device(marks)
        tiles = ct.cdiv(rows, 32) * ct.cdiv(columns, 32)
        launched = ct.Kernel(source, kernel)
        for _ in range(20):
            out.set(marks)
            launched(x, out, rows, columns, columns, rows, grid=tiles, block=(32, 32))
            ct.check(out, wanted, rtol=0)

    run(text)
    with pytest.raises(ct.CheckError):
        run(text.replace(before, after))


def test_what_is_refused():
    a, b = ct.empty((8, 12), "float32"), ct.empty((12, 8), "float32")
    for x, out in (
        (np.ones((8, 12), "float32"), b),
        (a, a),
        (a, a.reshape(12, 8)),
        (a, b.view("int32")),
    ):
        with pytest.raises((TypeError, ValueError)):
            launch.transpose(x, out)
    with pytest.raises(ValueError, match="16 bytes"):
        launch.vectors(a[:, :7], ct.empty((7, 9), "float32")[:, :8])
    with pytest.raises(ValueError, match="squares"):
        launch.in_place(a)
