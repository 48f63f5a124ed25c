"""fused.py of the part `llm`: norm, product and what follows it in one launch, against NumPy, on a GPU."""

import llm_fp8
import numpy as np
import pytest
from llm_rows import HALF_ULP, from_bf16, to_bf16
from pairwise import pairwise

import cudatut as ct
from cudatut.book.llm.kernels import fused, gemv
from cudatut.book.llm.kernels.gemv import BF16, Q4_1, Q8_0, Plan
from cudatut.book.llm.kernels.rope import rope_table
from cudatut.gpu.device import supports

FORMATS = [BF16, Q8_0, Q4_1]
PLANS = [Plan(16, 8, 4), Plan(16, 8, 2), Plan(32, 4, 3), Plan(64, 2, 3)]
NAN = np.uint16(0x7FC0)
EPS, CONTEXT, SLOTS = 1e-5, 512, 50


@pytest.fixture(autouse=True)
def needs_sm_80():
    if not supports(ct.device().compute_capability, "sm_80"):
        pytest.skip("fused.cu needs sm_80")


@pytest.fixture(scope="module", autouse=True)
def compiled():
    ct.compile_ahead(
        (fused.SOURCE, fused.instance(base, format, plan))
        for base in ("norm_qkv", "norm_gate_up")
        for format in FORMATS
        for plan in PLANS
    )


def named(value):
    return getattr(value, "name", None) or "x".join(map(str, value))


def matrix(format, outputs, inputs, exact=False, seed=0):
    """W as it is stored; in float64; and the largest numbers that its products are made of.

    exact: such that with x of powers of two all sums are exact in fp32.
    """
    rng = ct.rng(seed)
    if format is BF16:
        some = rng.standard_normal((outputs, inputs), "float32")
        stored = to_bf16(rng.integers(-4, 5, some.shape) if exact else some)
        return stored, from_bf16(stored), np.abs(from_bf16(stored))
    shape = outputs, inputs // 32
    d = rng.choice([0.5, 1.0, 2.0], shape) if exact else rng.uniform(0.001, 0.1, shape)
    d = d.astype("float16")
    wide_d = d.astype("float64")[..., None]
    if format is Q8_0:
        q = rng.integers(-128, 128, (*shape, 32)).astype("int8")
        parts, values = [d[..., None].view("uint8"), q.view("uint8")], wide_d * q
        largest = np.abs(values)
    else:
        m = rng.integers(-8, 9, shape) if exact else rng.uniform(-1, 0, shape)
        m = m.astype("float16")
        wide_m = m.astype("float64")[..., None]
        q = rng.integers(0, 16, (*shape, 32))
        halves = (q[..., :16] | q[..., 16:] << 4).astype("uint8")
        parts = [d[..., None].view("uint8"), m[..., None].view("uint8"), halves]
        values = wide_d * q + wide_m
        largest = wide_d * (q + 256) + np.abs(wide_m)  # 128 are added, and taken away
    stored = np.concatenate(parts, axis=-1).reshape(outputs, -1)
    return stored, values.reshape(outputs, inputs), largest.reshape(outputs, inputs)


def normed(x, weight):
    """In float64, and how far the kernel's bf16 may be from it: a rounding, and a few of fp32 before."""
    wide = x.astype("float64")
    y = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + EPS) * weight
    return y, np.abs(y) * (HALF_ULP * 1.001 + (x.shape[1] / 128 + 8) * 2.0**-23)


def product(x, weight, values, largest):
    """In float64, and a bound for the error of the kernel's fp32."""
    y, off = normed(x, weight)
    inputs = x.shape[1]
    error = off @ np.abs(values).T
    error += (inputs / 32 + 32) * 2.0**-22 * ((np.abs(y) + off) @ largest.T)
    return y @ values.T, error


def rows(n, dim, scale=1.0, seed=1):
    """x and the weights of the norm."""
    rng = ct.rng(seed)
    x = rng.standard_normal((n, dim), "float32") * np.float32(3)
    return x, (scale * rng.uniform(0.2, 2, dim)).astype("float32")


