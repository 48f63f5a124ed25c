"""gemv.py of the part `llm`: every way to store W, every plan, ragged sizes, exact sums, bounds, bits, what is refused."""

import itertools

import numpy as np
import pytest
from pairwise import pairwise

import cudatut as ct
from cudatut.book.llm.kernels import gemv
from cudatut.book.llm.kernels.gemv import BF16, Q4_1, Q8_0, Plan, choose
from cudatut.gpu.device import supports

FORMATS = [BF16, Q8_0, Q4_1]
PLANS = [Plan(16, 8, 4), Plan(32, 4, 3), Plan(64, 2, 3), Plan(64, 2, 2), Plan(128, 2, 3)]
RESULTS = [("float32", False), ("float32", True), ("uint16", False)]


@pytest.fixture(autouse=True)
def needs_sm_80():
    if not supports(ct.device().compute_capability, "sm_80"):
        pytest.skip("gemv.cu needs sm_80")


@pytest.fixture(scope="module", autouse=True)
def compiled():
    ct.compile_ahead(
        (gemv.SOURCE, gemv.instance(format, plan, *result))
        for format in FORMATS
        for plan in PLANS
        for result in RESULTS
    )


def to_bf16(values):
    """The nearest bf16 of float32 numbers, ties to even, as uint16."""
    bits = np.ascontiguousarray(values, "float32").view("uint32").astype("uint64")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("uint16")


def from_bf16(bits):
    return (np.asarray(bits).astype("uint32") << 16).view("float32").astype("float64")


def weights(format, outputs, inputs, exact, seed=0):
    """W as it is stored; in float64; and the largest numbers that its products are made of.

    exact: such that with small whole numbers as x all sums are exact in fp32. Every number of 4 or 8 bits occurs.
    """
    rng = ct.rng(seed)
    if format is BF16:
        values = (
            rng.integers(-4, 5, (outputs, inputs))
            if exact
            else rng.standard_normal((outputs, inputs))
        )
        stored = to_bf16(values)
        return stored, from_bf16(stored), np.abs(from_bf16(stored))
    shape = outputs, inputs // 32
    d = rng.choice([0.5, 1.0, 2.0], shape) if exact else rng.uniform(0.001, 0.1, shape)
    d = d.astype("float16")
    wide_d = d.astype("float64")[..., None]
    if format is Q8_0:
        q = rng.integers(-128, 128, (*shape, 32)).astype("int8")
        parts, values, largest = (
            [d[..., None].view("uint8"), q.view("uint8")],
            wide_d * q,
            np.abs(wide_d * q),
        )
    else:
        m = (rng.integers(-8, 9, shape) if exact else rng.uniform(-1, 0, shape)).astype("float16")
        q = rng.integers(0, 16, (*shape, 32))
        halves = (q[..., :16] | q[..., 16:] << 4).astype("uint8")
        wide_m = m.astype("float64")[..., None]
        parts = [d[..., None].view("uint8"), m[..., None].view("uint8"), halves]
        values, largest = (
            wide_d * q + wide_m,
            wide_d * (q + 256) + np.abs(wide_m),
        )  # 128 are added, and taken away
    stored = np.concatenate(parts, axis=-1).reshape(outputs, -1)
    assert stored.shape == (outputs, format.row_bytes(inputs))
    return stored, values.reshape(outputs, inputs), largest.reshape(outputs, inputs)


def run(x, w, dtype="float32", add=None, **how):
    """The result on the host; `add`: what is there before, otherwise NaN."""
    out = ct.empty((len(x), len(w)), dtype) if add is None else ct.to_device(add)
    gemv.gemv(ct.to_device(x), ct.to_device(w), out, add=add is not None, **how)
    return out.get()


def named(value):
    return getattr(value, "name", None) or "x".join(map(str, value))


def named_or_own(value):
    return None if isinstance(value, int) else named(value)


@pairwise(
    named_or_own,
    fits=lambda instance, _, inputs: instance[0] is BF16 or inputs % 32 == 0,  # blocks of 32
    format__plan=list(itertools.product(FORMATS, PLANS)),
    outputs=[1, 130, 257],
    inputs=[8, 24, 32, 96, 152, 512, 576, 1536, 2080],
)
def test_every_plan(format, plan, outputs, inputs):
    if plan.shared(format) > ct.device().shared_per_block_optin:
        pytest.skip("too little shared memory")
    stored, values, _ = weights(format, outputs, inputs, exact=True)
    for n in (1, 3, 8, 17):
        x = ct.rng(n).integers(-4, 5, (n, inputs))
        expected = x @ values.T
        got = run(to_bf16(x), stored, plan=plan)
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(run(to_bf16(x), stored, "uint16", plan=plan), to_bf16(expected))
    before = ct.rng(1).integers(-99, 100, expected.shape).astype("float32")
    np.testing.assert_array_equal(run(to_bf16(x), stored, add=before, plan=plan), before + expected)


SHAPES = [
    (576, 576),
    (192, 576),
    (1536, 576),
    (576, 1536),
    (49152, 576),
    (4096, 4096),
    (8000, 992),
    (15_001, 4128),
]


