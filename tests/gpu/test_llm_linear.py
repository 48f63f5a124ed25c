"""linear.py of the part `llm`: every tile at ragged sizes, exact sums, bounds, bits, what is refused."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.llm.kernels import linear
from cudatut.book.llm.kernels.fused import interleave
from cudatut.book.llm.kernels.linear import Tile, choose
from cudatut.gpu.device import supports

TILES = [*linear.TILES]
# Rows of 64 bytes in shared memory, as in one of the instances that linear.cu names.
ALL_TILES = [*TILES, Tile(128, 128, 32, 64, 64, 4)]
# Tiles of which each split is compiled, and with it their results.
SPLIT_TILES = [tile for tile in TILES if tile.can_split and tile.stages < 8] + [TILES[-1]]
SPLITS = linear.SPLITS[1:]
of_tile = pytest.mark.parametrize("tile", ALL_TILES, ids=lambda tile: "x".join(map(str, tile)))
split_tile = pytest.mark.parametrize("tile", SPLIT_TILES, ids=lambda tile: "x".join(map(str, tile)))


@pytest.fixture(autouse=True)
def needs_sm_80():
    if not supports(ct.device().compute_capability, "sm_80"):
        pytest.skip("linear.cu needs sm_80")


@pytest.fixture(scope="module", autouse=True)
def compiled():
    results = (("float32", False), ("float32", True), ("uint16", False), ("uint16", False, True))
    plans = [(tile, 1, results) for tile in ALL_TILES]
    if has_clusters():
        plans += [(tile, split, results[1:]) for tile in SPLIT_TILES for split in SPLITS]
    ct.compile_ahead(
        (linear.source(split), linear.instance(tile, *result, split=split))
        for tile, split, kinds in plans
        for result in kinds
    )


def has_clusters():
    return supports(ct.device().compute_capability, "sm_90")


def needs_clusters():
    if not has_clusters():
        pytest.skip("clusters need sm_90")


def to_bf16(values):
    """The nearest bf16 of float32 numbers, ties to even, as uint16."""
    bits = np.ascontiguousarray(values, "float32").view("uint32").astype("uint64")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("uint16")


def from_bf16(bits):
    return (np.asarray(bits).astype("uint32") << 16).view("float32").astype("float64")


def whole_numbers(n, outputs, inputs, seed=0):
    """Operands whose products and sums are exact in bf16 and fp32."""
    rng = ct.rng(seed)
    x, w = rng.integers(-8, 9, (n, inputs)), rng.integers(-8, 9, (outputs, inputs))
    return to_bf16(x), to_bf16(w), (x @ w.T).astype("float64")


def run(x, w, dtype="float32", add=None, **how):
    """The result on the host; `add`: what is there before, otherwise NaN."""
    shape = len(x), len(w)
    out = ct.empty(shape, dtype) if add is None else ct.to_device(add)
    linear.linear(ct.to_device(x), ct.to_device(w), out, add=add is not None, **how)
    return out.get()


def fits(tile):
    if tile.shared > ct.device().shared_per_block_optin:
        pytest.skip(f"{tile.shared} B of shared memory")


# Less than a tile, several, one row or output too many; inputs that end within a slab; an odd number of outputs.
SHAPES = [(1, 1, 8), (16, 32, 64), (17, 33, 72), (5, 576, 576), (129, 257, 200), (300, 131, 1000)]


@of_tile
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_every_tile(tile, shape):
    fits(tile)
    x, w, expected = whole_numbers(*shape)
    np.testing.assert_array_equal(run(x, w, tile=tile), expected)
    np.testing.assert_array_equal(run(x, w, "uint16", tile=tile), to_bf16(expected))
    before = ct.rng(1).integers(-99, 100, expected.shape).astype("float32")
    np.testing.assert_array_equal(run(x, w, add=before, tile=tile), before + expected)


@of_tile
@pytest.mark.parametrize("shape", [(1, 16, 8), (17, 48, 72), (129, 272, 200)])
def test_swiglu(tile, shape):
    """Of products that are exact: beside fp64, which is then rounded to bf16."""
    fits(tile)
    x, w, expected = whole_numbers(*shape)
    gate, up = np.split(expected / 64, 2, axis=1)
    want = gate / (1 + np.exp(-gate)) * up
    got = from_bf16(swiglu_of(x, w, tile=tile))
    np.testing.assert_allclose(got, want, rtol=2**-8, atol=1e-6)


def swiglu_of(x, w, **how):
    """silu(gate) * up, of x / 64."""
    out = ct.empty((len(x), len(w) // 2), "uint16")
    by = to_bf16(from_bf16(x) / 64)  # exact, too
    linear.linear(ct.to_device(by), ct.to_device(interleave(w)), out, swiglu=True, **how)
    return out.get()


@split_tile
@pytest.mark.parametrize("split", SPLITS)
def test_every_split(tile, split):
    """More blocks than slabs, shares of results that do not come out even, exact all the same."""
    needs_clusters()
    how = {"tile": tile, "split": split}
    for shape in SHAPES:
        x, w, expected = whole_numbers(*shape)
        np.testing.assert_array_equal(run(x, w, "uint16", **how), to_bf16(expected))
        before = ct.rng(1).integers(-99, 100, expected.shape).astype("float32")
        np.testing.assert_array_equal(run(x, w, add=before, **how), before + expected)
    x, w, expected = whole_numbers(67, 272, 200)
    gate, up = np.split(expected / 64, 2, axis=1)
    got = from_bf16(swiglu_of(x, w, **how))
    np.testing.assert_allclose(got, gate / (1 + np.exp(-gate)) * up, rtol=2**-8, atol=1e-6)


def random(n, outputs, inputs, seed=0):
    rng = ct.rng(seed)
    x, w = (rng.standard_normal((rows, inputs), "float32") for rows in (n, outputs))
    return to_bf16(x), to_bf16(w)


def bound(x, w):
    """Of the error of fp32: a mma of 16 depths may lose a unit or two in the last place of its partial sum."""
    return (x.shape[1] / 16 + 16) * 2.0**-22 * (np.abs(x) @ np.abs(w).T)


@pytest.mark.parametrize(
    "shape",
    [
        *((n, o, i) for n in (1, 16, 61, 256) for o, i in ((576, 576), (1536, 576), (576, 1536))),
        *((2, 49152, 576), (1024, 1000, 4096), (7, 8192, 5120)),
    ],
    ids=lambda shape: "x".join(map(str, shape)),
)
def test_random_numbers(shape):
    x, w = random(*shape)
    exact, error = from_bf16(x) @ from_bf16(w).T, bound(from_bf16(x), from_bf16(w))
    assert (np.abs(run(x, w) - exact) <= error).all()
    rounded = np.abs(from_bf16(run(x, w, "uint16")) - exact)
    assert (rounded <= error + np.abs(exact) * 2.0**-8).all()


def test_the_same_bits_in_every_tile_and_every_batch():
    x, w = random(150, 600, 1544)
    expected = run(x, w, tile=TILES[-1])
    for tile in ALL_TILES:
        if tile.shared <= ct.device().shared_per_block_optin:
            for _ in range(3):
                np.testing.assert_array_equal(run(x, w, tile=tile), expected)
    for rows in (slice(0, 1), slice(3, 20), slice(149, 150), slice(40, 141)):
        np.testing.assert_array_equal(run(x[rows], w), expected[rows])


@pytest.mark.parametrize("split", SPLITS)
def test_the_bits_of_a_split_are_the_same_in_every_tile_and_every_batch(split):
    needs_clusters()
    x, w = random(150, 600, 1544)
    zeros = np.zeros((len(x), len(w)), "float32")
    expected = run(x, w, add=zeros, tile=TILES[-1], split=split)
    exact, error = from_bf16(x) @ from_bf16(w).T, bound(from_bf16(x), from_bf16(w))
    assert (np.abs(expected - exact) <= error).all()
    for tile in SPLIT_TILES:
        for _ in range(3):
            np.testing.assert_array_equal(run(x, w, add=zeros, tile=tile, split=split), expected)
    for rows in (slice(0, 1), slice(3, 20), slice(149, 150), slice(40, 141)):
        found = run(x[rows], w, add=zeros[rows], split=split)
        np.testing.assert_array_equal(found, expected[rows])


def test_fast_is_the_split_that_is_chosen():
    x, w = random(16, 576, 1536)
    zeros = np.zeros((len(x), len(w)), "float32")
    limits = ct.device().sm_count, ct.device().shared_per_block_optin
    splits = linear.FAST_SPLITS if has_clusters() else (1,)
    tile, split = choose(len(x), *w.shape, *limits, splits)
    expected = run(x, w, add=zeros, tile=tile, split=split)
    np.testing.assert_array_equal(run(x, w, add=zeros, fast=True), expected)
    np.testing.assert_array_equal(run(x, w, add=zeros), run(x, w, add=zeros, split=1))


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("n", [16, 200])
def test_a_chain_of_splits_in_a_graph(n, overlap):
    """Each adds to what the one before has left: none begins too early, few rows or many."""
    import pycuda.driver as cuda

    from cudatut.book.measure.graphs import Graph

    needs_clusters()
    stream = cuda.Stream()
    x, w, product = whole_numbers(n, 200, 576)
    arrays = ct.to_device(x), ct.to_device(w), ct.to_device(np.zeros(product.shape, "float32"))

    def work():
        for split in (1, 3, 2, 8, 1, 4):
            linear.linear(*arrays, add=True, stream=stream, split=split)

    ct.synchronize()
    work()
    graph = Graph(work, stream, overlap)
    for _ in range(5):
        graph.launch()
    stream.synchronize()
    np.testing.assert_array_equal(arrays[2].get(), 36 * product)


def test_what_is_recorded_starts_on_the_default_stream():
    """Once when it is recorded, and with each call, before whatever that stream does next."""
    from cudatut.book.measure.graphs import recorded

    x, w, product = whole_numbers(16, 200, 576)
    arrays = ct.to_device(x), ct.to_device(w), ct.to_device(np.zeros(product.shape, "float32"))
    start = recorded(lambda stream: linear.linear(*arrays, add=True, stream=stream))
    for _ in range(4):
        start()
    np.testing.assert_array_equal(arrays[2].get(), 5 * product)


@of_tile
def test_what_lies_around_the_matrices_is_not_read(tile):
    fits(tile)
    n, outputs, inputs = tile.rows + 3, tile.columns + 5, 72
    x, w, expected = whole_numbers(n, outputs, inputs)
    nan = np.full((8, inputs), 0xFFFF, "uint16")
    wide_x, wide_w = (ct.to_device(np.concatenate([nan, m, nan])) for m in (x, w))
    out = ct.empty((n + 2, outputs), "float32")
    linear.linear(wide_x[8:-8], wide_w[8:-8], out[:n], tile=tile)
    np.testing.assert_array_equal(out.get()[:n], expected)
    assert np.isnan(out.get()[n:]).all()


def test_a_nan_stays_in_its_row_and_column():
    x, w, expected = whole_numbers(70, 140, 136)
    x[33, 5], w[99, 130] = 0x7FC0, 0x7FC0
    expected[33], expected[:, 99] = np.nan, np.nan
    for tile in TILES[1:]:
        fits(tile)
        np.testing.assert_array_equal(run(x, w, tile=tile), expected)


def test_more_results_than_an_int_can_count():
    n, outputs = 46_400, 46_400  # as many as 2^31 and more
    if ct.device().memory_bytes < 20 << 30:
        pytest.skip("needs 20 GiB of GPU memory")
    x, w = (
        to_bf16(ct.rng(0).integers(-8, 9, (n, 8))),
        to_bf16(ct.rng(1).integers(-8, 9, (outputs, 8))),
    )
    out = ct.empty((n, outputs), "float32")
    linear.linear(ct.to_device(x), ct.to_device(w), out)
    for row in (0, n // 2, 46_283, n - 1):
        np.testing.assert_array_equal(out[row].get(), from_bf16(x[row]) @ from_bf16(w).T)


def test_nothing_to_compute():
    x, w = np.zeros((0, 64), "uint16"), np.zeros((5, 64), "uint16")
    assert run(x, w).shape == (0, 5)


def test_sizes_and_plans_that_are_refused():
    x, w = ct.empty((4, 64), "uint16"), ct.empty((8, 64), "uint16")
    out = ct.empty((4, 8), "float32")
    cases = [
        ((ct.empty((4, 60), "uint16"), ct.empty((8, 60), "uint16"), out), {}, "a multiple of 8"),
        ((x, w, out), {"swiglu": True}, "a multiple of 16"),
        ((x, w, out), {"split": 9}, "1 to 8 blocks"),
        ((x, w, out), {"split": 0}, "1 to 8 blocks"),
        ((x, w, out), {"split": 2, "tile": TILES[0]}, "64 results a thread"),
    ]
    for arguments, how, message in cases:
        with pytest.raises(ValueError, match=message):
            linear.linear(*arguments, **how)
