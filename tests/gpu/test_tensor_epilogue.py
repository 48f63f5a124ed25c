"""Epilogues of final.cu: every way that bias, activation, scale and residual can take to C."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.numbers import bf16
from cudatut.book.tensor.gemm import epilogue, gemm
from cudatut.gpu.device import supports


@pytest.fixture(autouse=True)
def needs_hopper():
    if not supports(ct.device().compute_capability, "sm_90a"):
        pytest.skip("final.cu needs sm_90a")


def fused(
    m, n, k, activation="none", dtype="uint16", bias=True, residual="R", by_tma=True, beta=-1.0, **how
):  # fmt: skip
    """C of whole numbers, as float32, and what it should be. residual: 'R', 'C' (in place) or '' (none)."""
    rng = ct.rng(m + 7 * n + 49 * k)
    a, b, r = (rng.integers(-4, 5, shape) for shape in ((m, k), (k, n), (m, n)))
    add = rng.integers(-8, 9, n)
    stored = (lambda x: x.astype("float32")) if dtype == "float32" else bf16.to_bf16
    beta = beta if residual else 0.0
    nan = np.full((m, n), np.nan, "float32")
    c = ct.to_device(stored(r if residual == "C" else nan))
    some = epilogue.Epilogue(
        activation,
        ct.to_device(bf16.to_bf16(add)) if bias else None,
        ct.to_device(stored(r if residual == "R" else nan)) if residual != "C" else None,
        0.5,
        by_tma,
    )
    gemm.prepare(
        ct.to_device(bf16.to_bf16(a)), ct.to_device(bf16.to_bf16(b)), c, 2.0, beta, epilogue=some, **how
    )()  # fmt: skip
    want = 0.5 * epilogue.reference(2 * (a @ b) + (add if bias else 0), activation) + beta * r
    if dtype == "float32":
        return c.get(), want.astype("float32")
    return bf16.to_float(c.get()), bf16.to_float(bf16.to_bf16(want))


SHAPES = [
    (1, 1, 1),
    (127, 255, 63),
    (136, 264, 200),
    (257, 131, 33),
    (300, 520, 1000),
    (64, 128, 0),
]


@pytest.mark.parametrize("residual", ["R", "C", ""])
@pytest.mark.parametrize("by_tma", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_shapes(shape, by_tma, residual):
    np.testing.assert_array_equal(*fused(*shape, by_tma=by_tma, residual=residual))


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("shape", [(300, 520, 1000), (700, 776, 136)])
def test_every_plan(shape, plain):
    """Whole tiles and shares of them, by every tile."""
    for tile in [gemm.PLAIN] if plain else gemm.TILES:
        for plan in gemm.plans(*shape, tile, ct.device().sm_count):
            got, want = fused(*shape, "relu", plan=plan._replace(plain=plain))
            np.testing.assert_array_equal(got, want, err_msg=str(plan))


@pytest.mark.parametrize("residual", ["R", ""])
@pytest.mark.parametrize("k", [8, 72])
def test_many_tiles_for_each_block(k, residual):
    """Boxes and phases go on from tile to tile; with few steps the next tile comes while the last one is stored."""
    for tile in gemm.TILES:
        plan = gemm.Plan(
            tile, 2, ct.cdiv(1500, 128 * tile.cluster) * ct.cdiv(1032, tile.columns), 0
        )
        got, want = fused(1500, 1032, k, residual=residual, plan=plan)
        np.testing.assert_array_equal(got, want, err_msg=str(tile))


@pytest.mark.parametrize("by_tma", [True, False])
@pytest.mark.parametrize("residual", ["R", ""])
def test_again_and_again(residual, by_tma):
    """Many tiles for every block, and many launches: a race of boxes would show at some time."""
    m, n, k = 4096, 1536, 256
    rng = ct.rng(3)
    a, b, r = (rng.integers(-4, 5, shape) for shape in ((m, k), (k, n), (m, n)))
    on_gpu = [ct.to_device(bf16.to_bf16(one)) for one in (a, b, r)]
    c = ct.empty((m, n), "uint16")
    some = epilogue.Epilogue("relu", None, on_gpu[2] if residual else None, 1.0, by_tma)
    run = gemm.prepare(*on_gpu[:2], c, 1.0, 2.0 if residual else 0.0, epilogue=some)
    want = np.maximum(a @ b, 0) + (2 * r if residual else 0)
    for _ in range(20):
        ct.poison(c)
        run()
        np.testing.assert_array_equal(bf16.to_float(c.get()), bf16.to_float(bf16.to_bf16(want)))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("residual", ["R", "C", ""])
def test_float32(bias, residual):
    np.testing.assert_array_equal(
        *fused(257, 515, 333, dtype="float32", bias=bias, residual=residual)
    )


@pytest.mark.parametrize("activation", epilogue.ACTIVATIONS)
def test_activations(activation):
    """Beside float64, where they change and far out."""
    x = np.concatenate([np.linspace(-12, 12, 8000), [-3e38, 3e38, np.inf, np.nan]])
    x = bf16.to_float(bf16.to_bf16(x)).astype("float64")
    with np.errstate(all="ignore"):
        want = epilogue.reference(x, activation)
    bias = ct.to_device(bf16.to_bf16(np.resize(x, 8008)))
    c = ct.to_device(np.zeros((1, 8008), "float32"))
    zero = ct.to_device(np.zeros((1, 8), "uint16"))
    weights = ct.to_device(np.zeros((8, 8008), "uint16"))
    gemm.prepare(zero, weights, c, epilogue=epilogue.Epilogue(activation, bias))()
    got = c.get()[0, : len(x)]
    np.testing.assert_allclose(got[:8000], want[:8000], rtol=2e-5, atol=2e-6)
    if activation != "none":
        assert got[8000] == 0
    assert got[8001] > 1e38 and got[8002] == np.inf and np.isnan(got[8003])


@pytest.mark.parametrize("activation", ["none", "relu"])
def test_after(activation):
    """The kernel of its own, also in place."""
    rng = ct.rng(2)
    for m, n in ((1, 8), (37, 264)):
        c, r = (rng.integers(-20, 21, (m, n)) for _ in "cr")
        b = rng.integers(-8, 9, n)
        on_gpu = [ct.to_device(bf16.to_bf16(x)) for x in (c, b, r)]
        epilogue.after(on_gpu[0], on_gpu[0], epilogue.Epilogue(activation, *on_gpu[1:]))()
        want = epilogue.reference(c + b, activation) + r
        np.testing.assert_array_equal(bf16.to_float(on_gpu[0].get()), want)


def test_epilogues_that_are_refused():
    for some, dtype, message in (
        (epilogue.Epilogue("swish"), "uint16", "activation is one of"),
        (epilogue.Epilogue("relu"), "float16", "factors of bf16"),
    ):
        a, b, c = (ct.empty((8, 8), dtype) for _ in "abc")
        with pytest.raises(ValueError, match=message):
            gemm.prepare(a, b, c, epilogue=some)
    with pytest.raises(ValueError, match="multiple of 8"):
        epilogue.after(*(ct.empty((4, 12), "uint16") for _ in "co"), epilogue.Epilogue())
