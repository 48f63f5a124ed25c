"""norms.py: RMSNorm, with an addition, and LayerNorm, against NumPy in float64, on a GPU."""

import numpy as np
import pytest
from llm_rows import assert_close, padded, stored, value
from pairwise import pairwise

import cudatut as ct
from cudatut.book.llm.kernels import norms, rows
from cudatut.gpu.device import supports

EPS = 1e-5
KINDS = ["float32", "bf16"]
# Tokens and sizes that other projects test too; one element, one vector, limits of a warp and of a thread.
SHAPES = [(n, dim) for n in (7, 83) for dim in (8, 768, 769, 5120, 5125, 8192)]
SHAPES += [(4096, 8), (4096, 768), (4096, 769), (4096, 8192), (1, 576), (256, 576), (1, 4096)]
SHAPES += [(3, 1), (5, 4), (2, 100), (2, 1544), (3, 2048), (2, 2056)]
WIDE = [(2, 16384), (2, 16385), (3, 32760), (2, 32767), (2, 32768)]


@pytest.fixture(autouse=True)
def needs_sm_80():
    if not supports(ct.device().compute_capability, "sm_80"):
        pytest.skip("norms.cu needs sm_80")


def ids(shape):
    return "x".join(map(str, shape)) if isinstance(shape, tuple) else None


def data(n, dim, kind, weight_kind="bf16", seed=0):
    """Rows of different sizes, weights, biases: each as stored and in float64."""
    rng = ct.rng(seed)
    x = rng.standard_normal((n, dim)) * 4.0 ** rng.integers(-3, 4, (n, 1)) + rng.standard_normal(
        (n, 1)
    )
    weight, bias = 1 + 0.3 * rng.standard_normal(dim), 0.1 * rng.standard_normal(dim)
    return stored(x, kind), stored(weight, weight_kind), stored(bias, weight_kind)


def rms(x, weight):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPS) * weight


def layer(x, weight, bias):
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered / np.sqrt(np.mean(centered**2, axis=-1, keepdims=True) + EPS) * weight + bias


def output(n, dim, pad):
    return padded(np.full((n, dim), 0xFFFF, "uint16"), pad)


def assert_padding(whole, dim):
    assert np.isnan(value(whole.get()[:, dim:])).all(), (
        "what lies between rows is nobody's business"
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES + WIDE, ids=ids)
def test_rms_norm(shape, kind):
    (x, x64), (weight, weight64), _ = data(*shape, kind)
    out = ct.empty(shape, "uint16")
    norms.rms_norm(ct.to_device(x), ct.to_device(weight), out, EPS)
    want = rms(x64, weight64)
    assert_close(out.get(), want, 2e-6 * np.abs(want).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES + WIDE, ids=ids)
def test_layer_norm(shape, kind):
    (x, x64), (weight, weight64), (bias, bias64) = data(*shape, kind)
    out = ct.empty(shape, "uint16")
    norms.layer_norm(ct.to_device(x), ct.to_device(weight), ct.to_device(bias), out, EPS)
    want = layer(x64, weight64, bias64)
    assert_close(out.get(), want, 4e-6 * np.abs(want).max() + 2e-5 * (shape[1] == 1))


@pairwise(ids, added_kind=KINDS, kind=KINDS, shape=SHAPES + WIDE)
def test_add_rms_norm(shape, kind, added_kind):
    (x, _), (weight, weight64), _ = data(*shape, kind)
    (added, _), _, _ = data(*shape, added_kind, seed=1)
    total, total64 = stored(value(x).astype("float32") + value(added).astype("float32"), kind)
    on_gpu, out = ct.to_device(x), ct.empty(shape, "uint16")
    norms.add_rms_norm(on_gpu, ct.to_device(added), ct.to_device(weight), out, EPS)
    np.testing.assert_array_equal(on_gpu.get(), total)
    want = rms(total64, weight64)
    assert_close(out.get(), want, 2e-6 * np.abs(want).max())


@pairwise(
    weight_kind=KINDS,
    kind=KINDS,
    pad_x__pad_out=[(8, 8), (8, 24), (3, 8), (8, 1), (1, 5)],
    dim=[576, 768, 1000, 77],
)
def test_rows_apart(dim, pad_x, pad_out, kind, weight_kind):
    n = 9
    (x, x64), (weight, weight64), (bias, bias64) = data(n, dim, kind, weight_kind)
    (added, added64), _, _ = data(n, dim, "bf16", seed=1)
    weight, bias = ct.to_device(weight), ct.to_device(bias)
    view, _ = padded(x, pad_x)
    out, whole = output(n, dim, pad_out)
    norms.rms_norm(view, weight, out, EPS)
    assert_close(whole.get()[:, :dim], rms(x64, weight64), 1e-5)
    assert_padding(whole, dim)

    out, whole = output(n, dim, pad_out)
    norms.layer_norm(view, weight, bias, out, EPS)
    assert_close(whole.get()[:, :dim], layer(x64, weight64, bias64), 1e-5)
    assert_padding(whole, dim)

    view, whole_x = padded(x, pad_x)
    out, whole = output(n, dim, pad_out)
    norms.add_rms_norm(view, padded(added, pad_out)[0], weight, out, EPS)
    total, total64 = stored(x64.astype("float32") + added64.astype("float32"), kind)
    np.testing.assert_array_equal(whole_x.get()[:, :dim], total)
    assert_close(whole.get()[:, :dim], rms(total64, weight64), 1e-5)
    assert_padding(whole, dim)
    assert_padding(whole_x, dim)