def run_qkv(
    x, weight, stored, positions, slots, heads, kv_heads, d, pad=0, kind="uint16", behind=0, **how
):
    """q, keys and values on the host; what was not written is NaN. pad: elements behind a row of q. behind: slots that lie
    behind those of the cache."""
    nothing = NAN if kind == "uint16" else llm_fp8.NAN
    cache = np.full((SLOTS + behind, kv_heads, d), nothing, kind)
    keys, values = ct.to_device(cache), ct.to_device(cache)
    whole = ct.to_device(np.full((len(x), heads * d + pad), NAN))
    q = whole[:, : heads * d] if pad else whole
    fused.norm_qkv(
        ct.to_device(x), ct.to_device(weight), ct.to_device(stored),
        ct.to_device(positions), ct.to_device(slots), ct.to_device(rope_table(CONTEXT, d, 1e4)),
        keys[:SLOTS], values[:SLOTS], q, EPS, **how,
    )  # fmt: skip
    return whole.get(), keys.get(), values.get()


def places(n, seed=2):
    rng = ct.rng(seed)
    positions = rng.integers(0, CONTEXT, n).astype("int32")
    positions[0] = CONTEXT - 1
    slots = rng.permutation(SLOTS)[:n].astype("int32")
    if n > 2:
        slots[2] = -1  # only fills the batch up
    return positions, slots


def turned(y, error, positions, d):
    """y: [n, heads, d]; pairs are neighbors."""
    table = rope_table(CONTEXT, d, 1e4)[positions].astype("float64")[:, None]
    cos, sin = table[..., 0], table[..., 1]
    a, b, a_off, b_off = y[..., 0::2], y[..., 1::2], error[..., 0::2], error[..., 1::2]
    out, off = np.empty_like(y), np.empty_like(y)
    out[..., 0::2], out[..., 1::2] = a * cos - b * sin, a * sin + b * cos
    off[..., 0::2] = a_off * abs(cos) + b_off * abs(sin)
    off[..., 1::2] = a_off * abs(sin) + b_off * abs(cos)
    size = np.repeat(np.hypot(a, b), 2, axis=-1)
    return out, off + size * 2.0**-22


def near(got, want, error):
    found = from_bf16(got)
    wrong = ~(np.abs(found - want) <= error + (np.abs(want) + error) * HALF_ULP * 1.01)
    assert not wrong.any(), (wrong.sum(), wrong.size, np.argwhere(wrong)[:3])


# dim, heads, KV heads, head_dim
QKV = [(576, 9, 3, 64), (96, 3, 1, 16), (64, 1, 1, 2), (1600, 5, 5, 10), (160, 2, 1, 128)]


@pairwise(
    lambda value: named(value) if value else "chosen",
    fits=lambda format, _, shape: format is BF16 or shape[0] % 32 == 0,  # blocks of 32
    format=FORMATS,
    plan=[None, *PLANS],
    shape=[*QKV, (24, 3, 1, 8), (1000, 2, 2, 24)],
)
def test_norm_qkv(format, plan, shape):
    dim, heads, kv_heads, d = shape
    stored, values, largest = matrix(format, (heads + 2 * kv_heads) * d, dim)
    for n in (1, 3, 8):
        x, weight = rows(n, dim)
        positions, slots = places(n)
        q, k, v = run_qkv(x, weight, stored, positions, slots, heads, kv_heads, d, 6, plan=plan)
        y, error = (
            a.reshape(n, heads + 2 * kv_heads, d) for a in product(x, weight, values, largest)
        )
        both, off = turned(y, error, positions, d)
        width = heads * d
        near(q[:, :width].reshape(n, heads, d), both[:, :heads], off[:, :heads])
        assert (q[:, width:] == NAN).all()
        kept = slots >= 0
        keys, last = slice(heads, heads + kv_heads), slice(heads + kv_heads, None)
        near(k[slots[kept]], both[kept, keys], off[kept, keys])
        near(v[slots[kept]], y[kept, last], error[kept, last])
        others = np.setdiff1d(np.arange(SLOTS), slots)
        assert (k[others] == NAN).all() and (v[others] == NAN).all()


