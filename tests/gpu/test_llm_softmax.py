"""softmax.py: every rung against NumPy in float64, masks, infinities and NaN, on a GPU."""

import numpy as np
import pytest
from llm_rows import HALF_ULP, assert_close, padded, stored, value
from pairwise import pairwise

import cudatut as ct
from cudatut.book.llm.kernels import row_softmax as module
from cudatut.book.llm.kernels.row_softmax import RUNGS, softmax
from cudatut.gpu.device import supports

KINDS = ["float32", "bf16"]
SHAPES = [
    (7, 8),
    (83, 768),
    (7, 769),
    (3, 5120),
    (3, 5125),
    (2, 8192),
    (40, 32),
    (33, 17),
    (5, 1),
    (300, 64),
]
SHAPES += [
    (4096, 8192),
    (3, 16383),
    (3, 16384),
    (3, 16392),
    (3, 16385),
    (2, 32768),
    (2, 32767),
    (2, 65536),
    (2, 65544),
    (2, 49152),
    (7, 128256),
    (3, 50257),
    (2, 131080),
    (2, 262144),
    (2, 262145),
]
MOST = {"fused": 32768, "shared": 49152, "cluster": 262144}  # columns


@pytest.fixture(autouse=True)
def needs(request):
    capability = ct.device().compute_capability
    if not supports(capability, "sm_80"):
        pytest.skip("softmax.cu needs sm_80")
    arguments = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if arguments.get("by") == "cluster" and not supports(capability, "sm_90"):
        pytest.skip("clusters need sm_90")


def ids(shape):
    return "x".join(map(str, shape)) if isinstance(shape, tuple) else None


def reference(x, scale, seen):
    """In float64, of the first seen[r] columns of row r; zeros elsewhere, and where all is -inf."""
    out = np.zeros_like(x)
    for r, count in enumerate(seen):
        y = scale * x[r, :count]
        if count and (largest := y.max()) > -np.inf:
            powers = np.exp(y - largest)
            out[r, :count] = powers / powers.sum()
    return out


def assert_right(out, want):
    out = out.get() if hasattr(out, "get") else out
    # float32: the exponent of 2 is rounded, 2^-24 of up to 126 or so, and ex2.approx.
    relative = HALF_ULP * 1.01 if out.dtype == np.uint16 else 2e-5
    assert_close(out, want, 1e-7 * want.max(initial=0) + 1e-37, relative)


def fits(kind, by, shape):
    """Not what is too long for it; what is large, once."""
    n, width = shape
    return width <= MOST.get(by, width) and (by is None or n * width <= 1 << 20)


@pairwise(ids, fits, kind=KINDS, by=[*RUNGS, None], shape=SHAPES)
def test_rungs(shape, by, kind):
    n, width = shape
    x, x64 = stored(3 * ct.rng(0).standard_normal(shape), kind)
    for out_kind in KINDS:
        out = ct.empty(shape, stored(np.zeros(1), out_kind)[0].dtype)
        softmax(ct.to_device(x), out, 0.7, by=by)
        assert_right(out, reference(x64, np.float32(0.7), [width] * n))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", RUNGS)
@pytest.mark.parametrize("width", [1, 8, 64, 77, 256, 1000, 1032])
def test_lengths_and_what_they_hide(width, by, kind):
    rng, n = ct.rng(1), 40
    lengths = rng.integers(0, width + 1, n).astype("int32")
    lengths[:6] = 0, width, 1, width + 5, -3, width - 1
    seen = np.clip(lengths, 0, width)
    x, x64 = stored(rng.standard_normal((n, width)), kind)
    for r in range(n):
        hidden = stored(np.array([np.nan]), kind)[0]
        x[r, seen[r] :] = hidden[0]
    for pad in (0, 8, 3):
        view, _ = padded(x, pad)
        out, whole = padded(np.full_like(x, 1), pad)
        softmax(view, out, 2.0, ct.to_device(lengths), by=by)
        assert_right(whole.get()[:, :width], reference(x64, 2.0, seen))
        assert np.isnan(value(whole.get()[:, width:])).all()


@pytest.mark.parametrize("by", RUNGS)
@pytest.mark.parametrize(("queries", "width"), [(64, 64), (5, 80), (33, 33), (80, 64), (1, 40)])
def test_causal(queries, width, by):
    rng, matrices = ct.rng(2), 3
    x = rng.standard_normal((matrices * queries, width)).astype("float32")
    seen = np.tile(np.clip(width - queries + 1 + np.arange(queries), 0, width), matrices)
    for r, count in enumerate(seen):
        x[r, count:] = np.nan
    out = ct.empty(x.shape, "float32")
    softmax(ct.to_device(x), out, 0.125, queries=queries, by=by)
    assert_right(out, reference(x.astype("float64"), 0.125, seen))
    lengths = rng.integers(0, width + 1, len(x)).astype("int32")
    softmax(ct.to_device(x), out, 0.125, ct.to_device(lengths), queries, by=by)
    assert_right(out, reference(x.astype("float64"), 0.125, np.minimum(seen, lengths)))


