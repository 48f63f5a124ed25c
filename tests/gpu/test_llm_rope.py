"""rope.py: RoPE, keys and values into the paged cache, and copies of its blocks, against NumPy, on a GPU."""

import llm_fp8
import numpy as np
import pytest
from llm_rows import assert_close, from_bf16, padded, to_bf16
from pairwise import pairwise

import cudatut as ct
from cudatut.book.llm.kernels.rope import copy_blocks, rope_and_store, rope_table
from cudatut.book.llm.model import reference
from cudatut.gpu.device import supports

NAN = np.uint16(0xFFFF)
CONTEXT = 8192


@pytest.fixture(autouse=True)
def needs_sm_80():
    if not supports(ct.device().compute_capability, "sm_80"):
        pytest.skip("rope.cu needs sm_80")


def turned(x, positions, theta, halves):
    """x: [n, heads, d] in float64."""
    half = x.shape[-1] // 2
    angles = np.multiply.outer(positions, theta ** (-np.arange(half) / half))[:, None, :]
    cos, sin = np.cos(angles), np.sin(angles)
    first = (..., slice(None, half)) if halves else (..., slice(0, None, 2))
    second = (..., slice(half, None)) if halves else (..., slice(1, None, 2))
    out = np.empty_like(x)
    out[first] = x[first] * cos - x[second] * sin
    out[second] = x[first] * sin + x[second] * cos
    return out


def batch(n, heads, kv_heads, d, blocks=9, block_size=16, seed=0):
    rng = ct.rng(seed)
    qkv = to_bf16(rng.standard_normal((n, (heads + 2 * kv_heads) * d)))
    positions = rng.integers(0, CONTEXT, n).astype("int32")
    positions[: min(n, 2)] = (0, CONTEXT - 1)[: min(n, 2)]
    slots = rng.permutation(blocks * block_size)[:n].astype("int32")
    cache = np.full((blocks * block_size, kv_heads, d), NAN)
    return qkv, positions, slots, cache


@pairwise(
    halves=[False, True],
    inside=[False, True],
    n__heads__kv_heads=[(1, 9, 3), (7, 4, 4), (83, 6, 1), (20, 40, 8), (3, 64, 64)],
    d=[8, 64, 80, 96, 120, 128, 256],
)
def test_rope_and_store(d, n, heads, kv_heads, inside, halves):
    theta, blocks = 1e5, 9
    qkv, positions, slots, cache = batch(n, heads, kv_heads, d)
    if n > 3:
        slots[3] = -1  # only fills the batch up
    for pad in (0, 16):
        view, whole = padded(qkv, pad)
        to, whole_q = padded(np.full((n, heads * d), NAN), 2 * pad)
        keys, values = ct.to_device(cache), ct.to_device(cache)
        table = ct.to_device(rope_table(CONTEXT, d, theta))
        rope_and_store(
            view, ct.to_device(positions), ct.to_device(slots), table, keys, values,
            None if inside else to, halves,
        )  # fmt: skip

        x = from_bf16(qkv).reshape(n, -1, d)
        want = turned(x[:, : heads + kv_heads], positions.astype("float64"), theta, halves)
        got = whole.get()[:, : heads * d] if inside else whole_q.get()[:, : heads * d]
        assert_close(got.reshape(n, heads, d), want[:, :heads], 1e-6)
        assert (whole.get()[:, qkv.shape[1] :] == NAN).all() and (
            whole_q.get()[:, heads * d :] == NAN
        ).all()
        rest = slice(heads * d if inside else 0, qkv.shape[1])
        np.testing.assert_array_equal(whole.get()[:, rest], qkv[:, rest])

        there = slots >= 0
        assert_close(keys.get()[slots[there]], want[there, heads:], 1e-6)
        np.testing.assert_array_equal(
            values.get()[slots[there]], qkv.reshape(n, -1, d)[there, heads + kv_heads :]
        )
        others = np.setdiff1d(np.arange(blocks * 16), slots)
        assert (keys.get()[others] == NAN).all() and (values.get()[others] == NAN).all()


def test_same_as_the_reference():
    n, heads, kv_heads, d = 19, 9, 3, 64
    qkv, positions, slots, cache = batch(n, heads, kv_heads, d)
    keys, values, table = (
        ct.to_device(cache),
        ct.to_device(cache),
        ct.to_device(rope_table(CONTEXT, d, 1e5)),
    )
    q = ct.empty((n, heads * d), "uint16")
    rope_and_store(
        ct.to_device(qkv), ct.to_device(positions), ct.to_device(slots), table, keys, values, q
    )
    x = from_bf16(qkv).reshape(n, -1, d).astype("float32")
    want = reference.rotate(x[:, : heads + kv_heads], positions, 1e5).astype("float64")
    assert_close(q.get().reshape(n, heads, d), want[:, :heads], 2e-6)
    assert_close(keys.get()[slots], want[:, heads:], 2e-6)