@pytest.mark.parametrize("most", [1, 2, 4, 8])
@pytest.mark.parametrize("dim", [1536, 4096])
def test_more_and_fewer_threads_per_row(dim, most):
    for kind in KINDS:
        (x, x64), (weight, weight64), (bias, bias64) = data(5, dim, kind)
        x, weight, bias, out = (
            ct.to_device(x),
            ct.to_device(weight),
            ct.to_device(bias),
            ct.empty((5, dim), "uint16"),
        )
        norms.rms_norm(x, weight, out, EPS, most=most)
        assert_close(out.get(), rms(x64, weight64), 1e-5)
        norms.layer_norm(x, weight, bias, out, EPS, most=most)
        assert_close(out.get(), layer(x64, weight64, bias64), 1e-5)


@pytest.mark.parametrize("dim", [64, 576, 769, 4096])
def test_a_row_has_the_same_bits_in_any_batch(dim):
    n = 150
    (x, _), (weight, _), (bias, _) = data(n, dim, "float32")
    weight, bias, many = ct.to_device(weight), ct.to_device(bias), ct.empty((n, dim), "uint16")
    for run in (
        lambda x, out: norms.rms_norm(x, weight, out, EPS),
        lambda x, out: norms.layer_norm(x, weight, bias, out, EPS),
    ):
        run(ct.to_device(x), many)
        first = many.get()
        ct.poison(many)
        run(ct.to_device(x), many)
        np.testing.assert_array_equal(many.get(), first)
        for i in (0, 77, n - 1):
            one = ct.empty((1, dim), "uint16")
            run(ct.to_device(x[i : i + 1]), one)
            np.testing.assert_array_equal(one.get()[0], first[i])


def test_a_row_of_nan_stays_alone():
    (x, x64), (weight, weight64), (bias, bias64) = data(33, 128, "float32")
    x[5, 3] = np.nan
    out, others = ct.empty(x.shape, "uint16"), np.arange(33) != 5
    norms.rms_norm(ct.to_device(x), ct.to_device(weight), out, EPS)
    assert np.isnan(value(out.get()[5])).all()
    assert_close(out.get()[others], rms(x64, weight64)[others], 1e-5)
    norms.layer_norm(ct.to_device(x), ct.to_device(weight), ct.to_device(bias), out, EPS)
    assert np.isnan(value(out.get()[5])).all()
    assert_close(out.get()[others], layer(x64, weight64, bias64)[others], 1e-5)


def test_a_large_mean_does_not_cancel():
    x = (1000 + ct.rng(0).standard_normal((6, 5120))).astype("float32")
    ones, zeros = stored(np.ones(5120), "bf16"), stored(np.zeros(5120), "bf16")
    out = ct.empty(x.shape, "uint16")
    norms.layer_norm(ct.to_device(x), ct.to_device(ones[0]), ct.to_device(zeros[0]), out, EPS)
    assert_close(out.get(), layer(x.astype("float64"), 1.0, 0.0), 3e-4)


def test_in_place_and_zeros():
    (x, x64), (weight, weight64), _ = data(40, 64, "bf16")
    x[7], x64[7] = 0, 0
    x = ct.to_device(x)
    norms.rms_norm(x, ct.to_device(weight), x, EPS)
    assert_close(x.get(), rms(x64, weight64), 1e-5)
    assert not x.get()[7].any()


def test_widths_that_are_refused():
    for width in (0, rows.WIDEST + 1):
        x, out = ct.empty((1, width), "float32"), ct.empty((1, width), "uint16")
        with pytest.raises(ValueError, match=f"not {width}"):
            norms.rms_norm(x, ct.empty(width, "uint16"), out, EPS)


def test_shares_cover_every_width():
    for vec in (1, 4, 8):
        for width in [
            *range(vec, 5000, vec),
            *range(5000 // vec * vec, rows.WIDEST + 1, 97 * vec),
            rows.WIDEST,
        ]:
            lanes, per = rows.share(width, vec)
            assert lanes * per * vec >= width > (lanes * (per - 1)) * vec and lanes in (
                4,
                8,
                16,
                32,
                64,
                128,
                256,
                512,
                1024,
            )
            assert per <= (32 if vec == 1 else 8)
