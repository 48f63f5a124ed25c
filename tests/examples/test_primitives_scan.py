"""examples/primitives/scan without a GPU: which kernels a launcher asks for, its grids and memory, and what it refuses; the drawn tree."""

import sys

import compiles_nothing
import numpy as np
import planted_faults
import pytest
from compiles_nothing import SMS, Kernel

import cudatut as ct
from cudatut.book.primitives.scan import reference, scans
from cudatut.book.primitives.scan.scans import SHAPES, Scan, Shape, fastest, words_of_state


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    return compiles_nothing.stands_in(monkeypatch)


@pytest.mark.parametrize(
    "kind, n, dtype, what",
    [
        ("sorted", 10, "float32", "none of"),
        ("look_back", 10, "float16", "none of"),
        ("look_back", -1, "float32", "from 0"),
        ("look_back", 1 << 40, "float32", "from 0"),
        ("cluster", 8 * 4096 + 1, "float32", "at most 32768"),
        ("at_once", 8 * 4096 + 1, "float32", "at most 32768"),
    ],
)
def test_what_no_kernel_can_do_is_refused(kind, n, dtype, what):
    with pytest.raises(ValueError, match=what):
        Scan(kind, n, dtype)


@pytest.mark.parametrize("n", [0, 1, 8191, 8192, 8193, 1_000_000])
@pytest.mark.parametrize("kind", ["look_back", "in_order"])
def test_a_block_and_a_word_for_each_tile(kind, n):
    run = Scan(kind, n)
    assert run.grid == max(1, -(-n // 8192))
    assert len(run.state) >= 16 + run.grid
    assert len(Scan(kind, n, "int64").state) >= 16 + 2 * Scan(kind, n, "int64").grid


def test_blocks_that_stay_are_those_that_the_gpu_holds():
    for kind in ("bulk", "ahead"):
        tile = SHAPES[kind].tile("float32")
        assert (Scan(kind, tile + 1).grid, Scan(kind, 1_000_000).grid) == (2, 2 * SMS)


def launched(run, *arrays):
    run._launch([1 << 20] * (2 + len(arrays)), None)
    return run.kernel.launches[-1]


def test_one_that_runs_ahead_has_a_row_of_threads_for_each_team_and_one_more():
    for teams in (1, 2):
        shape = Shape(buffers=3, more=(("TEAMS", teams),))
        arguments, how = launched(Scan("ahead", 1_000_000, shape=shape))
        assert how["block"] == (256, teams + 1)
        assert how["shared"] == 3 * 32_768
        assert arguments[-1] == 123  # tiles
        assert arguments[2] == 1_000_000


@pytest.mark.parametrize("kind, tile", [("tree", 512), ("warps", 256), ("passes", 8192)])
def test_three_launches_have_a_block_for_each_tile_and_one_for_the_sums_between(
    monkeypatch, kind, tile
):
    made = []

    class Noted(Kernel):
        def __init__(self, *given, **how):
            super().__init__(*given, **how)
            made.append(self)

    monkeypatch.setattr(ct, "Kernel", Noted)
    Scan(kind, 100_000)._launch([1 << 20] * 2, None)
    tiles = -(-100_000 // tile)
    (first, between, last) = (kernel.launches for kernel in made)
    assert [how["grid"] for ((_, how),) in (first, between, last)] == [tiles, 1, tiles]
    assert between[0][0][1] == tiles
    if kind != "passes":
        assert last[0][0][2] == tile  # of how many elements `add_sums` adds one sum


def test_buffers_hold_elements_of_any_size():
    for dtype in ("float32", "int64"):  # half as many elements of twice the size
        _, how = launched(Scan("ahead", 1_000_000, dtype))
        assert how["shared"] == 7 * 32_768


def test_sums_of_eight_bytes_have_fewer_blocks_on_an_sm():
    for dtype, resident in (("float32", 4), ("int64", 3)):
        assert Scan("look_back", 10, dtype).kernel.defines["RESIDENT"] == resident


def test_the_groups_words_lie_behind_those_of_the_tiles():
    shape = Shape(copies=3)
    assert words_of_state(shape, 256, 4) == 16 + 256 + 3 * 16
    assert words_of_state(shape, 257, 4) == 16 + 272 + 2 * 3 * 16
    assert words_of_state(shape, 256, 8) == 16 + 512 + 3 * 16


def test_the_fastest_is_at_once_for_few_elements_and_else_by_gpu_and_length(no_gpu):
    tile = SHAPES["at_once"].tile("float32")
    lengths = (SMS * tile, SMS * tile + 1, 1 << 21, (1 << 21) + 1, 1 << 28)
    kinds = ["at_once", "bulk", "bulk", "ahead", "ahead"]
    assert [fastest(n).kind for n in lengths] == kinds
    wide = fastest(1 << 28, "int64").kernel.defines
    assert (wide["LOOKERS"], wide["BULK_STORES"]) == (5, 1)
    no_gpu.compute_capability = (8, 0)
    assert fastest(2 * SMS * tile).kind == "at_once"  # as many as it holds
    assert fastest(2 * SMS * tile + 1).kind == fastest(1 << 28).kind == "in_order"


class Array:
    """An array of the GPU, of which only address, type and shape are looked at."""

    def __init__(self, n, dtype="float32", address=1 << 20):
        self.shape, self.dtype = (n,), np.dtype(dtype)
        self.__cuda_array_interface__ = {
            "shape": (n,),
            "typestr": self.dtype.str,
            "data": (address, False),
            "version": 3,
        }


@pytest.mark.parametrize(
    "x, out, error",
    [
        (Array(100, "int32"), Array(100, address=1 << 30), TypeError),
        (Array(99), Array(100, address=1 << 30), ValueError),
        (Array(100, address=4 + (1 << 20)), Array(100, address=1 << 30), ValueError),
        (Array(100), Array(100, address=(1 << 20) + 16), ValueError),
        (np.zeros(100, "float32"), Array(100, address=1 << 30), TypeError),
    ],
    ids=["another type", "too short", "begins between vectors", "shared memory", "on the host"],
)
def test_arrays_that_do_not_fit_are_refused(x, out, error):
    with pytest.raises(error):
        Scan("look_back", 100)(x, out)


def test_vectors_of_one_element_take_any_beginning():
    run = Scan("look_back", 100, shape=Shape(width=4))
    run(Array(100, address=4 + (1 << 20)), Array(100, address=1 << 30))
    assert len(run.kernel.launches) == 1


def test_an_empty_array_launches_nothing():
    run = Scan("look_back", 0)
    run(Array(0), Array(0, address=1 << 30))
    assert not run.kernel.launches


def test_the_drawn_tree_is_the_exclusive_scan(monkeypatch):
    monkeypatch.syspath_prepend(str(ct.paths.examples_dir().parent / "docs"))
    sys.modules.pop("figures.primitives.scan", None)
    from figures.primitives import scan

    values = (5, -2, 7, 1, 0, 3, 9, -4)
    _, down = scan.levels(values)
    assert down[-1] == scan.scanned(values)[1] == [0, *np.cumsum(values)[:-1].tolist()]


def test_each_planted_fault_has_its_place_in_the_look_back():
    text = (ct.paths.examples_dir() / "primitives/scan/look_back.cuh").read_text(encoding="utf-8")
    for kind, right, wrong in planted_faults.of("test_primitives_scan.py").values():
        assert kind in SHAPES and text.count(right) == 1 and wrong != right


def test_what_a_scan_is_compared_with():
    values = np.array([2**30, 2**30, 5, -7], "int32")
    assert reference.sums(values).tolist() == [2**30, -(2**31), 5 - 2**31, 2**31 - 2]
    assert reference.sums(values, exclusive=True).tolist() == [0, 2**30, -(2**31), 5 - 2**31]
    assert reference.sums(values).dtype == "int32" and reference.most(values) == 0
    floats = np.array([1, -3], "float32")
    assert reference.sums(floats).dtype == "float64"
    assert reference.sums(floats, exclusive=True).tolist() == [0, 1]
    assert reference.most(floats) == 4 * 2**-23 * 4
    for exclusive in (False, True):
        assert reference.sums(floats[:0], exclusive).size == 0


def test_kinds_and_shapes_are_of_the_same_scans():
    assert set(scans.SHAPES) == set(scans.KINDS)