def test_a_token_has_the_same_bits_in_any_batch():
    n, heads, kv_heads, d = 30, 9, 3, 64
    qkv, positions, slots, cache = batch(n, heads, kv_heads, d)
    table = ct.to_device(rope_table(CONTEXT, d, 1e5))

    def run(some):
        keys, values, q = (
            ct.to_device(cache),
            ct.to_device(cache),
            ct.empty((len(qkv[some]), heads * d), "uint16"),
        )
        rope_and_store(
            ct.to_device(qkv[some]),
            ct.to_device(positions[some]),
            ct.to_device(slots[some]),
            table,
            keys,
            values,
            q,
        )
        return q.get(), keys.get(), values.get()

    q, keys, _ = run(slice(None))
    alone, key, _ = run(slice(11, 12))
    np.testing.assert_array_equal(alone[0], q[11])
    np.testing.assert_array_equal(key[slots[11]], keys[slots[11]])


def near_fp8(codes, want, error=0.0):
    """want: what was to be stored. Rounding costs half a step: up to 1/16 of a number, near zero 2^-10."""
    want = np.clip(want, -448, 448)
    limit = np.maximum(np.abs(want) / 16, 2.0**-10) * 1.001 + error
    assert (np.abs(llm_fp8.from_fp8(codes) - want) <= limit).all()


