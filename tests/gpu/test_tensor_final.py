"""What final.cu does beside whole tiles by the TMA: rows that begin anywhere, and one consumer ahead of the other."""

import itertools

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.numbers import bf16
from cudatut.book.tensor.gemm import gemm
from cudatut.gpu.device import supports


@pytest.fixture(autouse=True)
def needs_hopper():
    if not supports(ct.device().compute_capability, "sm_90a"):
        pytest.skip("final.cu needs sm_90a")


FLAGS = list(itertools.product((False, True), repeat=2))
# Rows that begin at multiples of 16 bytes, and not; one step and many; less than a tile, and several.
SHAPES = [
    (1, 1, 1),
    (64, 128, 64),
    (127, 255, 63),
    (136, 264, 200),
    (257, 131, 33),
    (300, 515, 1000),
]
# Few rows: the last piece of the matrix ends beyond it.
SHAPES += [(3, 5, 7), (9, 8, 1), (130, 66, 71)]


def multiply(
    m, n, k, transpose_a=False, transpose_b=False, alpha=1.0, beta=0.0, dtype="uint16", behind=0, **how
):  # fmt: skip
    """C of whole numbers as float32, and what it should be, rounded as C is. how: for `gemm.prepare`.

    behind: how many rows of NaN follow each factor in memory.
    """
    rng = ct.rng(m + 7 * n + 49 * k)
    a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, n))
    old = rng.integers(-8, 9, (m, n)).astype("float32")
    expected = alpha * (a @ b) + (beta * old if beta else 0.0)
    c0 = old if beta else np.full((m, n), np.nan, "float32")
    factors = dict.fromkeys(("uint16", "float32"), bf16.to_bf16).get(dtype, np.float16)
    c = ct.to_device(c0 if dtype == "float32" else factors(c0))
    stored = []
    for x, turned in ((a, transpose_a), (b, transpose_b)):
        x = x.T if turned else x
        more = np.full((behind, x.shape[1]), np.nan)
        stored.append(ct.to_device(factors(np.concatenate([x, more])))[: len(x)])
    run = gemm.prepare(*stored, c, alpha, beta, transpose_a, transpose_b, **how)
    run()
    got = c.get()
    if dtype != "uint16":
        return got, expected.astype(dtype)
    return bf16.to_float(got), bf16.to_float(bf16.to_bf16(expected))


