"""linear_qkv.py of the part `llm`: beside the product by linear.py, which NumPy turns, on a GPU."""

import llm_fp8
import numpy as np
import pytest
from llm_rows import HALF_ULP, from_bf16, to_bf16

import cudatut as ct
from cudatut.book.llm.kernels import linear_qkv
from cudatut.book.llm.kernels.linear import TILES, linear
from cudatut.book.llm.kernels.rope import rope_table
from cudatut.gpu.device import supports

SMALL = [tile for tile in TILES if tile.can_split]
NAN = np.uint16(0x7FC0)
CONTEXT = 512
# inputs, heads, KV heads, head_dim
SHAPES = [(576, 9, 3, 64), (96, 3, 1, 16), (64, 1, 1, 2), (200, 5, 5, 10), (160, 2, 1, 128)]


@pytest.fixture(autouse=True)
def needs_sm_80():
    if not supports(ct.device().compute_capability, "sm_80"):
        pytest.skip("linear_qkv.cu needs sm_80")


@pytest.fixture(scope="module", autouse=True)
def compiled():
    ct.compile_ahead((linear_qkv.SOURCE, linear_qkv.instance(tile)) for tile in SMALL)


def operands(n, inputs, heads, kv_heads, d, seed=0):
    rng = ct.rng(seed)
    x, w = (
        to_bf16(rng.standard_normal((rows, inputs), "float32"))
        for rows in (n, (heads + 2 * kv_heads) * d)
    )
    positions = rng.integers(0, CONTEXT, n).astype("int32")
    slots = rng.permutation(2 * n + 3)[:n].astype("int32")
    slots[2::5] = -1  # only fill the batch up
    return x, w, positions, slots


def run(x, w, positions, slots, kv_heads, d, pad=0, kind="uint16", behind=0, **how):
    """q, keys and values on the host; what was not written is NaN. pad: elements behind a row of q. behind: slots that lie
    behind those of the cache."""
    nothing = NAN if kind == "uint16" else llm_fp8.NAN
    there = 2 * len(x) + 3
    cache = np.full((there + behind, kv_heads, d), nothing, kind)
    keys, values = ct.to_device(cache), ct.to_device(cache)
    width = len(w) - 2 * kv_heads * d
    whole = ct.to_device(np.full((len(x), width + pad), NAN))
    q = whole[:, :width] if pad else whole
    linear_qkv.linear_qkv(
        ct.to_device(x), ct.to_device(w), ct.to_device(positions), ct.to_device(slots),
        ct.to_device(rope_table(CONTEXT, d, 1e4)), keys[:there], values[:there], q, **how,
    )  # fmt: skip
    return whole.get(), keys.get(), values.get()


def turned(x, w, positions, d):
    """The product in fp32, bit by bit what the kernel has, as [n, heads, d], and turned in float64."""
    out = ct.empty((len(x), len(w)), "float32")
    linear(ct.to_device(x), ct.to_device(w), out)
    y = out.get().reshape(len(x), -1, d)
    table = rope_table(CONTEXT, d, 1e4)[positions].astype("float64")[:, None]
    cos, sin = table[..., 0], table[..., 1]
    a, b = y[..., 0::2].astype("float64"), y[..., 1::2].astype("float64")
    both = np.empty(y.shape)
    both[..., 0::2], both[..., 1::2] = a * cos - b * sin, a * sin + b * cos
    return y, both, np.repeat(np.hypot(a, b), 2, axis=-1) * 2.0**-22


def near(got, want, error):
    assert (np.abs(from_bf16(got) - want) <= error + np.abs(want) * HALF_ULP * 1.01).all()


