"""grouped_product.py beside exact products of whole numbers: any sizes, groups without rows, nothing written beside them."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.rivals import cublas_grouped
from cudatut.book.tensor.gemm import grouped_product as grouped
from cudatut.book.tensor.grouped import routing
from cudatut.book.tensor.ladder import faults
from cudatut.gpu.device import supports
from cudatut.gpu.ladder import Rung

Options = grouped.Options
UNTOUCHED = 7
COUNTS = {
    "one": [128],
    "ragged": [70, 0, 1, 128, 0, 0, 195, 64, 0],
    "no rows": [0, 0, 0],
    "the last is large": [3, 0, 2000],
    "as many groups as fit": np.random.default_rng(2).integers(0, 90, 384).tolist(),
}


@pytest.fixture(autouse=True)
def needs_its_gpu():
    if not supports(ct.device().compute_capability, "sm_90a"):
        pytest.skip("it needs sm_90a")


def integers(shape, seed):
    return ct.rng(seed).integers(-4, 5, shape).astype("float32")


def on_gpu(numbers):
    return ct.to_device(to_bf16(numbers))


def stacked(counts, n, k, options, spare=9, launches=1):
    """The result, with some rows after the last group, and what it should be."""
    rows, ends = sum(counts) + spare, np.cumsum(counts)
    x, weights = integers((rows, k), rows), integers((len(counts), n, k), n)
    out = ct.empty((rows, n), "uint16")
    out.fill(np.uint16(UNTOUCHED))
    run = grouped.prepare(
        on_gpu(x), on_gpu(weights), ct.to_device(ends.astype("int32")), out, options
    )
    for _ in range(launches):
        run()
    want = np.full((rows, n), UNTOUCHED, "uint16")
    for w, end, count in zip(weights, ends, counts):
        want[end - count : end] = to_bf16(x[end - count : end] @ w.T)
    return out, want


@pytest.mark.parametrize("tile", grouped.TILES, ids=str)
@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("n, k", [(8, 8), (264, 200), (768, 512), (136, 4096)])
def test_rows_of_experts(tile, kind, n, k):
    for by_demand in (True, False):
        options = Options(tile, order=3, by_demand=by_demand)
        out, want = stacked(COUNTS[kind], n, k, options)
        ct.check(out, want, name=f"{kind}, by demand {by_demand}")  # and its red zones


@pytest.mark.parametrize("tile", grouped.TILES, ids=str)
@pytest.mark.parametrize("by_demand", [True, False])
def test_products_of_different_sizes(tile, by_demand):
    rng, some, wanted = ct.rng(3), [], []
    sizes = [(0, 8, 8), (1, 8, 8), (257, 520, 136), (64, 8, 1000), (3, 0, 8)]
    sizes += [
        (int(rng.integers(1, 300)), *(8 * int(rng.integers(1, 80)) for _ in "nk"))
        for _ in range(40)
    ]
    for m, n, k in sizes:
        a, b, c = integers((m, k), m), integers((n, k), n), ct.empty((m, n), "uint16")
        some.append((on_gpu(a), on_gpu(b), c))
        wanted.append(to_bf16(a @ b.T))
    run = grouped.prepare_list(some, Options(tile, by_demand=by_demand))
    for _ in range(3):
        run()
    for (_, _, c), want in zip(some, wanted):
        if want.size:
            ct.check(c, want, name=str(want.shape))


def test_again_and_again():
    """Many tiles, many launches: a race, or a counter that is not 0 again, would show at some time."""
    out, want = stacked([100, 700, 0, 31] * 8, 1024, 512, Options(), launches=300)
    ct.check(out, want)


def test_ends_are_those_of_the_launch():
    """The host reads nothing: the same call, for groups that have changed on the GPU."""
    x, weights = integers((900, 64), 1), integers((5, 136, 64), 2)
    ends, out = ct.to_device(np.full(5, 900, "int32")), ct.empty((900, 136), "uint16")
    run = grouped.prepare(on_gpu(x), on_gpu(weights), ends, out)
    for seed in range(10):
        new = np.sort(ct.rng(seed).integers(0, 901, 5))
        new[-1] = 900
        ends.set(new.astype("int32"))
        ct.poison(out)
        run()
        want = [part @ w.T for part, w in zip(np.split(x, new[:-1]), weights)]
        ct.check(out, to_bf16(np.concatenate(want)), name=f"ends {new}")


def test_ends_beyond_the_rows_do_no_harm():
    x, weights = integers((100, 64), 1), integers((2, 136, 64), 2)
    out = ct.empty((100, 136), "uint16")
    ends = ct.to_device(np.array([60, 5000], "int32"))
    grouped.prepare(on_gpu(x), on_gpu(weights), ends, out)()
    want = np.concatenate([x[:60] @ weights[0].T, x[60:] @ weights[1].T])
    ct.check(out, to_bf16(want))


def test_nan_and_inf_stay_in_their_rows():
    counts = [65, 3, 130]
    x, weights = integers((198, 64), 1), integers((3, 136, 64), 2)
    x[65], x[197, 5], weights[2, 9, 0] = np.nan, np.inf, np.nan
    ends, out = np.cumsum(counts).astype("int32"), ct.empty((198, 136), "uint16")
    grouped.prepare(on_gpu(x), on_gpu(weights), ct.to_device(ends), out)()
    with np.errstate(invalid="ignore"):
        want = np.concatenate([part @ w.T for part, w in zip(np.split(x, ends[:-1]), weights)])
    assert np.array_equal(to_float(out.get()), to_float(to_bf16(want)), equal_nan=True)


@pytest.mark.parametrize("zipf", [0.0, 1.2])
def test_random_numbers(zipf):
    layer = routing.Layer(24, 32, 4, 600, 1096, 520, zipf)
    some = routing.Products(layer)
    grouped.prepare(some.x, some.weights, some.ends, some.out)()
    x, weights = (to_float(y.get()).astype("float64") for y in (some.x, some.weights))
    parts = np.split(x, some.host_ends[:-1])
    want = np.concatenate([part @ w.T for part, w in zip(parts, weights)])
    ct.check(to_float(some.out.get()), want, rtol=2**-8, atol=1e-4 * layer.k**0.5)


def test_rivals_compute_the_same():
    some = routing.Products(routing.Layer(12, 16, 2, 300, 264, 136, 0.5))
    grouped.prepare(some.x, some.weights, some.ends, some.out)()
    want, host = to_float(some.out.get()), some.host_ends.tolist()
    runs = {
        "loop": grouped.loop(some.x, some.weights, host, some.out),
        "graph": grouped.loop(some.x, some.weights, host, some.out, graph=True),
        "cuBLAS": cublas_grouped.product(some.x, some.weights, host, some.out),
    }
    for name, run in runs.items():
        if run:
            ct.poison(some.out)
            run()
            ct.check(to_float(some.out.get()), want, name=name, rtol=2**-7, atol=1e-2)


@pytest.mark.parametrize(
    "rows, groups, n, k, says",
    [
        (9, 2, 12, 64, "multiple of 8"),
        (9, 2, 16, 60, "multiple of 8"),
        (9, 385, 8, 8, "384"),
    ],
)
def test_refuses(rows, groups, n, k, says):
    x, weights = ct.empty((rows, k), "uint16"), ct.empty((groups, n, k), "uint16")
    ends = ct.to_device(np.full(groups, rows, "int32"))
    with pytest.raises(ValueError, match=says):
        grouped.prepare(x, weights, ends, ct.empty((rows, n), "uint16"))


FAULTS = {
    "no fault": ("float sum", "float sum", False),
    "rows of the next group are written": ("row < tile.rows &&", "", True),
    "B of the first group for all": ("group.row_b + left", "left", True),
    "A from the first row of all": ("row = rows.x + top", "row = top", True),
    "the second half of A is missing": ("rows.y - top > 64", "false", True),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_noticed(fault, monkeypatch):
    old, new, noticed = FAULTS[fault]
    source = faults.changed(Rung("grouped", grouped.SOURCE, ""), (old, new))
    monkeypatch.setattr(grouped, "SOURCE", source)
    grouped.kernel.cache_clear()
    try:
        out, want = stacked(COUNTS["ragged"], 264, 200, Options(grouped.TILES[0], order=2))
        wrong = not np.array_equal(out.get(), want)
    finally:
        grouped.kernel.cache_clear()
    assert wrong == noticed
