"""The ladder of general matrix products on a real GPU: every rung, ragged shapes, alpha and beta, hard inputs."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from pairwise import pairs

import cudatut as ct
from cudatut.book.gemm.ladder.ladder import earlier_rungs
from cudatut.gpu import ladder, sanitizer
from cudatut.gpu.device import supports
from cudatut.tool import SANITIZERS

GEMMS = ladder.load_ladder("gemm")

EXTENTS = (0, 1, 31, 33, 100, 129, 257)
# Each extent as m, n and k beside others of every kind; multiples of 4 in k and n take the wide loads.
SHAPES = [(m, EXTENTS[(i + 2) % 7], EXTENTS[(i + 5) % 7]) for i, m in enumerate(EXTENTS)]
SHAPES += pairs((1, 129, 300), (4, 132, 260), (4, 36, 100))
SHAPES += [(257, 129, 33), (33, 129, 260), (129, 260, 33), (128, 128, 16), (256, 384, 512)]
SCALARS = [(1.0, 0.0), (-2.0, 0.0), (0.5, 1.0), (1.0, -3.0), (0.0, 2.0), (0.0, 0.0)]


@pytest.fixture(params=GEMMS.names)
def rung(request):
    rung = GEMMS[request.param]
    requires = rung.options.get("requires", "sm_75")
    if not supports(ct.device().compute_capability, requires):
        pytest.skip(f"{rung.name} needs {requires}")
    return rung


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_integers_are_exact_at_every_shape(rung, shape):
    m, n, k = shape
    for alpha, beta in SCALARS[:1] + SCALARS[2:4]:
        GEMMS.problem(m, n, k, alpha, beta, integers=True).check(rung)


@pytest.mark.parametrize(("alpha", "beta"), SCALARS)
def test_alpha_and_beta(rung, alpha, beta):
    for m, n, k in ((100, 257, 129), (129, 260, 132)):
        GEMMS.problem(m, n, k, alpha, beta).check(rung)
        GEMMS.problem(m, n, k, alpha, beta, integers=True).check(rung)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("side", [97, 132])
def test_beta_0_does_not_look_at_c(rung, value, side):
    # Not the poison of ct.empty, which every check begins with: another NaN, and infinities.
    problem = GEMMS.problem(side, side, side)
    problem.c.set(np.full((side, side), value, "float32"))
    problem.launcher(rung)()
    problem.compare(f"{rung.name}, C of {value}")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(130, 70, 45), (130, 132, 68)])
def test_special_values_reach_their_row_and_column_and_no_other(rung, value, shape):
    m, n, k = shape
    rng = ct.rng(5)
    a, b, c = (rng.random(s, "float32") + np.float32(0.5) for s in ((m, k), (k, n), (m, n)))
    a[m - 1, k - 1], b[0, n - 1], a[3, 2], c[7, 5] = value, value, -value, value
    GEMMS.problem(data=(a, b)).check(rung)
    GEMMS.problem(data=(a, b, c), alpha=2.0, beta=0.5).check(rung)


def test_very_large_and_very_small_values(rung):
    rng = ct.rng(6)
    a, b = (rng.standard_normal((150, 150)).astype("float32") for _ in range(2))
    GEMMS.problem(data=(a * np.float32(1e18), b * np.float32(1e18))).check(rung)
    GEMMS.problem(data=(a * np.float32(1e-20), b)).check(rung)


def test_the_same_product_from_run_to_run(rung):
    problem = GEMMS.problem(513, 260, 1028)
    run, found = problem.launcher(rung), set()
    for _ in range(10):
        run()
        found.add(problem.c.get().tobytes())
    assert len(found) == 1


def test_long_sums_and_large_matrices(rung):
    GEMMS.problem(65, 66, 20_001, integers=True).check(rung)
    GEMMS.problem(2049, 2052, 1028).check(rung)
    GEMMS.problem(20_001, 3, 5, 1.0, 1.0).check(rung)
    GEMMS.problem(3, 20_001, 5, 1.0, 1.0).check(rung)


def test_more_words_than_an_int_can_count(rung):
    m, n, k = 46_348, 4, 46_344  # m * k > 2^31
    if ct.device().memory_bytes < 20 << 30:
        pytest.skip("needs 20 GiB of GPU memory")
    a = np.resize(ct.rng(7).random((97, k), "float32"), (m, k))
    b = ct.rng(8).random((k, n), "float32")
    GEMMS.problem(data=(a, b)).check(rung)


def test_no_rung_spills(rung):
    if rung.name != "final":  # whose instances are chosen by sgemm.py
        found = rung.compile().resources(rung.number("block"), rung.number("shared", 0))
        assert found.spill_bytes == 0 and found.blocks_per_sm >= 1


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_cublas_computes_what_is_asked_for(transpose_a, transpose_b):
    problem = GEMMS.problem(70, 33, 129, alpha=0.5, beta=-2.0, integers=True)
    a, b = (
        ct.to_device(host.T) if transpose else array
        for host, array, transpose in (
            (problem.host_a, problem.a, transpose_a),
            (problem.host_b, problem.b, transpose_b),
        )
    )
    call = ct.vendor.gemm(a, b, problem.c, 0.5, -2.0, transpose_a, transpose_b)
    if call is None:
        pytest.skip("CuPy is not installed")
    problem.c.set(problem.host_c)
    call()
    problem.compare("cuBLAS")


def test_cublas_does_not_use_tf32():
    problem = GEMMS.problem(512, 512, 512)
    call = ct.vendor.gemm(problem.a, problem.b, problem.c)
    if call is None:
        pytest.skip("CuPy is not installed")
    call()
    expected, _ = problem.reference
    error = np.abs(problem.c.get() - expected).max()
    assert error < 1e-4  # with TF32 it is over 1e-3: 10 bits of each element


def test_a_wrong_kernel_is_found(tmp_path):
    text = ladder.read_rung("gemm/ladder/block_tile_2d.cu")
    source = (ladder.paths.examples_dir() / text.path).read_text()
    shutil.copy(ladder.paths.examples_dir() / "gemm/ladder/edges.cuh", tmp_path)
    (tmp_path / "mine.cu").write_text(source.replace("beta, to)", "1.0f, to)"))
    rung = replace(text, name="mine", path=str(tmp_path / "mine.cu"))
    with pytest.raises(ct.CheckError, match="mine, 100 x 100 x 100"):
        GEMMS.problem(100, 100, 100).check(rung)


@pytest.mark.alone  # it compares times
def test_rungs_of_the_part_basics_join_the_benchmark():
    rows = GEMMS.bench([*earlier_rungs(), "warp_tile"], rounds=5, m=1024, n=1024, k=1024)
    assert rows["warp_tile"].median_us < rows["naive_columns"].median_us


@pytest.mark.parametrize("tool", SANITIZERS)
def test_every_rung_is_clean_under(tool, tmp_path):
    script = tmp_path / "all_rungs.py"
    script.write_text(
        "import cudatut as ct\nfrom cudatut.gpu import ladder\nfrom cudatut.gpu.device import supports\n"
        "gemms = ladder.load_ladder('gemm')\n"
        "for name in gemms.names:\n"
        "    rung = gemms[name]\n"
        "    if supports(ct.device().compute_capability, rung.options.get('requires', 'sm_75')):\n"
        "        for m, n, k in ((0, 1, 1), (3, 4, 0), (33, 31, 9), (130, 132, 36), (129, 131, 40)):\n"
        "            gemms.problem(m, n, k).check(rung)\n"
        "            gemms.problem(m, n, k, 2.0, 0.5).check(rung)\n"
    )
    found = sanitizer.run(script, tool)
    assert found.errors == 0, found.log