@pytest.mark.parametrize(("transpose_a", "transpose_b"), FLAGS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_layouts(shape, transpose_a, transpose_b):
    np.testing.assert_array_equal(*multiply(*shape, transpose_a, transpose_b))


@pytest.mark.parametrize(("transpose_a", "transpose_b"), FLAGS)
@pytest.mark.parametrize("shape", [(130, 66, 71), (136, 264, 200), (70, 5, 129)])
def test_what_lies_behind_the_factors_is_not_multiplied(shape, transpose_a, transpose_b):
    """Not even by zero: of NaN that is NaN."""
    how = {"behind": 64, "transpose_a": transpose_a, "transpose_b": transpose_b}
    np.testing.assert_array_equal(*multiply(*shape, **how))


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("shape", [(300, 515, 1001), (520, 776, 1032), (130, 70, 4)])
def test_every_plan(shape, plain):
    tiles = [gemm.PLAIN] if plain else gemm.TILES
    for tile in tiles:
        for plan in gemm.plans(*shape, tile, ct.device().sm_count):
            got, expected = multiply(*shape, plan=plan._replace(plain=plain))
            np.testing.assert_array_equal(got, expected, err_msg=str(plan))


@pytest.mark.parametrize(("transpose_a", "transpose_b"), FLAGS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_fp16(shape, transpose_a, transpose_b):
    how = {"alpha": 2.0, "beta": 0.5, "dtype": "float16"}
    np.testing.assert_array_equal(*multiply(*shape, transpose_a, transpose_b, **how))


@pytest.mark.parametrize("plain", [False, True])
def test_every_plan_of_fp16(plain):
    shape = (520, 776, 1032)
    for tile in [gemm.PLAIN] if plain else gemm.TILES:
        for plan in gemm.plans(*shape, tile, ct.device().sm_count):
            got, expected = multiply(*shape, plan=plan._replace(plain=plain), dtype="float16")
            np.testing.assert_array_equal(got, expected, err_msg=str(plan))


@pytest.mark.parametrize("dtype", ["uint16", "float16"])
@pytest.mark.parametrize(("transpose_a", "transpose_b"), FLAGS)
@pytest.mark.parametrize("workers", [3, 66])
@pytest.mark.parametrize("k", [64, 128, 136, 1032])
def test_ends_of_whole_tiles(k, workers, transpose_a, transpose_b, dtype):
    """Several tiles for a worker, or one; fewer steps than a tile ends with by halves, and more."""
    m, n, tile = 1032, 776, gemm.TILES[0]
    plan = gemm.plans(m, n, k, tile, workers * tile.cluster)[0]
    assert (plan.whole > plan.workers) == (workers == 3) and not plan.share
    how = {"plan": plan, "dtype": dtype}
    for _ in range(3):
        np.testing.assert_array_equal(*multiply(m, n, k, transpose_a, transpose_b, **how))


def test_one_array_is_both_factors():
    x = ct.rng(0).integers(-4, 5, (301, 301))
    a, c = ct.to_device(bf16.to_bf16(x)), ct.empty((301, 301), "uint16")
    tile = gemm.TILES[0]
    plan = gemm.plans(301, 301, 301, tile, ct.device().sm_count)[0]
    gemm.prepare(a, a, c, plan=plan)()
    np.testing.assert_array_equal(bf16.to_float(c.get()), bf16.to_float(bf16.to_bf16(x @ x)))


def test_runs_again_and_again():
    """The flags of shares are as before after each run."""
    shape = (64, 512, 4096)
    plan = next(p for p in gemm.plans(*shape, gemm.PLAIN, ct.device().sm_count) if p.share)
    rng = ct.rng(5)
    a, b = rng.integers(-4, 5, shape[::2]), rng.integers(-4, 5, shape[:0:-1])
    c = ct.empty(shape[:2], "uint16")
    run = gemm.prepare(ct.to_device(bf16.to_bf16(a)), ct.to_device(bf16.to_bf16(b)), c, plan=plan)
    flags = run.flags
    assert flags.size > 1
    for _ in range(10):
        ct.poison(c)
        run()
        np.testing.assert_array_equal(bf16.to_float(c.get()), bf16.to_float(bf16.to_bf16(a @ b)))
        # One that is left up shows in no result, as long as the part behind it is the same again.
        assert not flags.get().any()


@pytest.mark.parametrize("columns", [(1, 7), (9, 1), (13, 24), (8, 250), (41, 17)])
@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_few_threads_pad_many_pieces(columns, blocks):
    """Each thread copies several, in rows further on; the second matrix goes on where the first ends."""
    matrices = [
        ct.rng(columns[i]).integers(1, 60000, (rows, columns[i])).astype("uint16")
        for i, rows in enumerate((777, 301))
    ]
    wide = [(-(-one.shape[1] // 8)) * 8 for one in matrices]
    copies = [ct.empty((len(one), many // 8, 4), "uint32") for one, many in zip(matrices, wide)]
    kernel = ct.Kernel("tensor/gemm/pad.cu", "pad_rows")
    arguments = [
        word
        for one, copy in zip(matrices, copies)
        for word in (ct.to_device(one), np.uint64(copy.__cuda_array_interface__["data"][0]), *one.shape)
    ]  # fmt: skip
    kernel(*arguments, grid=blocks, block=256)
    for one, many, copy in zip(matrices, wide, copies):
        want = np.zeros((len(one), many), "uint16")
        want[:, : one.shape[1]] = one
        np.testing.assert_array_equal(copy.get().view("uint16").reshape(want.shape), want)