@pytest.mark.parametrize("format", FORMATS, ids=named)
@pytest.mark.parametrize("shape", [*QKV[:2], (1024, 2, 2, 80)], ids=named)
def test_fp8(format, shape):
    dim, heads, kv_heads, d = shape
    stored, values, largest = matrix(format, (heads + 2 * kv_heads) * d, dim)
    for n in (1, 8):
        x, weight = rows(n, dim)
        positions, slots = places(n)
        y, error = (
            a.reshape(n, heads + 2 * kv_heads, d) for a in product(x, weight, values, largest)
        )
        both, off = turned(y, error, positions, d)
        size = np.abs(y[:, heads:]).reshape(n, 2, -1).max(axis=(0, 2))
        scales = (size[:, None] * ct.rng(4).uniform(0.001, 0.01, (2, kv_heads))).astype("float32")
        q, k, v = run_qkv(
            x, weight, stored, positions, slots, heads, kv_heads, d, kind="uint8",
            scales=ct.to_device(scales),
        )  # fmt: skip
        near(q.reshape(n, heads, d), both[:, :heads], off[:, :heads])
        keys, last = slice(heads, heads + kv_heads), slice(heads + kv_heads, None)
        there = slots >= 0
        for codes, want, bound, by in (
            (k, both[there, keys], off[there, keys], scales[0]),
            (v, y[there, last], error[there, last], scales[1]),
        ):
            want, bound = want / by[:, None], bound / by[:, None]
            half_a_step = np.maximum((np.minimum(np.abs(want), 448) + bound) / 16, 2.0**-10)
            found = llm_fp8.from_fp8(codes[slots[there]])
            assert (np.abs(found - np.clip(want, -448, 448)) <= bound + half_a_step * 1.001).all()
            others = np.setdiff1d(np.arange(SLOTS), slots)
            assert (codes[others] == llm_fp8.NAN).all()


@pytest.mark.parametrize("format", FORMATS, ids=named)
@pytest.mark.parametrize("plan", [None, *PLANS], ids=lambda p: named(p) if p else "chosen")
@pytest.mark.parametrize("shape", [(576, 1536), (96, 8), (800, 72), (72, 264)], ids=named)
def test_norm_gate_up(format, plan, shape):
    dim, ffn = shape
    if format is not BF16 and dim % 32:
        pytest.skip("blocks of 32")
    stored, values, largest = matrix(format, 2 * ffn, dim)
    ordered = fused.interleave(stored)
    for n in (1, 3, 8):
        x, weight = rows(n, dim, 2 / np.sqrt((values**2).sum(axis=1).mean()))
        out = ct.empty((n, ffn), "uint16")
        fused.norm_gate_up(
            ct.to_device(x), ct.to_device(weight), ct.to_device(ordered), out, EPS, plan=plan
        )
        y, error = product(x, weight, values, largest)
        gate, up, off, up_off = y[:, :ffn], y[:, ffn:], error[:, :ffn], error[:, ffn:]
        want = gate / (1 + np.exp(-gate)) * up
        # The slope of silu is at most 1.1.
        bound = 1.1 * off * (np.abs(up) + up_off) + np.abs(gate) * up_off
        near(out.get(), want, bound + np.abs(want) * 2.0**-20)