@pytest.mark.parametrize("format", FORMATS, ids=named)
@pytest.mark.parametrize("shape", SHAPES, ids=named)
def test_random_numbers(format, shape):
    stored, values, largest = weights(format, *shape, exact=False)
    x = to_bf16(ct.rng(1).standard_normal((8, shape[1]), "float32"))
    exact = from_bf16(x) @ values.T
    error = (shape[1] / 32 + 32) * 2.0**-22 * (np.abs(from_bf16(x)) @ largest.T)
    assert (np.abs(run(x, stored) - exact) <= error).all()
    rounded = np.abs(from_bf16(run(x, stored, "uint16")) - exact)
    assert (rounded <= error + np.abs(exact) * 2.0**-8).all()


@pytest.mark.parametrize("format", FORMATS, ids=named)
@pytest.mark.parametrize("shape", [(576, 1536), (4001, 576), (9000, 608)], ids=named)
def test_the_same_bits_however_many_rows(format, shape):
    stored, _, _ = weights(format, *shape, exact=False)
    x = to_bf16(ct.rng(1).standard_normal((19, shape[1]), "float32"))
    expected = run(x, stored)
    for rows in (slice(0, 1), slice(2, 5), slice(18, 19), slice(6, 14)):
        for _ in range(3):
            np.testing.assert_array_equal(run(x[rows], stored), expected[rows])


def test_the_same_bits_with_less_shared_memory():
    for format in FORMATS:
        large, small = choose(format, 20_000, 4096), choose(format, 20_000, 4096, 99 << 10)
        assert large.parts == small.parts and small.shared(format) <= 99 << 10
        more = small._replace(stages=3)  # where both are the same
        stored, _, _ = weights(format, 300, 4096, exact=False)
        x = to_bf16(ct.rng(1).standard_normal((8, 4096), "float32"))
        expected = run(x, stored, plan=small)
        for plan in (large, more):
            if plan.shared(format) <= ct.device().shared_per_block_optin:
                np.testing.assert_array_equal(run(x, stored, plan=plan), expected)


@pytest.mark.parametrize("format", FORMATS, ids=named)
def test_what_lies_around_the_matrices_changes_nothing(format):
    stored, values, _ = weights(format, 37, 608, exact=True)
    x = ct.rng(1).integers(-4, 5, (3, 608))
    nan = np.full((8, stored.shape[1]), np.iinfo(stored.dtype).max, stored.dtype)
    around = ct.to_device(np.concatenate([nan, stored, nan]))  # 8 rows are a multiple of 16 bytes
    rows = ct.to_device(
        np.concatenate(
            [np.full((8, 608), 0xFFFF, "uint16"), to_bf16(x), np.full((8, 608), 0xFFFF, "uint16")]
        )
    )
    out = ct.empty((5, 37), "float32")
    gemv.gemv(rows[8:11], around[8:45], out[:3])
    np.testing.assert_array_equal(out.get()[:3], x @ values.T)
    assert np.isnan(out.get()[3:]).all()


@pytest.mark.parametrize("format", FORMATS, ids=named)
def test_a_nan_in_x_stays_in_its_row(format):
    stored, values, _ = weights(format, 70, 160, exact=True)
    x = ct.rng(1).integers(-4, 5, (8, 160))
    expected, rows = x @ values.T, to_bf16(x)
    rows[5, 77], expected[5] = 0x7FC0, np.nan
    np.testing.assert_array_equal(run(rows, stored), expected)


def test_more_bytes_than_an_int_can_count():
    outputs, inputs = 70_000, 16_384  # 2.3 GB of bf16
    if ct.device().memory_bytes < 20 << 30:
        pytest.skip("needs 20 GiB of GPU memory")
    some = ct.rng(0).integers(-4, 5, (7, inputs))
    x, stored = ct.rng(1).integers(-4, 5, (2, inputs)), np.tile(to_bf16(some), (outputs // 7, 1))
    got = run(to_bf16(x), stored)
    np.testing.assert_array_equal(got, np.tile(x @ some.T, outputs // 7))


def test_nothing_to_compute():
    assert run(np.zeros((0, 64), "uint16"), np.zeros((5, 40), "uint8")).shape == (0, 5)


def test_how_w_is_stored():
    cases = (("uint8", 360, Q4_1), ("uint8", 612, Q8_0), ("uint16", 576, BF16))
    for dtype, columns, format in cases:
        _, found = gemv.weights_of(ct.operands("gemv"), ct.empty((3, columns), dtype), 576)
        assert found is format


def test_sizes_that_are_refused():
    out = ct.empty((4, 8), "float32")
    for inputs, dtype, columns in (
        (64, "uint16", 72),
        (60, "uint16", 60),  # no multiple of 8
        (40, "uint8", 25),  # as many bytes as Q4_1 would have, were 40 a multiple of 32
    ):
        x, w = ct.empty((4, inputs), "uint16"), ct.empty((8, columns), dtype)
        with pytest.raises(ValueError, match=f"for {inputs} inputs"):
            gemv.gemv(x, w, out)