@pytest.mark.parametrize("tile", [None, *SMALL], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_product_turned_and_stored(tile, shape):
    _, heads, kv_heads, d = shape
    if tile and tile.shared > ct.device().shared_per_block_optin:
        pytest.skip(f"{tile.shared} B of shared memory")
    for n in (1, 17, 130):
        x, w, positions, slots = operands(n, *shape)
        q, k, v = run(x, w, positions, slots, kv_heads, d, 6, tile=tile)
        y, both, error = turned(x, w, positions, d)
        width, there = heads * d, slots >= 0
        near(q[:, :width].reshape(n, heads, d), both[:, :heads], error[:, :heads])
        assert (q[:, width:] == NAN).all()
        of_keys = slice(heads, heads + kv_heads)
        near(k[slots[there]], both[there, of_keys], error[there, of_keys])
        np.testing.assert_array_equal(v[slots[there]], to_bf16(y[there, heads + kv_heads :]))
        others = np.setdiff1d(np.arange(len(k)), slots)
        assert (k[others] == NAN).all() and (v[others] == NAN).all()


def test_fp8():
    _, heads, kv_heads, d = shape = SHAPES[0]
    x, w, positions, slots = operands(70, *shape)
    y, both, error = turned(x, w, positions, d)
    scales = ct.rng(4).uniform(0.2, 0.4, (2, kv_heads)).astype("float32")
    q, k, v = run(
        x, w, positions, slots, kv_heads, d, kind="uint8", scales=ct.to_device(scales)
    )  # fmt: skip
    near(q.reshape(-1, heads, d), both[:, :heads], error[:, :heads])
    there = slots >= 0
    for codes, want, by in (
        (k, both[there, heads : heads + kv_heads], scales[0]),
        (v, y[there, heads + kv_heads :], scales[1]),
    ):
        want = want / by[:, None]
        half_a_step = np.maximum(np.minimum(np.abs(want), 448) / 16, 2.0**-10)
        found = llm_fp8.from_fp8(codes[slots[there]])
        assert (np.abs(found - np.clip(want, -448, 448)) <= half_a_step * 1.001).all()


def test_the_same_bits_in_every_tile_and_every_batch():
    *_, kv_heads, d = shape = SHAPES[0]
    x, w, positions, slots = operands(150, *shape)
    expected, *_ = run(x, w, positions, slots, kv_heads, d)
    for tile in SMALL:
        if tile.shared <= ct.device().shared_per_block_optin:
            found, *_ = run(x, w, positions, slots, kv_heads, d, tile=tile)
            np.testing.assert_array_equal(found, expected)
    for rows in (slice(0, 1), slice(3, 20), slice(40, 141)):
        found, *_ = run(x[rows], w, positions[rows], np.full_like(slots[rows], -1), kv_heads, d)
        np.testing.assert_array_equal(found, expected[rows])


@pytest.mark.parametrize("kind", ["uint16", "uint8"])
def test_slots_beyond_the_cache_are_skipped(kind):
    """Nothing is stored for them, neither in the cache nor behind it."""
    *_, kv_heads, d = shape = SHAPES[0]
    x, w, positions, slots = operands(20, *shape)
    slots[1::5], slots[3], slots[8] = 43 + np.arange(4), 2**31 - 1, -(2**31)  # the cache has 43
    how = {"kind": kind, "behind": 9}
    if kind == "uint8":
        how["scales"] = ct.to_device(np.ones((2, kv_heads), "float32"))
    expected = run(
        x, w, positions, np.where(slots < 43, slots, -1).astype("int32"), kv_heads, d, **how
    )
    for found, wanted in zip(run(x, w, positions, slots, kv_heads, d, **how), expected):
        np.testing.assert_array_equal(found, wanted)
    assert (expected[1][43:] == (NAN if kind == "uint16" else llm_fp8.NAN)).all()


def test_sizes_and_plans_that_are_refused():
    e = ct.empty
    good = {
        "x": e((4, 64), "uint16"), "weights": e((40, 64), "uint16"), "positions": e(4, "int32"),
        "slots": e(4, "int32"), "table": e((9, 4, 2), "float32"), "keys": e((9, 1, 8), "uint16"),
        "values": e((9, 1, 8), "uint16"), "q": e((4, 24), "uint16"),
    }  # fmt: skip
    cases = [
        ({"x": e((4, 60), "uint16")}, "a multiple of 8"),
        ({"weights": e((16, 64), "uint16")}, "cannot be"),
        ({"keys": e((9, 1, 7), "uint16"), "values": e((9, 1, 7), "uint16")}, "turn in pairs"),
        ({"tile": TILES[0]}, "64 results a thread"),
        ({"scales": e((2, 1), "float32")}, "scales are for FP8"),
    ]
    for change, message in cases:
        with pytest.raises(ValueError, match=message):
            linear_qkv.linear_qkv(**good | change)
