"""activation.py: SwiGLU and the embedding's rows, against NumPy, on a GPU."""

import numpy as np
import pytest
from llm_rows import assert_close, from_bf16, padded, to_bf16, value

import cudatut as ct
from cudatut.book.llm.kernels.activation import embed, gather, swiglu
from cudatut.gpu.device import supports

SHAPES = [
    (1, 1536),
    (7, 1536),
    (83, 768),
    (5, 1537),
    (3, 11008),
    (2, 14336),
    (300, 8),
    (9, 1),
    (40, 77),
]
SHAPES += [(4096, 1536), (2048, 11008)]


@pytest.fixture(autouse=True)
def needs_sm_80():
    if not supports(ct.device().compute_capability, "sm_80"):
        pytest.skip("activation.cu needs sm_80")


def ids(shape):
    return "x".join(map(str, shape))


def want_swiglu(gate_up):
    x = from_bf16(gate_up)
    gate, up = np.split(x, 2, axis=1)
    with np.errstate(over="ignore"):
        return gate / (1 + np.exp(-gate)) * up


@pytest.mark.parametrize("pads", [(0, 0), (16, 8), (6, 3)], ids=["dense", "apart", "odd"])
@pytest.mark.parametrize("shape", SHAPES, ids=ids)
def test_swiglu(shape, pads):
    n, ffn = shape
    gate_up = to_bf16(3 * ct.rng(0).standard_normal((n, 2 * ffn)))
    view, _ = padded(gate_up, pads[0])
    out, whole = padded(np.full(shape, 0xFFFF, "uint16"), pads[1])
    swiglu(view, out)
    want = want_swiglu(gate_up)
    assert_close(whole.get()[:, :ffn], want, 1e-36)
    assert np.isnan(value(whole.get()[:, ffn:])).all()
    # Rounded once, so that but for ties the result is the nearest number.
    assert (whole.get()[:, :ffn] == to_bf16(want)).mean() > 0.999


def test_swiglu_of_large_and_small_numbers():
    gate = np.array(
        [0, -0.0, 1e-30, -1e-30, 80, -80, 90, -90, 1e4, -1e4, 1e30, -1e30, 3e38, -3e38, 1, -1],
        "float32",
    )
    gate_up = to_bf16(np.concatenate([np.tile(gate, 3), np.repeat([1.0, -2.0, 0.5], 16)])[None])
    out = ct.empty((1, 48), "uint16")
    swiglu(ct.to_device(gate_up), out)
    want = np.clip(want_swiglu(gate_up), -np.inf, np.inf)
    inside = np.abs(want) < 3.2e38
    assert_close(out.get()[inside], want[inside], 1e-35)
    assert (
        np.isinf(value(out.get()[~inside])).all()
        and (np.sign(value(out.get())[~inside]) == np.sign(want[~inside])).all()
    )


def test_swiglu_same_bits():
    gate_up = to_bf16(ct.rng(1).standard_normal((600, 3072)))
    out, one = ct.empty((600, 1536), "uint16"), ct.empty((1, 1536), "uint16")
    swiglu(ct.to_device(gate_up), out)
    swiglu(ct.to_device(gate_up[333:334]), one)
    np.testing.assert_array_equal(one.get()[0], out.get()[333])


def test_a_nan_stays_where_it_is():
    gate_up = to_bf16(ct.rng(2).standard_normal((4, 64)))
    gate_up[1, 5] = gate_up[2, 32 + 9] = 0xFFFF
    out = ct.empty((4, 32), "uint16")
    swiglu(ct.to_device(gate_up), out)
    assert np.argwhere(np.isnan(value(out.get()))).tolist() == [[1, 5], [2, 9]]


def q8_blocks(rng, vocab, dim):
    """Random Q8_0: bytes [vocab, dim / 32 * 34], and the weights in float32."""
    scales = rng.uniform(-2, 2, (vocab, dim // 32, 1)).astype("float16")
    scales[0, 0], scales[-1, -1] = 0, np.float16(6e-8)  # none, and a subnormal one
    q = rng.integers(-128, 128, (vocab, dim // 32, 32)).astype("int8")
    bytes = np.concatenate([scales.view("uint8"), q.view("uint8")], axis=2)
    return bytes.reshape(vocab, -1), (scales.astype("float32") * q).reshape(vocab, dim)


@pytest.mark.parametrize("dim", [32, 64, 576, 2048, 4096])
@pytest.mark.parametrize("n", [1, 7, 83])
def test_embedding(n, dim):
    rng, vocab = ct.rng(n), 301
    tokens = rng.integers(0, vocab, n).astype("int32")
    tokens[0] = vocab - 1
    blocks, weights = q8_blocks(rng, vocab, dim)
    x = ct.empty((n, dim), "float32")
    embed(ct.to_device(tokens), ct.to_device(blocks), x)
    np.testing.assert_array_equal(x.get(), weights[tokens])
    ct.poison(x)
    bits = to_bf16(weights)
    embed(ct.to_device(tokens), ct.to_device(bits), x)
    np.testing.assert_array_equal(x.get(), from_bf16(bits)[tokens].astype("float32"))


@pytest.mark.parametrize("dim", [4, 64, 576, 4100])
def test_gather(dim):
    rng = ct.rng(0)
    x, indices = (
        rng.standard_normal((50, dim)).astype("float32"),
        rng.integers(0, 50, 33).astype("int32"),
    )
    x[0] = np.nan
    indices[indices == 0] = 49
    out = ct.empty((33, dim), "float32")
    gather(ct.to_device(indices), ct.to_device(x), out)
    np.testing.assert_array_equal(out.get(), x[indices])
    gather(ct.empty(0, "int32"), ct.to_device(x), ct.empty((0, dim), "float32"))
    with pytest.raises(ValueError):
        gather(ct.to_device(indices), ct.to_device(x[:, :3].copy()), ct.empty((33, 3), "float32"))


def test_the_last_row_of_a_large_embedding():
    vocab, dim = 140_000, 16384  # 2.3e9 elements, past 2^31
    try:
        embedding = ct.empty((vocab, dim), "uint16")
    except ct.OutOfDeviceMemory:
        pytest.skip("needs 4.6 GB")
    row = to_bf16(ct.rng(3).standard_normal((1, dim)))
    embedding[vocab - 1 : vocab].set(row)
    x = ct.empty((1, dim), "float32")
    embed(ct.to_device(np.array([vocab - 1], "int32")), embedding, x)
    np.testing.assert_array_equal(x.get(), from_bf16(row).astype("float32"))


def test_sizes_that_are_refused():
    with pytest.raises(ValueError, match="cannot be gate and up"):
        swiglu(ct.empty((4, 31), "uint16"), ct.empty((4, 15), "uint16"))
    both = ct.empty((4, 32), "uint16")
    with pytest.raises(ValueError, match="shares memory"):
        swiglu(both, both[:, :16])  # rows apart, each in the row that is read
    tokens = ct.empty(4, "int32")
    for dim, (columns, dtype) in ((66, (66, "uint16")), (48, (48 // 32 * 34, "uint8"))):
        with pytest.raises(ValueError, match="a multiple of"):
            embed(tokens, ct.empty((9, columns), dtype), ct.empty((4, dim), "float32"))
