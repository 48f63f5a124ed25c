"""Which tile and which split linear.py takes for a product, and what it refuses; no GPU."""

from types import SimpleNamespace

import numpy as np
import pytest

from cudatut.book.llm.kernels import linear
from cudatut.book.llm.kernels.linear import FAST_SPLITS, TILES, Tile, choose, expected

H100 = 132, 227 << 10
PRODUCTS = [(960, 576), (576, 576), (3072, 576), (576, 1536)]


@pytest.mark.parametrize("n", [1, 16, 64, 256, 512, 2304])
@pytest.mark.parametrize("product", PRODUCTS)
def test_it_takes_the_fastest_by_its_own_estimate(n, product):
    best = choose(n, *product, *H100, FAST_SPLITS)
    least = expected(*best, n, *product, 132)
    for tile in TILES:
        for split in FAST_SPLITS if tile.can_split else (1,):
            assert expected(tile, split, n, *product, 132) >= least > 0


def test_sums_are_split_only_when_that_is_allowed():
    for n in (1, 16, 256):
        for product in PRODUCTS:
            assert choose(n, *product, *H100)[1] == 1
    assert choose(16, 576, 1536, *H100, FAST_SPLITS)[1] > 1, "18 blocks of 24 slabs"
    assert choose(256, 576, 1536, *H100, FAST_SPLITS)[1] > 1
    assert choose(2048, 3072, 576, *H100, FAST_SPLITS)[1] == 1, "SMs are busy as it is"
    assert choose(16, 576, 1536, *H100, (5,))[1] == 5, "who asks for one split gets it"


def test_large_products_get_large_tiles_that_fit():
    assert choose(4096, 4096, 4096, *H100) == (TILES[0], 1)
    assert choose(4096, 4096, 4096, 108, 163 << 10)[0] == TILES[1]  # the first needs 192 KiB
    assert choose(1, 576, 576, *H100)[0].rows == 16
    for n in (1, 100, 4096):
        assert choose(n, 576, 576, 84, 99 << 10)[0].shared <= 99 << 10


def test_a_tile_that_is_given_is_kept():
    assert choose(2048, 576, 576, *H100, FAST_SPLITS, (TILES[-1],))[0] == TILES[-1]
    assert choose(16, 576, 1536, *H100, FAST_SPLITS, (TILES[0],)) == (TILES[0], 1)


@pytest.mark.parametrize(
    ("capability", "arguments", "splits"),
    [
        ((9, 0), (None, False, None), (1,)),
        ((9, 0), (None, True, None), FAST_SPLITS),
        ((8, 0), (None, True, None), (1,)),
        ((9, 0), (None, True, TILES[0]), (1,)),
        ((9, 0), (5, True, None), (5,)),
        ((8, 0), (1, False, TILES[0]), (1,)),
    ],
)
def test_which_splits_are_allowed(monkeypatch, capability, arguments, splits):
    gpu = SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(linear.ct, "device", lambda: gpu)
    assert linear._splits(*arguments) == splits


@pytest.mark.parametrize(
    ("capability", "split", "tile", "message"),
    [
        ((9, 0), 9, None, "1 to 8 blocks"),
        ((9, 0), 0, None, "1 to 8 blocks"),
        ((8, 0), 2, None, "takes clusters"),
        ((9, 0), 2, TILES[0], "64 results a thread"),
    ],
)
def test_splits_that_are_refused(monkeypatch, capability, split, tile, message):
    gpu = SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(linear.ct, "device", lambda: gpu)
    with pytest.raises(ValueError, match=message):
        linear._splits(split, False, tile)


def test_names_of_instances():
    tile = TILES[-1]
    assert linear.instance(tile, "float32", True) == "linear<16, 32, 64, 16, 16, 8, float, true>"
    of_split = linear.instance(tile, "uint16", False, True, 4)
    assert of_split == "linear_split<4, 16, 32, 64, 16, 16, 8, __nv_bfloat16, false, true>"
    assert (
        linear.source(1) == "llm/kernels/linear.cu"
        and linear.source(4) == "llm/kernels/linear_split.cu"
    )


class Matrix:
    """What a launcher asks of an array on the GPU, each at an address of its own."""

    after = 1 << 40

    def __init__(self, dtype, *shape):
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": np.dtype(dtype).str, "data": (Matrix.after, False), "version": 3,
        }  # fmt: skip
        Matrix.after += 1 << 32


@pytest.mark.parametrize(
    ("how", "split", "blocks"),
    [({}, 1, 36), ({"split": 4}, 4, 144), ({"split": 3, "fast": True}, 3, 108)],
)
def test_a_launch(monkeypatch, how, split, blocks):
    """A cluster of blocks for each tile, all in one dimension of the grid."""
    tile, launched = Tile(64, 64, 64, 32, 32, 4), []

    def kernel(*which):
        return lambda *args, **config: launched.append((which, args[3:], config))

    gpu = SimpleNamespace(compute_capability=(9, 0), sm_count=132, shared_per_block_optin=227 << 10)
    monkeypatch.setattr(linear.ct, "device", lambda: gpu)
    monkeypatch.setattr(linear, "_kernel", kernel)
    arrays = Matrix("uint16", 250, 1536), Matrix("uint16", 576, 1536), Matrix("float32", 250, 576)
    linear.linear(*arrays, add=True, tile=tile, **how)
    config = {"grid": blocks, "block": 128, "shared": tile.shared, "stream": None}
    assert launched == [((tile, "float32", True, False, split), (250, 576, 1536), config)]


def test_a_launch_with_rope(monkeypatch):
    from cudatut.book.llm.kernels import linear_qkv

    array, launched = Matrix, []

    def kernel(*which):
        return lambda *args, **config: launched.append((which, args, config))

    gpu = SimpleNamespace(sm_count=132, shared_per_block_optin=227 << 10)
    monkeypatch.setattr(linear_qkv.ct, "device", lambda: gpu)
    monkeypatch.setattr(linear_qkv, "_kernel", kernel)
    good = {
        "x": array("uint16", 100, 576), "weights": array("uint16", 960, 576),
        "positions": array("int32", 100), "slots": array("int32", 100),
        "table": array("float32", 99, 32, 2), "keys": array("uint16", 999, 3, 64),
        "values": array("uint16", 999, 3, 64), "q": array("uint16", 100, 576),
    }  # fmt: skip
    linear_qkv.linear_qkv(**good)
    ((tile,), args, config) = launched[0]
    assert tile.can_split and args[9:15] == (999, 100, 576, 9, 3, 64)
    assert config["grid"] == -(-100 // tile.rows) * -(-960 // tile.columns)
    assert (config["block"], config["shared"]) == (tile.threads, tile.shared)
    for change, message in (
        ({"tile": TILES[0]}, "64 results a thread"),
        ({"x": array("uint16", 100, 580)}, "a multiple of 8"),
        ({"weights": array("uint16", 950, 576)}, "cannot be"),
    ):
        with pytest.raises(ValueError, match=message):
            linear_qkv.linear_qkv(**good | change)
