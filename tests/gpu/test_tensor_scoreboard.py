"""What the scoreboard of tensor cores adds, on a real GPU: products in TF32, the best of cublasLt, the search for a plan."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.gemm import tuner
from cudatut.book.numbers.bf16 import to_float
from cudatut.book.rivals import cublas_types, cublaslt
from cudatut.book.tensor.gemm import fp8_product as fp8
from cudatut.book.tensor.gemm import gemm, tf32_product
from cudatut.book.tensor.ladder.autotuning_space import SPACE
from cudatut.gpu import ladder
from cudatut.gpu.device import supports

SIZES = [
    (1, 1, 4), (1, 300, 32), (127, 255, 36), (128, 256, 64), (300, 77, 2000), (520, 1032, 704), (2304, 2304, 256),
]  # fmt: skip


@pytest.fixture(autouse=True)
def hopper():
    if not supports(ct.device().compute_capability, "sm_90a"):
        pytest.skip("these kernels need sm_90a")


def factors(m, n, k, whole=True):
    """A (m x k) and B (n x k), of whole numbers or in [-1, 1)."""
    rng = ct.rng(m + n + k)
    if whole:
        return tuple(rng.integers(-4, 5, shape).astype("float32") for shape in ((m, k), (n, k)))
    return tuple(rng.random(shape, "float32") * np.float32(2) - 1 for shape in ((m, k), (n, k)))


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_tf32_of_whole_numbers_is_exact(size, turned):
    a, b = factors(*size)
    c = ct.empty((size[0], size[1]), "float32")
    lies = ct.to_device(b if turned else np.ascontiguousarray(b.T))
    tf32_product.prepare(ct.to_device(a), lies, c, transpose_b=turned)()
    ct.check(c, a.astype("float64") @ b.T, rtol=0)


@pytest.mark.parametrize("tile", tf32_product.TILES, ids=str)
def test_every_plan_of_tf32(tile):
    for m, n, k in ((300, 520, 704), (1536, 3072, 96), (64, 64, 4096)):
        a, b = factors(m, n, k)
        on_gpu = ct.to_device(a), ct.to_device(b)
        for plan in gemm.plans(m, n, 2 * k, tile, ct.device().sm_count):
            c = ct.empty((m, n), "float32")
            run = tf32_product.prepare(*on_gpu, c, transpose_b=True, plan=plan)
            for _ in range(2):  # the flags are as they were before
                ct.poison(c)
                run()
                ct.check(c, a.astype("float64") @ b.T, name=f"{plan}", rtol=0)


def test_tf32_keeps_eleven_bits():
    a, b = factors(200, 300, 1000, whole=False)
    exact, sizes = a.astype("float64") @ b.T, abs(a).astype("float64") @ abs(b).T
    c = ct.empty((200, 300), "float32")
    tf32_product.prepare(ct.to_device(a), ct.to_device(b), c, transpose_b=True)()
    error = abs(c.get() - exact) / sizes
    assert 1e-6 < error.max() <= tf32_product.error_bound(1000)


def test_infinities_and_nans_arrive_in_tf32():
    a, b = factors(64, 64, 64)
    a[3, 5], a[7, 9] = np.inf, np.nan
    b[:, 5] = 1
    c = ct.empty((64, 64), "float32")
    tf32_product.prepare(ct.to_device(a), ct.to_device(b), c, transpose_b=True)()
    got = c.get()
    assert np.isposinf(got[3]).all() and np.isnan(got[7]).all()
    assert np.isfinite(np.delete(got, (3, 7), 0)).all()


@pytest.mark.parametrize("turned", [True, False])
def test_cublas_and_cublaslt_compute_the_same_product(turned):
    pytest.importorskip("cupy")
    a, b = factors(256, 320, 512)
    exact = a.astype("float64") @ b.T
    x, y = ct.to_device(a), ct.to_device(b if turned else np.ascontiguousarray(b.T))
    c = ct.empty((256, 320), "float32")
    for run in (
        cublas_types.tf32(x, y, c, transpose_b=turned),
        cublaslt.fastest(x, y, c, "tf32", transpose_b=turned),
    ):
        ct.poison(c)
        run()
        ct.check(c, exact, rtol=0)


def test_the_best_of_cublaslt_in_bf16_and_e4m3():
    pytest.importorskip("cupy")
    problem = ladder.load_ladder("tensor").problem(256, 320, 512, integers=True)
    run = cublaslt.fastest(problem.a, problem.b, problem.c, "bf16")
    ct.poison(problem.c)
    run()
    problem.compare("cublasLt")
    a, b = (fp8.quantize(ct.to_device(x)) for x in factors(256, 320, 512, whole=False))
    c, want = (ct.empty((256, 320), "uint16") for _ in range(2))
    cublaslt.fastest(a.codes, b.codes, c, "e4m3", transpose_b=True, scales=(a.scales, b.scales))()
    fp8.prepare(a, b, want)()
    ct.check(to_float(c.get()), to_float(want.get()), rtol=2**-7, atol=0.05)


def test_a_size_that_cublaslt_refuses_gives_no_row():
    pytest.importorskip("cupy")
    codes = ct.to_device(np.zeros((33, 17), "uint8"))  # e4m3 wants depths that are multiples of 16
    one = ct.to_device(np.ones(1, "float32"))
    assert (
        cublaslt.fastest(
            codes, codes, ct.empty((33, 33), "uint16"), "e4m3", transpose_b=True, scales=(one, one)
        )
        is None
    )


@pytest.mark.parametrize("size", [(512, 520, 512), (300, 257, 131)], ids=str)
def test_tuning_finds_a_plan_that_is_right(size):
    size = dict(zip("mnk", size, strict=True))
    found = tuner.tune(SPACE, size, most=6)
    assert found.search[-1][1] >= 1 and found.verdict().startswith("best: ")
    SPACE.check(SPACE.problem(size), found.choice)