@pytest.mark.parametrize("halves", [False, True], ids=["pairs", "halves"])
@pytest.mark.parametrize("d", [8, 64, 80, 120, 128, 256])
def test_fp8(d, halves):
    n, heads, kv_heads = 37, 6, 3
    qkv, positions, slots, _ = batch(n, heads, kv_heads, d)
    slots[5] = -1
    strange = from_bf16(qkv).reshape(n, -1, d)
    strange[7:9, heads + kv_heads :] *= [[[1e30]], [[0.02]]]
    strange[9, -1, :4] = np.nan, np.inf, -np.inf, -0.0
    qkv = to_bf16(strange.reshape(n, -1))
    scales = ct.rng(3).uniform(0.005, 2, (2, kv_heads)).astype("float32")
    nowhere = np.full((144, kv_heads, d), 0xFF, "uint8")
    arrays = [ct.to_device(x) for x in (qkv, positions, slots, rope_table(CONTEXT, d, 1e5))]
    keys, values = ct.to_device(nowhere), ct.to_device(nowhere)
    rope_and_store(*arrays, keys, values, halves=halves, scales=ct.to_device(scales))

    x, there = from_bf16(qkv).reshape(n, -1, d), slots >= 0
    want = turned(x[:, : heads + kv_heads], positions.astype("float64"), 1e5, halves)
    got = arrays[0].get().reshape(n, -1, d)
    assert_close(got[:, :heads], want[:, :heads], 1e-6)
    np.testing.assert_array_equal(got[:, heads:], qkv.reshape(n, -1, d)[:, heads:])
    near_fp8(keys.get()[slots[there]], (want[:, heads:] / scales[0][:, None])[there], 1e-3)
    np.testing.assert_array_equal(
        values.get()[slots[there]] & 0x7F,
        llm_fp8.store(x[there, heads + kv_heads :], scales[1]) & 0x7F,
    )
    others = np.setdiff1d(np.arange(144), slots)
    assert (keys.get()[others] == 0xFF).all() and (values.get()[others] == 0xFF).all()

    copies = ct.to_device(np.array([(int(slots[0]) // 16, 8), (8, 2)], "int32"))
    before = values.get().reshape(9, -1)
    copy_blocks(keys, values, copies, 16)
    after = values.get().reshape(9, -1)
    for block in (8, 2):
        np.testing.assert_array_equal(after[block], before[slots[0] // 16])


def test_far_slots():
    # A slot times the size of its keys passes 2^31.
    slots, kv_heads, d = (1 << 31) // 512 + 16, 4, 128
    try:
        keys, values = (ct.empty((slots, kv_heads, d), "uint16") for _ in range(2))
    except ct.OutOfDeviceMemory:
        pytest.skip("needs 8 GB")
    qkv, positions, _, _ = batch(2, 4, kv_heads, d)
    where = np.array([slots - 1, 3], "int32")
    table = ct.to_device(rope_table(CONTEXT, d, 1e5))
    rope_and_store(
        ct.to_device(qkv), ct.to_device(positions), ct.to_device(where), table, keys, values
    )
    for i, slot in enumerate(where):
        np.testing.assert_array_equal(
            values[int(slot) : int(slot) + 1].get()[0], qkv.reshape(2, -1, d)[i, 8:]
        )
    copies = ct.to_device(np.array([[slots // 16 - 1, 1]], "int32"))
    copy_blocks(keys, values, copies, 16)
    np.testing.assert_array_equal(values[31:32].get()[0], qkv.reshape(2, -1, d)[0, 8:])


def test_the_table():
    table, d, theta = rope_table(5000, 64, 1e5), 64, 1e5
    assert table.shape == (5000, 32, 2) and table.dtype == np.float32
    angle = 4999 * theta ** (-2 * 3 / d)
    np.testing.assert_allclose(table[4999, 3], [np.cos(angle), np.sin(angle)], rtol=1e-6)
    np.testing.assert_array_equal(rope_table(9, 4, 1.0, np.array([0.0, 1.0]))[:, 0], [[1, 0]] * 9)


@pytest.mark.parametrize("layers", [0, 1, 3])
@pytest.mark.parametrize(
    ("block_size", "kv_heads", "d"), [(16, 3, 64), (32, 1, 80), (1, 1, 8), (16, 8, 128)]
)
def test_copies_in_order(block_size, kv_heads, d, layers):
    rng, blocks = ct.rng(0), 12
    shape = ((layers,) if layers else ()) + (blocks * block_size, kv_heads, d)
    keys, values = (rng.integers(0, 1 << 16, shape).astype("uint16") for _ in range(2))
    # Written after it was read, read after it was written, onto itself, nothing, twice.
    copies = [(1, 4), (2, 1), (4, 7), (7, 2), (5, 5), (-1, 3), (3, -1), (0, 11), (11, 10), (6, 10)]
    copies += [
        (blocks, 3),
        (3, blocks),
        (3, 2**31 - 1),
        (-(2**31), 3),
    ]  # no blocks of these: nothing
    on_gpu = ct.to_device(keys), ct.to_device(values)
    copy_blocks(*on_gpu, ct.to_device(np.array(copies, "int32")), block_size)
    for array, host in zip(on_gpu, (keys, values)):
        want = host.copy().reshape(max(1, layers), blocks, -1)
        for old, new in copies:
            if 0 <= old < blocks and 0 <= new < blocks:
                want[:, new] = want[:, old]
        np.testing.assert_array_equal(array.get(), want.reshape(shape))
    copy_blocks(*on_gpu, ct.empty((0, 2), "int32"), block_size)  # nothing to do


@pytest.mark.parametrize("fp8", [False, True], ids=["bf16", "fp8"])
def test_slots_beyond_the_cache_are_skipped(fp8):
    """Queries are turned as ever; nothing is stored, neither in the cache nor behind it."""
    n, heads, kv_heads, d = 6, 4, 2, 64
    qkv, positions, _, whole = batch(n, heads, kv_heads, d)
    whole = np.full_like(whole, 0xFF, "uint8") if fp8 else whole
    slots = np.array([3, 100, 143, -1, 2**31 - 1, -(2**31)], "int32")  # the cache has 100
    table = ct.to_device(rope_table(CONTEXT, d, 1e5))
    scales = ct.to_device(np.ones((2, kv_heads), "float32")) if fp8 else None

    def run(slots):
        keys, values = ct.to_device(whole), ct.to_device(whole)
        q = ct.empty((n, heads * d), "uint16")
        rope_and_store(
            ct.to_device(qkv), ct.to_device(positions), ct.to_device(slots), table, keys[:100], values[:100], q,
            scales=scales,
        )  # fmt: skip
        return q.get(), keys.get(), values.get()

    expected = run(np.where(slots == 3, 3, -1).astype("int32"))
    for found, wanted in zip(run(slots), expected):
        np.testing.assert_array_equal(found, wanted)


def test_sizes_that_are_refused():
    def arrays(width=5 * 64, d=64):
        return (
            ct.empty((4, width), "uint16"),
            ct.empty(4, "int32"),
            ct.empty(4, "int32"),
            ct.empty((9, d // 2, 2), "float32"),
            ct.empty((32, 1, d), "uint16"),
            ct.empty((32, 1, d), "uint16"),
        )

    for wrong, message in (
        ({"width": 5 * 64 + 8}, "cannot hold"),
        ({"width": 64}, "cannot hold"),
        ({"d": 60, "width": 300}, "multiple of 8"),
    ):
        with pytest.raises(ValueError, match=message):
            rope_and_store(*arrays(**wrong))
    with pytest.raises(ValueError, match="for FP8"):
        rope_and_store(*arrays(), scales=ct.empty((2, 1), "float32"))

    def cache(*shape, dtype="uint16"):
        return ct.empty(shape, dtype), ct.empty(shape, dtype), ct.empty((1, 2), "int32")

    with pytest.raises(ValueError, match="16 are copied"):
        copy_blocks(*cache(8, 1, 8, dtype="uint8"), 1)
    for slots_of_a_block in (0, 5):
        with pytest.raises(ValueError, match=f"blocks of {slots_of_a_block}"):
            copy_blocks(*cache(32, 1, 64), slots_of_a_block)
