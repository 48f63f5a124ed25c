"""examples/primitives/compaction without a GPU: which kernels a launcher asks for, its grids and memory, and what it refuses."""

import compiles_nothing
import numpy as np
import planted_faults
import pytest
from compiles_nothing import SMS

import cudatut as ct
from cudatut.book.primitives.compaction import compactions
from cudatut.book.primitives.compaction.compactions import (
    Atomic,
    Compaction,
    Shape,
    ThreeLaunches,
    fastest,
)


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    return compiles_nothing.stands_in(monkeypatch)


@pytest.mark.parametrize(
    "n, wrong, what",
    [
        (10, {"kind": "sorted"}, "none of"),
        (10, {"dtype": "float16"}, "none of"),
        (10, {"dtype": "int64", "shape": Shape(width=4)}, "in 4 bytes"),
        (-1, {}, "from 0"),
        (1 << 40, {}, "from 0"),
    ],
)
def test_what_no_kernel_can_do_is_refused(n, wrong, what):
    with pytest.raises(ValueError, match=what):
        Compaction(n, **wrong)


@pytest.mark.parametrize("n", [0, 1 << 31])
def test_three_launches_refuse_other_lengths(n):
    with pytest.raises(ValueError, match="2\\^31"):
        ThreeLaunches(n)


