"""`sgemm.py`, which picks instances of final.cu: all transpositions, leading dimensions, scalars and plans, on a GPU."""

import itertools
import sys

import numpy as np
import pytest

import cudatut as ct
from cudatut.gpu.device import supports
from cudatut.paths import examples_dir

sys.path.insert(0, str(examples_dir() / "gemm"))
import sgemm


@pytest.fixture(autouse=True)
def needs_sm_80():
    if not supports(ct.device().compute_capability, "sm_80"):
        pytest.skip("final.cu needs sm_80")


FLAGS = list(itertools.product((False, True), repeat=2))
# Multiples of 16 bytes, and not; less than a tile, several tiles; deep, and flat.
SHAPES = [(1, 1, 1), (64, 128, 64), (100, 36, 1000), (257, 131, 33), (31, 500, 3), (300, 260, 152)]


def operands(m, n, k, transpose_a, transpose_b, pad, seed=0):
    """Whole numbers as float32 in arrays with `pad` words more per row, which hold NaN; and op(A), op(B) in float64."""
    rng = ct.rng(seed)
    a, b = rng.integers(-8, 9, (m, k)), rng.integers(-8, 9, (k, n))
    stored = []
    for matrix, turned in ((a, transpose_a), (b, transpose_b)):
        matrix = matrix.T if turned else matrix
        wide = np.full((matrix.shape[0], matrix.shape[1] + pad), np.nan, "float32")
        wide[:, : matrix.shape[1]] = matrix
        stored.append(wide)
    return *stored, a.astype("float64"), b.astype("float64")


def multiply(m, n, k, alpha, beta, transpose_a, transpose_b, pad=0, c0=None, **how):
    """C as a host array of n + pad columns, and what it should be; c0: what C holds before, by default NaN."""
    a, b, op_a, op_b = operands(m, n, k, transpose_a, transpose_b, pad)
    c0 = np.full((m, n + pad), np.nan, "float32") if c0 is None else c0
    c = ct.to_device(c0)
    sgemm.launch(
        m, n, k, alpha, ct.to_device(a), a.shape[1], ct.to_device(b), b.shape[1], beta, c, n + pad,
        transpose_a, transpose_b, **how,
    )  # fmt: skip
    expected = alpha * (op_a @ op_b)
    return c.get(), expected + (beta * c0[:, :n].astype("float64") if beta else 0.0)


@pytest.mark.parametrize(("transpose_a", "transpose_b"), FLAGS)
@pytest.mark.parametrize("pad", [0, 3, 4])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_transpositions_and_leading_dimensions(shape, pad, transpose_a, transpose_b):
    m, n, k = shape
    got, expected = multiply(m, n, k, 0.5, 0.0, transpose_a, transpose_b, pad)
    np.testing.assert_array_equal(got[:, :n], expected)
    assert np.isnan(got[:, n:]).all(), "what lies between the rows of C is nobody's business"


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (-2, 0.5), (0, 2), (0, 0), (1, -1)])
def test_alpha_and_beta(alpha, beta):
    m, n, k = 130, 70, 45
    c0 = ct.rng(1).integers(-8, 9, (m, n + 2)).astype("float32")
    got, expected = multiply(m, n, k, alpha, beta, False, True, pad=2, c0=c0)
    np.testing.assert_array_equal(got[:, :n], expected)
    np.testing.assert_array_equal(got[:, n:], c0[:, n:])


@pytest.mark.parametrize("config", sgemm.CONFIGS, ids=lambda config: f"{config.bm}x{config.bn}")
@pytest.mark.parametrize("splits", [1, 2, 3, 7])
@pytest.mark.parametrize("whole", [0, 1, 3])
def test_shared_tiles(config, splits, whole):
    m, n, k = 3 * config.bm - 5, 2 * config.bn - 3, 333
    for _ in range(2):  # the second launch finds the tickets as the first left them
        got, expected = multiply(
            m, n, k, 1, 0, False, False, config=config, splits=splits, whole=whole
        )
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 3), (5, 0, 3), (0, 0, 0)])
def test_nothing_to_compute(m, n, k):
    got, _ = multiply(m, n, k, 1, 0, False, False)
    assert got.shape == (m, n)


def test_no_depth_leaves_beta_c():
    c0 = ct.rng(1).integers(-8, 9, (40, 50)).astype("float32")
    got, _ = multiply(40, 50, 0, 1, -2, False, False, c0=c0)
    np.testing.assert_array_equal(got, -2 * c0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(("transpose_a", "transpose_b"), FLAGS)
def test_special_values_stay_in_their_row_and_column(value, transpose_a, transpose_b):
    m, n, k, row, column = 130, 135, 70, 77, 99
    a, b, op_a, op_b = operands(m, n, k, transpose_a, transpose_b, 0)
    a[(5, row) if transpose_a else (row, 5)] = value
    b[(column, 6) if transpose_b else (6, column)] = value
    c = ct.empty((m, n), "float32")
    sgemm.sgemm(ct.to_device(a), ct.to_device(b), c, 1.0, 0.0, transpose_a, transpose_b)
    op_a[row, 5] = op_b[6, column] = value
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(c.get(), op_a @ op_b)


def test_the_same_bits_every_time():
    m, n, k = 100, 150, 5000  # tiles are shared
    a, b = (ct.to_device(ct.rng(i).random(s, "float32")) for i, s in ((0, (m, k)), (1, (k, n))))
    c = ct.empty((m, n), "float32")
    run = sgemm.prepare(a, b, c)
    assert run.splits > 1
    run()
    first = c.get()
    for _ in range(10):
        run()
        np.testing.assert_array_equal(c.get(), first)


def test_shapes_that_do_not_fit():
    a, b, c = (ct.empty(shape, "float32") for shape in ((3, 4), (5, 6), (3, 6)))
    with pytest.raises(ValueError, match="must be m x k, k x n and m x n"):
        sgemm.sgemm(a, b, c)