@pytest.mark.parametrize("format", FORMATS, ids=named)
@pytest.mark.parametrize("plan", PLANS, ids=named)
@pytest.mark.parametrize("dim", [8, 24, 32, 96, 152, 576, 800, 2080])
def test_exact_sums(format, plan, dim):
    """Numbers of one size are normalized to 1 and -1: no weight can be missing in any sum."""
    if format is not BF16 and dim % 32:
        pytest.skip("blocks of 32")
    heads, kv_heads, d, ffn = 5, 1, 8, 40
    for n in (1, 3, 8):
        rng = ct.rng(n)
        signs, weight = rng.choice([-1.0, 1.0], (n, dim)), rng.choice([0.5, 1.0, 2.0], dim)
        x, weight = (signs * 3).astype("float32"), weight.astype("float32")
        stored, values, _ = matrix(format, (heads + 2 * kv_heads) * d, dim, exact=True)
        want = to_bf16(signs * weight @ values.T)
        where = np.zeros(n, "int32"), np.arange(n, dtype="int32") + 9  # nothing is turned
        q, k, v = run_qkv(x, weight, stored, *where, heads, kv_heads, d, plan=plan)
        width, slots = heads * d, slice(9, 9 + n)
        np.testing.assert_array_equal(from_bf16(q), from_bf16(want[:, :width]))
        np.testing.assert_array_equal(from_bf16(k[slots, 0]), from_bf16(want[:, width:-d]))
        np.testing.assert_array_equal(from_bf16(v[slots, 0]), from_bf16(want[:, -d:]))

        weight /= 64  # gates that are neither 0 nor 1 in the end
        stored, values, _ = matrix(format, 2 * ffn, dim, exact=True)
        gate, up = np.split(signs * weight @ values.T, 2, axis=1)
        out, ordered = ct.empty((n, ffn), "uint16"), ct.to_device(fused.interleave(stored))
        fused.norm_gate_up(ct.to_device(x), ct.to_device(weight), ordered, out, EPS, plan=plan)
        want = gate / (1 + np.exp(-gate)) * up
        near(out.get(), want, np.abs(want) * 2.0**-18 + 1e-30)  # e^88 is infinite in fp32


@pytest.mark.parametrize("format", FORMATS, ids=named)
def test_rows_as_long_as_they_may_be(format):
    stored, values, largest = matrix(format, 48, 4096)
    x, weight = rows(8, 4096)
    positions, slots = places(8)
    q, k, v = run_qkv(x, weight, stored, positions, slots, 1, 1, 16)
    y, error = (a.reshape(8, 3, 16) for a in product(x, weight, values, largest))
    both, off = turned(y, error, positions, 16)
    near(q[:, None], both[:, :1], off[:, :1])
    kept = slots >= 0
    near(k[slots[kept]], both[kept, 1:2], off[kept, 1:2])
    near(v[slots[kept]], y[kept, 2:], error[kept, 2:])


@pytest.mark.parametrize("format", FORMATS, ids=named)
def test_the_same_bits_however_many_rows(format):
    x, weight = rows(8, 576)
    positions, slots = places(8)
    stored, _, _ = matrix(format, 192, 576)
    q, keys, values = run_qkv(x, weight, stored, positions, slots, 4, 1, 32)
    out = ct.empty((8, 96), "uint16")
    d = [ct.to_device(a) for a in (weight, fused.interleave(stored))]
    fused.norm_gate_up(ct.to_device(x), *d, out, EPS)
    for some in (slice(0, 1), slice(2, 5), slice(7, 8), slice(0, 8)):
        for plan in (None, Plan(16, 8, 2), Plan(16, 8, 3)):
            one = run_qkv(
                x[some], weight, stored, positions[some], slots[some], 4, 1, 32, plan=plan
            )
            np.testing.assert_array_equal(one[0], q[some])
            for got, want in zip(one[1:], (keys, values)):
                kept = slots[some][slots[some] >= 0]
                np.testing.assert_array_equal(got[kept], want[kept])
            less = ct.empty((len(x[some]), 96), "uint16")
            fused.norm_gate_up(ct.to_device(x[some]), *d, less, EPS, plan=plan)
            np.testing.assert_array_equal(less.get(), out.get()[some])


@pytest.mark.parametrize("format", FORMATS, ids=named)
def test_a_nan_in_x_stays_in_its_row(format):
    x, weight = rows(5, 160)
    stored, _, _ = matrix(format, 48, 160)
    d = [ct.to_device(a) for a in (weight, fused.interleave(stored))]
    good, bad = ct.empty((5, 24), "uint16"), ct.empty((5, 24), "uint16")
    fused.norm_gate_up(ct.to_device(x), *d, good, EPS)
    x[3, 77] = np.nan
    fused.norm_gate_up(ct.to_device(x), *d, bad, EPS)
    assert np.isnan(from_bf16(bad.get()[3])).all()
    others = [0, 1, 2, 4]
    np.testing.assert_array_equal(bad.get()[others], good.get()[others])


