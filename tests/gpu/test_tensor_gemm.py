"""The ladder of products on tensor cores on a real GPU: every rung at every trial, and the final kernel in all its plans,
layouts, scalars and types of results."""

import itertools

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.tensor.gemm import gemm
from cudatut.gpu import ladder
from cudatut.gpu.device import supports

LADDER = ladder.load_ladder("tensor")
FLAGS = list(itertools.product((False, True), repeat=2))


@pytest.fixture(params=LADDER.names)
def rung(request):
    rung = LADDER[request.param]
    if not supports(ct.device().compute_capability, rung.options.get("requires", "sm_80")):
        pytest.skip(f"{rung.name} needs {rung.options['requires']}")
    return rung


@pytest.fixture
def hopper():
    if not supports(ct.device().compute_capability, "sm_90a"):
        pytest.skip("final.cu needs sm_90a")


@pytest.mark.parametrize("trial", LADDER.trials, ids=lambda t: f"{t['m']}x{t['n']}x{t['k']}")
def test_every_rung_at_every_trial(rung, trial):
    LADDER.problem(**trial).check(rung)


@pytest.mark.parametrize("depth", [8, 56, 64, 72, 128, 192, 256, 320, 384, 448, 576])
def test_fewer_steps_than_stages_and_more(rung, depth):
    for m, n in ((128, 256), (260, 520)):
        LADDER.problem(m, n, depth, integers=True).check(rung)


def test_very_many_steps(rung):
    """Stages are filled again and again, by copies that are quick since few blocks run and all lies in the L2 cache."""
    for _ in range(3):
        LADDER.problem(256, 512, 6400, integers=True).check(rung)


@pytest.mark.parametrize("depth", [64, 328, 1032])
def test_several_tiles_for_each_block(rung, depth):
    """More tiles than an H200 has SMs: stages, phases and boxes go on from tile to tile."""
    LADDER.problem(4104, 2568, depth, integers=True).check(rung)


def test_the_same_bits_every_time(rung):
    problem = LADDER.problem(1000, 1032, 2048)
    run = problem.launcher(rung)
    run()
    first = problem.c.get()
    for _ in range(20):
        run()
        np.testing.assert_array_equal(problem.c.get(), first)


def test_a_shape_that_a_rung_does_not_take(rung):
    if rung.name != "final":
        with pytest.raises(ct.RungError, match="multiples of 8"):
            LADDER.problem(16, 17, 16, integers=True).launcher(rung)


def multiply(m, n, k, alpha, beta, transpose_a, transpose_b, dtype="uint16", plan=None, c0=None):
    """C on the host in fp32, and what it should be, exactly."""
    rng = ct.rng(m + n + k)
    a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, n))
    old = rng.integers(-4, 5, (m, n)).astype("float32") if c0 is None else c0
    c = ct.to_device(to_bf16(old) if dtype == "uint16" else old)
    stored = [
        ct.to_device(np.ascontiguousarray(to_bf16(x.T if turned else x)))
        for x, turned in ((a, transpose_a), (b, transpose_b))
    ]
    run = gemm.prepare(*stored, c, alpha, beta, transpose_a, transpose_b, plan=plan)
    run()
    expected = alpha * (a @ b).astype("float64") + (beta * old if beta else 0.0)
    got = c.get()
    if dtype == "uint16":
        return to_float(got), to_float(to_bf16(expected))
    return got, expected


SHAPES = [
    (1, 1, 1), (127, 255, 63), (128, 256, 64), (129, 257, 65), (300, 77, 2000), (64, 520, 4096),
    (1000, 999, 333), (5, 3, 0), (520, 776, 1032),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
@pytest.mark.parametrize(("transpose_a", "transpose_b"), FLAGS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_any_shape_in_any_layout(hopper, shape, transpose_a, transpose_b, dtype):
    for alpha, beta in ((1, 0), (2, 0.5), (0, 2)):
        got, expected = multiply(*shape, alpha, beta, transpose_a, transpose_b, dtype)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("tile", gemm.TILES, ids=str)
@pytest.mark.parametrize(
    "shape", [(300, 600, 2000), (1000, 3000, 640), (64, 64, 5000), (256, 512, 6400)]
)
def test_every_plan(hopper, tile, shape):
    for plan in gemm.plans(*shape, tile, ct.device().sm_count):
        for _ in range(2):  # the second launch finds the flags as the first left them
            got, expected = multiply(*shape, 1, 1, False, False, plan=plan)
            np.testing.assert_array_equal(got, expected)


def test_beta_0_does_not_look_at_c(hopper):
    for shape in ((130, 264, 72), (130, 261, 72)):
        nan = np.full(shape[:2], np.nan, "float32")
        got, expected = multiply(*shape, 1, 0, False, False, c0=nan)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_special_values_reach_their_row_and_column_and_no_other(hopper, value):
    m, n, k = 200, 300, 136
    a, b = np.ones((m, k), "float32"), np.ones((k, n), "float32")
    a[77, 5], b[6, 99] = value, value
    c = ct.empty((m, n), "uint16")
    gemm.prepare(ct.to_device(to_bf16(a)), ct.to_device(to_bf16(b)), c)()
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(to_float(c.get()), to_float(to_bf16(a @ b)))