@pytest.mark.parametrize("n", [0, 1, 8191, 8192, 8193, 1_000_000])
def test_a_block_for_each_tile(n):
    run = Compaction(n)
    assert run.grid == max(1, -(-n // 8192))
    assert run.shared == 4 * 8192
    assert len(run.state) >= 16 + run.grid
    assert run.kernel.name == "compact"


def test_blocks_that_stay_are_those_that_the_gpu_holds():
    for kind, buffers, more in (("bulk", 3, 0), ("carried", 4, 32)):
        few, many = Compaction(8193, kind=kind), Compaction(1_000_000, kind=kind)
        assert (few.grid, many.grid) == (2, 2 * SMS)
        assert many.block == many.shape.block + more
        assert many.shared == buffers * 4 * many.shape.tile("float32")
        assert many.more == (many.tiles,)


def test_flags_travel_with_their_tile():
    run = Compaction(1_000_000, kind="carried", flags=True)
    tile = run.shape.tile("float32")
    assert run.shared == run.shape.buffers * 5 * tile
    assert run.kernel.defines["FLAGS"] == 1


def test_a_kernel_is_compiled_for_what_stays_and_for_where_the_rest_goes():
    for partition in (False, True):
        defines = Compaction(10, keep="(x) % 3 == 0", partition=partition).kernel.defines
        assert (defines["KEEP(x)"], defines["PARTITION"]) == ("((x) % 3 == 0)", partition)


def test_the_fastest_goes_by_length_and_gpu(no_gpu):
    short, middle, long = (fastest(n) for n in (1 << 18, 1 << 21, (1 << 21) + 1))
    assert (short.kind, middle.kind, long.kind) == ("look_back", "look_back", "carried")
    assert short.shape == compactions.SHORT != middle.shape
    assert fastest((1 << 20) + 1, "int64").kind == "carried"  # as many bytes
    no_gpu.compute_capability = (8, 0)
    assert fastest(1_000_000_000, partition=True).kind == "look_back"


def test_numbers_are_counted_in_64_bits_from_2_to_the_32_elements_on():
    wide = {n: Compaction(n).kernel.defines["COUNTED_IN"] for n in ((1 << 32) - 1, 1 << 32)}
    assert list(wide.values()) == ["unsigned", "long long"]
    one, two = Compaction((1 << 32) - 1), Compaction(1 << 32)
    assert len(two.state) - len(one.state) == one.tiles


class Array:
    """An array of the GPU, of which only address, type and shape are looked at."""

    def __init__(self, n, dtype="float32", address=1 << 20):
        self.shape, self.dtype = (n,), np.dtype(dtype)
        self.__cuda_array_interface__ = {
            "shape": (n,),
            "typestr": self.dtype.str,
            "data": (address, False),
            "version": 3,
            "strides": None,
        }


FAR = 1 << 24


def arrays(n, **changed):
    own = {
        "x": Array(n),
        "out": Array(n, address=2 * FAR),
        "count": Array(1, "int64", 3 * FAR),
        "flags": Array(n, "uint8", 4 * FAR),
    }
    return own | changed


def test_a_launch_gets_addresses_and_its_state():
    run = Compaction(100_000, flags=True)
    run(**arrays(100_000))
    ((given, how),) = run.kernel.launches
    assert [int(one) for one in given[:5]] == [1 << 20, 4 * FAR, 2 * FAR, 3 * FAR, 100_000]
    assert given[5] is run.state
    assert how["grid"] == 13 and how["block"] == 256


@pytest.mark.parametrize(
    "name, wrong",
    [
        ("x", Array(99)),
        ("x", Array(100, "float64")),
        ("x", Array(100, address=(1 << 20) + 4)),  # no vectors of 16 bytes
        ("out", Array(99, address=2 * FAR)),
        ("out", Array(100)),  # other tiles are read when this one is written
        ("count", Array(1, "int32", 3 * FAR)),
        ("count", Array(2, "int64", 3 * FAR)),
        ("flags", Array(100, "int32", 4 * FAR)),
        ("flags", Array(100, "uint8", 4 * FAR + 1)),
    ],
)
def test_arrays_that_do_not_fit_are_refused(name, wrong):
    run = Compaction(100, flags=True)
    with pytest.raises((ValueError, TypeError), match=name):
        run(**arrays(100, **{name: wrong}))
    assert not run.kernel.launches


def test_the_copy_engine_needs_flags_at_16_bytes():
    run = Compaction(100, flags=True, kind="carried")
    with pytest.raises(ValueError, match="flags"):
        run(**arrays(100, flags=Array(100, "uint8", 4 * FAR + 4)))


@pytest.mark.parametrize("kind", ["bulk", "carried"])
def test_the_copy_engine_needs_elements_at_16_bytes(kind):
    run = Compaction(100, kind=kind, shape=Shape(256, 8, width=4, buffers=3))
    with pytest.raises(ValueError, match="x"):
        run(**arrays(100, x=Array(100, address=(1 << 20) + 4)))


def test_small_vectors_take_any_address_of_an_element():
    run = Compaction(100, shape=Shape(256, 8, width=4))
    run(**arrays(100, x=Array(100, address=(1 << 20) + 4)))
    assert run.kernel.defines["WIDTH"] == 4


def test_three_launches_and_the_atomic_one():
    given = arrays(100_000)
    three = ThreeLaunches(100_000)
    three(given["x"], given["out"], given["count"])
    grids = [k.launches[0][1]["grid"] for k in (three.counting, three.scanning, three.placing)]
    assert grids == [three.tiles, 1, three.tiles]
    taken = [len(k.launches[0][0]) for k in (three.counting, three.scanning, three.placing)]
    assert taken == [3, 2, 5]  # as many as the kernels in steps.cu and passes.cu have parameters
    one = Atomic(1000)
    one(Array(1000), Array(1000, address=2 * FAR), Array(1, "uint64", 3 * FAR))
    assert one.kernel.launches[0][1]["grid"] == 4
    none = Atomic(0)
    none(Array(0), Array(0, address=2 * FAR), Array(1, "uint64", 3 * FAR))
    assert not none.kernel.launches


def test_each_planted_fault_has_its_place_in_the_kernel():
    kernel = ct.paths.examples_dir() / "primitives/compaction/compact.cuh"
    for right, _ in planted_faults.of("test_primitives_compaction.py").values():
        assert kernel.read_text(encoding="utf-8").count(right) == 1