@pytest.mark.parametrize("by", RUNGS)
@pytest.mark.parametrize("width", [64, 70, 1028])
def test_infinities_and_large_numbers(width, by):
    x = ct.rng(3).standard_normal((9, width)).astype("float32")
    x[0] = -np.inf
    x[1, ::2] = -np.inf
    x[2, :-1] = -np.inf
    x[3] = np.finfo("float32").min
    x[4, : width // 2] = np.finfo("float32").min
    x[5] *= 1e4
    x[6, 0] = 3e38
    x[7] = 0
    x[8, : width // 3] = -np.inf
    out = ct.empty(x.shape, "float32")
    softmax(ct.to_device(x), out, 1.0, by=by)
    want = reference(x.astype("float64"), 1.0, [width] * 9)
    assert_close(out.get(), want, 1e-37, 4e-5)
    assert not out.get()[0].any() and np.allclose(out.get()[[3, 7]], 1 / width, rtol=1e-6)


@pytest.mark.parametrize("by", RUNGS)
def test_nan_stays_in_its_row(by):
    x = ct.rng(4).standard_normal((6, 96)).astype("float32")
    x[2, 50] = np.nan
    out, others = ct.empty(x.shape, "float32"), np.arange(6) != 2
    softmax(ct.to_device(x), out, by=by)
    assert np.isnan(out.get()[2]).all()
    assert_right(out.get()[others], reference(x.astype("float64"), 1.0, [96] * 6)[others])


@pytest.mark.parametrize("by", RUNGS)
def test_same_bits(by):
    n, width = 140, 1000
    x = ct.rng(5).standard_normal((n, width)).astype("float32")
    out, again = ct.empty(x.shape, "float32"), ct.empty(x.shape, "float32")
    softmax(ct.to_device(x), out, by=by)
    softmax(ct.to_device(x), again, by=by)
    np.testing.assert_array_equal(out.get(), again.get())
    one = ct.empty((1, width), "float32")
    softmax(ct.to_device(x[99:100]), one, by=by)
    np.testing.assert_array_equal(one.get()[0], out.get()[99])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [520, 16376, 16384, 16385, 49152, 50257])
@pytest.mark.parametrize("by", ["fused", "shared", "cluster"])
def test_in_place(by, width, kind):
    if width > MOST[by]:
        pytest.skip("a longer row than it holds")
    x, x64 = stored(ct.rng(6).standard_normal((11, width)), kind)
    on_gpu = ct.to_device(x)
    softmax(on_gpu, on_gpu, by=by)
    assert_right(on_gpu, reference(x64, 1.0, [width] * 11))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [16384, 32768, 49152, 128256])
def test_many_clusters(width, kind):
    """More than run at a time, again and again: every row of each launch has the bits of the first."""
    rows = 3 * ct.device().sm_count
    x, x64 = stored(3 * ct.rng(7).standard_normal((8, width)), kind)
    many = ct.to_device(np.tile(x, (-(-rows // 8), 1)))
    out = ct.empty(many.shape, many.dtype)
    softmax(many, out)
    first = out.get()
    assert_right(first[:8], reference(x64, 1.0, [width] * 8))
    assert (first.reshape(-1, 8, width) == first[:8]).all()
    for _ in range(5):
        ct.poison(out)
        softmax(many, out)
        np.testing.assert_array_equal(out.get(), first)


def test_numbers_and_widths_that_are_refused():
    x, out = ct.empty((4, 16), "float32"), ct.empty((4, 16), "float32")
    long = [ct.empty((1, 40000), "float32") for _ in "xo"]
    for arguments, named, message in (
        ((x, out, 0.0), {}, "scale=0.0"),
        ((x, out), {"queries": -1}, "queries=-1"),
        ((x, out), {"by": "fastest"}, "'fastest'"),
        (long, {"by": "fused"}, "holds 32768 elements"),
    ):
        with pytest.raises(ValueError, match=message):
            softmax(*arguments, **named)


def test_what_is_chosen():
    def chosen(width):
        x = ct.operands("softmax").read("x", ct.empty((1, width), "float32"), "float32", rows=1)
        return module._choice(x)

    room = (ct.device().shared_per_block_optin - module.SLOTS) // 4
    clusters = supports(ct.device().compute_capability, "sm_90")
    assert [chosen(n) for n in (8, 16383)] == ["fused", "fused"]
    assert [chosen(n) for n in (16384, 32768)] == ["cluster" if clusters else "fused"] * 2
    assert chosen(32769) == ("cluster" if clusters else "shared" if room >= 32769 else "online")
    assert chosen(128256) == ("cluster" if clusters else "online")
    assert chosen(262145) == "online"
