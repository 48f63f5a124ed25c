"""fp8_product.py: quantizing beside NumPy, and products beside float64, exact where whole numbers allow it."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.numbers import e4m3
from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.tensor.gemm import fp8_product as fp8
from cudatut.book.tensor.ladder import faults
from cudatut.gpu.device import supports
from cudatut.gpu.ladder import Rung

KINDS = {
    "one level": (1, False, fp8.Tile()),
    "two levels": (2, False, fp8.Tile()),
    "two levels, no cluster": (2, False, fp8.Tile(cluster=1)),
    "blocks": (2, True, fp8.Tile()),
    "blocks, tiles of 128": (2, True, fp8.Tile(128, 128, 6, 2, 1)),
}
SHAPES = [
    (1, 8, 16),
    (128, 256, 128),
    (129, 264, 144),
    (300, 520, 720),
    (1000, 136, 1040),
    (17, 2048, 2576),
]


@pytest.fixture(autouse=True)
def needs_its_gpu(request):
    needed = "sm_80" if request.node.name.startswith("test_quantize") else "sm_90a"
    if not supports(ct.device().compute_capability, needed):
        pytest.skip(f"it needs {needed}")


def scaled(codes, scales, by):
    return fp8.Scaled(ct.to_device(codes), ct.to_device(np.float32(scales)), by)


def operand(rows, k, by, seed, integers=True):
    """Whole numbers from -2 to 2 with scales that are powers of two, or any codes but NaN with any scales."""
    rng = ct.rng(seed)
    across, down = ct.cdiv(k, 128), ct.cdiv(rows, 128)
    shape = {"tensor": (1,), "rows": (across, 4 * ct.cdiv(rows, 4)), "tiles": (down, across)}[by]
    if integers:
        return scaled(
            e4m3.to_e4m3(rng.integers(-2, 3, (rows, k))), 2.0 ** rng.integers(-1, 2, shape), by
        )
    codes = e4m3.to_e4m3(100 * rng.standard_normal((rows, k)))
    return scaled(codes, rng.random(shape) + 0.1, by)


def operands(m, n, k, blocks, integers=True):
    by = ("rows", "tiles") if blocks else ("tensor", "tensor")
    return [
        operand(rows, k, one, seed, integers) for seed, (rows, one) in enumerate(zip((m, n), by))
    ]


def factor(one):
    """What it stands for, in float64."""
    scales = one.scales.get().astype("float64")
    if one.by == "rows":
        scales = e4m3.spread(scales.T, one.codes.shape, (1, 128))
    elif one.by == "tiles":
        scales = e4m3.spread(scales, one.codes.shape, (128, 128))
    return e4m3.from_e4m3(one.codes.get()) * scales


def product(kind, a, b, dtype="uint16", group=8):
    levels, _, tile = KINDS[kind]
    c = ct.empty((a.codes.shape[0], b.codes.shape[0]), dtype)
    ct.poison(c)
    fp8.prepare(a, b, c, levels, tile, group)()
    return to_float(c.get()) if dtype == "uint16" else c.get()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_whole_numbers_are_exact(kind, shape):
    a, b = operands(*shape, KINDS[kind][1])
    want = factor(a) @ factor(b).T
    assert np.array_equal(product(kind, a, b), to_float(to_bf16(want)))
    assert np.array_equal(product(kind, a, b, "float32", group=2), want.astype("float32"))


@pytest.mark.parametrize("kind", KINDS)
def test_again_and_again(kind):
    """Many tiles for every block, and many launches: a race would show at some time."""
    a, b = operands(2048, 4096, 1536, KINDS[kind][1])
    want = to_float(to_bf16(factor(a) @ factor(b).T))
    for _ in range(10):
        assert np.array_equal(product(kind, a, b), want)


@pytest.mark.parametrize("kind", KINDS)
def test_random_numbers(kind):
    """One level misses about 0.1 %, by a model of an adder with 13 bits behind the leading one, and two levels 0.01 %."""
    a, b = operands(200, 264, 4096, KINDS[kind][1], integers=False)
    want = factor(a) @ factor(b).T
    error = product(kind, a, b, "float32") - want
    allowed = 1e-2 if KINDS[kind][0] == 1 else 1e-3
    assert np.sqrt(np.mean(error**2)) < allowed * np.sqrt(np.mean(want**2))
    assert np.abs(error).max() < 10 * allowed * np.sqrt(np.mean(want**2))


@pytest.mark.parametrize("kind", ["one level", "two levels", "blocks"])
def test_nan_stays_in_its_row(kind):
    a, b = operands(130, 136, 400, KINDS[kind][1])
    codes = a.codes.get()
    codes[7, 399] = e4m3.NAN
    out = product(kind, a._replace(codes=ct.to_device(codes)), b)
    assert np.isnan(out[7]).all()
    assert np.array_equal(np.delete(out, 7, 0), np.delete(product(kind, a, b), 7, 0))


@pytest.mark.parametrize("kind", ["float32", "bf16"])
@pytest.mark.parametrize("by", ["tensor", "rows", "tiles"])
@pytest.mark.parametrize("shape", [(1, 16), (128, 128), (130, 304), (1000, 1040)])
def test_quantize_as_numpy(shape, by, kind):
    x = ct.rng(1).standard_normal(shape, dtype="float32") * np.float32(1e-3)
    x[0, 0], x[-1, -1] = 1e5, 1e-30
    x[shape[0] // 2] = 0
    numbers = x if kind == "float32" else to_float(to_bf16(x))
    got = fp8.quantize(ct.to_device(x if kind == "float32" else to_bf16(x)), by)
    codes, scales = e4m3.quantize(numbers, by)
    found = got.scales.get().reshape(-1, got.scales.shape[-1])[:, : scales.shape[1]]
    assert np.array_equal(got.codes.get(), codes)
    assert np.array_equal(found, scales)


@pytest.mark.parametrize("by", ["tensor", "rows", "tiles"])
def test_quantize_keeps_nan(by):
    x = ct.rng(2).standard_normal((64, 256), dtype="float32")
    clean = fp8.quantize(ct.to_device(np.where(np.arange(256) == 9, 0, x).astype("float32")), by)
    x[:, 9] = np.nan
    got, want = fp8.quantize(ct.to_device(x), by).codes.get(), clean.codes.get()
    assert (got[:, 9] == e4m3.NAN).all()
    assert np.array_equal(np.delete(got, 9, 1), np.delete(want, 9, 1))


@pytest.mark.parametrize(
    "m, n, k, blocks, more, says",
    [
        (128, 128, 24, False, {}, "multiple of 16"),
        (128, 100, 128, False, {}, "multiple of 16"),
        (128, 128, 128, True, {"levels": 1}, "two levels"),
    ],
)
def test_refuses(m, n, k, blocks, more, says):
    a, b = operands(m, n, k, blocks)
    with pytest.raises(ValueError, match=says):
        fp8.prepare(a, b, ct.empty((m, n), "uint16"), **more)


def test_refuses_scales_that_do_not_go_together():
    a, b = operand(128, 128, "rows", 0), operand(128, 128, "tensor", 1)
    with pytest.raises(ValueError, match="do not go together"):
        fp8.prepare(a, b, ct.empty((128, 128), "uint16"))


FAULTS = {
    "no fault": ("float sum", "float sum", False),
    "the scale of the first columns for all": ("left + BK < work.n ? steps : 0", "0", True),
    "the scale of the upper rows for all": ("j / 2 % 2", "0", True),
    "the first columns twice": ("at.b + i * (PART * BK / 16)", "at.b", True),
    "the scales of the first stage for all": ("scales_b + step, next}", "scales_b, next}", True),
    "a part begins with the last one": (
        "i * (PART * BK / 16), false);",
        "i * (PART * BK / 16), true);",
        True,
    ),
    "half of a stage": ("i < BK / 32", "i < BK / 64", True),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_noticed(fault, monkeypatch):
    old, new, noticed = FAULTS[fault]
    source = faults.changed(Rung("fp8", fp8.SOURCE, ""), (old, new))
    monkeypatch.setattr(fp8, "SOURCE", source)
    fp8.kernel.cache_clear()
    try:
        a, b = operands(300, 520, 720, True)
        wrong = not np.array_equal(
            product("blocks", a, b), to_float(to_bf16(factor(a) @ factor(b).T))
        )
    finally:
        fp8.kernel.cache_clear()
    assert wrong == noticed