def test_what_lies_around_the_arrays_changes_nothing():
    for format in FORMATS:
        stored, _, _ = matrix(format, 48, 160)
        x, weight = rows(3, 160)
        want, got = ct.empty((3, 24), "uint16"), ct.to_device(np.full((5, 24), NAN))
        scale = ct.to_device(weight)
        fused.norm_gate_up(ct.to_device(x), scale, ct.to_device(stored), want, EPS)
        nan = np.full((8, stored.shape[1]), np.iinfo(stored.dtype).max, stored.dtype)
        around = ct.to_device(np.concatenate([nan, stored, nan]))
        wide = np.full((19, 160), np.nan, "float32")
        wide[8:11] = x
        fused.norm_gate_up(ct.to_device(wide)[8:11], scale, around[8:56], got[:3], EPS)
        np.testing.assert_array_equal(got.get()[:3], want.get())
        assert (got.get()[3:] == NAN).all()


def test_the_order_of_gates_and_ups():
    gate_up = np.arange(64, dtype="uint16").reshape(32, 2)
    found = fused.interleave(gate_up)[:, 0] // 2
    wanted = [*range(8), *range(16, 24), *range(8, 16), *range(24, 32)]
    assert found.tolist() == wanted
    with pytest.raises(ValueError, match="24 rows"):
        fused.interleave(np.zeros((24, 4), "uint8"))


def test_nothing_to_compute():
    x, out = ct.empty((0, 64), "float32"), ct.empty((0, 8), "uint16")
    weight, stored = ct.empty(64, "float32"), ct.empty((16, 40), "uint8")
    fused.norm_gate_up(x, weight, stored, out, EPS)


@pytest.mark.parametrize("kind", ["uint16", "uint8"])
def test_slots_beyond_the_cache_are_skipped(kind):
    """Nothing is stored for them, neither in the cache nor behind it."""
    dim, heads, kv_heads, d = QKV[0]
    x, weight = rows(8, dim)
    stored = ct.rng(3).standard_normal(((heads + 2 * kv_heads) * d, dim), "float32")
    stored = to_bf16(stored)
    positions, slots = places(8)
    slots[[1, 4, 6, 7]] = SLOTS, SLOTS + 3, 2**31 - 1, -(2**31)
    how = {"kind": kind, "behind": 9}
    if kind == "uint8":
        how["scales"] = ct.to_device(np.ones((2, kv_heads), "float32"))
    inside = np.where((slots >= 0) & (slots < SLOTS), slots, -1).astype("int32")
    arrays, shape = (x, weight, stored, positions), (heads, kv_heads, d)
    expected = run_qkv(*arrays, inside, *shape, **how)
    for found, wanted in zip(run_qkv(*arrays, slots, *shape, **how), expected):
        np.testing.assert_array_equal(found, wanted)
    assert (expected[1][SLOTS:] == (NAN if kind == "uint16" else llm_fp8.NAN)).all()


def test_sizes_that_are_refused():
    def e(dtype, *shape):
        return ct.empty(shape, dtype)

    x, weight = e("float32", 4, 64), e("float32", 64)
    good = {
        "x": x, "weight": weight, "weights": e("uint8", 48, 40), "positions": e("int32", 4),
        "slots": e("int32", 4), "table": e("float32", 9, 8, 2),
        "keys": e("uint16", 9, 1, 16), "values": e("uint16", 9, 1, 16),
        "q": e("uint16", 4, 16), "eps": EPS,
    }  # fmt: skip
    cases = [
        ({"x": e("float32", 9, 64)}, "x has 9 rows"),
        ({"x": e("float32", 4, 72), "weight": e("float32", 72)}, "for 72 inputs"),
        ({"weights": e("uint8", 40, 40)}, "40 rows of weights"),
        ({"weights": e("uint8", 32, 40)}, "32 rows of weights"),
        ({"keys": e("uint16", 9, 1, 3), "values": e("uint16", 9, 1, 3)}, "even number"),
    ]
    for change, message in cases:
        with pytest.raises(ValueError, match=message):
            fused.norm_qkv(**good | change)
    with pytest.raises(ValueError, match="40 rows of weights"):
        fused.norm_gate_up(x, weight, e("uint8", 40, 40), e("uint16", 4, 20), EPS)
    with pytest.raises(ValueError, match="rows of 20000"):
        fused.choose(BF16, 960, 20_000)
    assert gemv.ROWS == fused.ROWS
