"""linear_hopper.py of the part `llm`: its three ends beside NumPy, for any number of rows and any tile, on a Hopper GPU."""

import math

import numpy as np
import pytest
from llm_rows import HALF_ULP, from_bf16, to_bf16

import cudatut as ct
from cudatut.book.llm.kernels import linear_hopper
from cudatut.book.llm.kernels.linear import linear
from cudatut.book.llm.kernels.linear_hopper import FASTER, Norm, Tile, added, gated, stored

TILES = [
    *dict.fromkeys(tile for tiles in FASTER.values() for tile in tiles.values()),
    Tile(1, 32, 9, True),
    Tile(2, 64, 8, True),
    Tile(1, 96, 4),
    Tile(2, 64, 8),
]
SHAPES = [(1, 64, 8), (77, 576, 576), (300, 144, 1536), (130, 272, 200)]  # rows, outputs, inputs
NAN = np.uint16(0x7FC0)


@pytest.fixture(autouse=True)
def needs_hopper():
    if not linear_hopper.available():
        pytest.skip("linear_hopper.cu needs sm_90a")


@pytest.fixture(scope="module", autouse=True)
def compiled():
    if linear_hopper.available():
        ends = "Store", "Add", "Gates"
        ct.compile_ahead(
            (linear_hopper.SOURCE, linear_hopper.instance(tile, end), None, (), "sm_90a")
            for tile in TILES
            for end in ends
        )


def factors(n, outputs, inputs):
    rng = ct.rng(n)
    x, w = (to_bf16(rng.standard_normal((rows, inputs), "float32")) for rows in (n, outputs))
    return x, w, from_bf16(x).astype("float64") @ from_bf16(w).astype("float64").T


def norm_for(n, columns, weight=None):
    squares = ct.to_device(np.full((n, -(-columns // 16)), np.nan, "float32"))
    return Norm(weight, ct.to_device(np.full((n, columns), NAN)), squares, 1e-5)


@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, (19, 207, 64)], ids=str)
def test_logits(shape, tile):
    n, outputs, inputs = shape
    x, w, exact = factors(*shape)
    y = ct.to_device(np.full((n, outputs), np.nan, "float32"))
    stored(ct.to_device(x), ct.to_device(w), y, tile)
    np.testing.assert_allclose(y.get(), exact, atol=inputs * 1e-5, rtol=1e-5)


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_a_block_has_several_tiles(tile):
    """And a tile more steps than stages: what a block does not give back, it waits for."""
    rows, outputs, inputs = tile.rows, tile.columns, 64 * (tile.stages + 3)
    gpu = ct.device()
    many = math.isqrt(3 * gpu.sm_count * max(gpu.shared_per_block_optin // tile.shared, 1)) + 1
    shape = many * rows - 5, many * outputs - 8, inputs
    x, w, exact = factors(*shape)
    y = ct.to_device(np.full(shape[:2], np.nan, "float32"))
    for _ in range(2):
        stored(ct.to_device(x), ct.to_device(w), y, tile)
        np.testing.assert_allclose(y.get(), exact, atol=inputs * 1e-5, rtol=1e-5)


@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_sum_and_half_of_its_norm(shape, tile):
    n, outputs, inputs = shape
    x, w, exact = factors(*shape)
    old, weight = (ct.rng(1).standard_normal(s, "float32") for s in ((n, outputs), outputs))
    y, norm = ct.to_device(old), norm_for(n, outputs, ct.to_device(weight))
    width = added(ct.to_device(x), ct.to_device(w), y, tile, norm)
    got, parts = y.get(), -(-outputs // width)
    np.testing.assert_allclose(got, old + exact, atol=inputs * 1e-5, rtol=1e-5)
    want = got * weight
    assert (np.abs(from_bf16(norm.h.get()) - want) <= np.abs(want) * HALF_ULP * 1.01).all()
    sums = norm.squares.get().reshape(-1)[: n * parts].reshape(n, parts).sum(1)
    np.testing.assert_allclose(sums, (got.astype("float64") ** 2).sum(1), rtol=1e-5)
    again = ct.to_device(old)  # without a norm: the same bits
    added(ct.to_device(x), ct.to_device(w), again, tile)
    np.testing.assert_array_equal(again.get(), got)


@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_both_halves_of_a_norm_are_the_norm(shape, tile):
    """W (x w / rms): x from `added`, the rest in `gated`."""
    n, outputs, inputs = shape
    _, w, _ = factors(*shape)
    stream = 3 * ct.rng(2).standard_normal((n, inputs), "float32")
    weight = ct.rng(3).uniform(0.5, 2, inputs).astype("float32")
    norm = norm_for(n, inputs, ct.to_device(weight))
    nothing = np.zeros((n, 8), "uint16"), np.zeros((inputs, 8), "uint16")
    width = added(*map(ct.to_device, nothing), ct.to_device(stream), tile, norm)
    out = ct.to_device(np.full((n, outputs // 2), NAN))
    gated(norm.h, ct.to_device(w), out, tile, norm, width)
    normed = from_bf16(norm.h.get()).astype("float64")
    normed /= np.sqrt((stream.astype("float64") ** 2).mean(1, keepdims=True) + 1e-5)
    both = (normed @ from_bf16(w).astype("float64").T).reshape(n, -1, 2, 8)
    gate, up = (both[:, :, i].reshape(n, -1) for i in (0, 1))
    want = gate / (1 + np.exp(-gate)) * up
    error = np.abs(from_bf16(out.get()) - want)
    assert (error <= np.abs(want) * 2**-7 + inputs * 1e-4).all()


def test_a_row_has_the_same_bits_in_every_tile_and_among_any_others():
    x, w, _ = factors(600, 576, 576)
    base = None
    for n in (1, 64, 65, 600):
        for tile in TILES:
            y = ct.empty((n, 576), "float32")
            stored(ct.to_device(x[:n]), ct.to_device(w), y, tile)
            base = y.get()[0] if base is None else base
            np.testing.assert_array_equal(y.get()[0], base, err_msg=f"{n} {tile}")
    y = ct.empty((600, 576), "float32")
    linear(ct.to_device(x), ct.to_device(w), y)
    np.testing.assert_allclose(y.get()[0], base, rtol=1e-4, atol=1e-3)


def test_what_does_not_fit_is_refused():
    x, w = ct.to_device(np.zeros((4, 60), "uint16")), ct.to_device(np.zeros((64, 60), "uint16"))
    with pytest.raises(ValueError, match="a multiple of 8"):
        stored(x, w, ct.empty((4, 64), "float32"), TILES[0])
