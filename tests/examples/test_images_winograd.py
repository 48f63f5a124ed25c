"""examples/images/winograd without a GPU: the matrices, tiles of ragged shapes, the kernels of the transforms on a CPU, errors."""

import ctypes
import re
from pathlib import Path

import gpp
import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.shapes import LARGE, SMALL
from cudatut.book.images.shapes import reference as plain
from cudatut.book.images.winograd import launch
from cudatut.book.images.winograd import reference as winograd

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
FOLDER = EXAMPLES / "images/winograd"
numbers, SHAPES = winograd.numbers, winograd.SHAPES


def test_the_matrices_are_the_published_ones_but_for_signs():
    # Lavin and Gray, 2015. A row of G and one of B^T may both change their sign.
    a, g, b = winograd.minimal(2)
    assert np.array_equal(np.abs(a), [[1, 1, 1, 0], [0, 1, 1, 1]])
    assert np.array_equal(np.abs(2 * g), [[2, 0, 0], [1, 1, 1], [1, 1, 1], [0, 0, 2]])
    assert np.array_equal(b, [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, -1, 0, 1]])
    a, g, b = winograd.minimal(4)
    assert np.array_equal(
        a, [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]]
    )
    assert np.allclose(
        24 * g, [[6, 0, 0], [4, 4, 4], [4, -4, 4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]
    )
    assert np.array_equal(b[0], [4, 0, -5, 0, 1, 0]) and np.array_equal(b[3], [0, -2, -1, 2, 1, 0])


@pytest.mark.parametrize("m", [2, 4, 6])
def test_one_dimension(m):
    a, g, b = winograd.exact(m)
    rng = ct.rng(m)
    d, w = rng.integers(-9, 10, m + 2), rng.integers(-9, 10, 3)
    found = a @ ((g @ w) * (b @ d))
    assert found.tolist() == [int(d[i : i + 3] @ w) for i in range(m)]  # in fractions: the same


def test_points_must_differ_and_be_enough():
    for points in ((0, 1, 1, 2, -2), (0, 1, -1)):
        with pytest.raises(ValueError, match="5 different points"):
            winograd.exact(4, points)


@pytest.mark.parametrize("m", [2, 4, 6])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_convolution(shape, m):
    images, weights = numbers(shape)
    expected = plain(shape, images, weights)
    found = winograd.convolve(shape, images, weights, m)
    assert np.abs(found - expected).max() <= 1e-9
    down, across = winograd.tiles(shape, m)
    # Every result is in one tile, and no tile is empty.
    covered = np.zeros(shape.out, int)
    for y in winograd.firsts(shape, m)[0]:
        for x in winograd.firsts(shape, m)[1]:
            some = covered[
                y : y + m * shape.dilation[0] : shape.dilation[0],
                x : x + m * shape.dilation[1] : shape.dilation[1],
            ]
            assert some.size or max(shape.dilation) > 1
            some += 1
    assert (covered == 1).all() and down * across == np.prod(winograd.tiles(shape, m))


@pytest.fixture(scope="module")
def kernels():
    return library()


def library(change=lambda text: text, folder=None):
    place = FOLDER / "transforms.cu"
    if folder:
        place = folder / "changed.cu"
        place.write_text(change((FOLDER / "transforms.cu").read_text()))
    flags = "-O1", "-std=c++20", "-shared", "-fPIC", "-ffp-contract=off"
    places = (f'-DKERNELS="{place}"', f"-I{EXAMPLES}")
    return ctypes.CDLL(str(gpp.compiled(HERE / "winograd_on_cpu.cpp", *flags, places=places)))


def floats(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def on_cpu(kernels, shape, images, weights, m, narrow=False):
    """All four steps as the launcher has them, the products in NumPy. narrow: grids of one row, whose threads go on to the next."""
    needed, (down, across) = launch.work(shape, m), winograd.tiles(shape, m)
    nan = np.float32("nan")
    u, v, p = (np.full(n // 4, nan) for n in (needed.weights, needed.words, needed.products))
    y = np.full((shape.images, shape.filters, *shape.out), nan)
    struct, columns = shape.struct(), ct.cdiv(needed.tiles, launch.THREADS)
    high = 1 if narrow else shape.channels
    low = 1 if narrow else ct.cdiv(needed.filters, 32) * ct.cdiv(shape.channels, 4)
    kernels.inputs(
        m, struct, down, across, needed.tiles, needed.filters, high, floats(images), floats(v),
        floats(weights), floats(u), columns, high + low,
    )  # fmt: skip
    places, groups = needed.places, shape.groups
    depth, rows = shape.channels // groups, shape.filters // groups
    assert not np.isnan(u).any() and not np.isnan(v).any()  # padding, too
    a = u.reshape(places * groups, depth, -1)
    products = a.transpose(0, 2, 1) @ v.reshape(places * groups, depth, -1)
    p[:] = products[:, :rows].reshape(-1)
    kernels.results(
        m, launch.stored(shape, m, 0), struct, down, across, needed.tiles, floats(p), floats(y),
        columns, 1 if narrow else shape.filters,
    )  # fmt: skip
    return y


@pytest.mark.parametrize("m", launch.WAYS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_transforms_are_exact_for_multiples_of_nine(kernels, shape, m):
    images, weights = numbers(shape)
    expected = plain(shape, images, weights)
    for narrow in (False, True):
        assert np.array_equal(on_cpu(kernels, shape, images, weights, m, narrow), expected)


@pytest.mark.parametrize("m", launch.WAYS)
@pytest.mark.parametrize("shape", SHAPES[:6], ids=str)
def test_errors_stay_below_their_bound(kernels, shape, m):
    rng, (images, weights) = ct.rng(5), numbers(shape)
    images = rng.standard_normal(images.shape, "float32")
    weights = rng.standard_normal(weights.shape, "float32")
    off = np.abs(on_cpu(kernels, shape, images, weights, m) - plain(shape, images, weights))
    assert (off <= winograd.bound(shape, images, weights, m)).all()


TILES = [(64, 128), (64, 64), (32, 32)]  # as the program on a CPU numbers them


@pytest.fixture(scope="module")
def multiply(tmp_path_factory):
    return products(tmp_path_factory.mktemp("products"))


def products(folder, change=lambda text: text):
    """The kernels of products.cu without what only a GPU can do: instructions in PTX, and the kernel that they are taken from."""
    parts = (EXAMPLES / "gemm/ladder/final.cu").read_text()
    parts = re.sub(
        r"template <int WORDS>\n__device__ __forceinline__ void copy_async.*?\n}\n",
        "",
        parts,
        flags=re.S,
    )
    parts = re.sub(r"__device__ __forceinline__ void commit\(\).*?\n}\n", "", parts, flags=re.S)
    parts = re.sub(r"template <int GROUPS>\n__device__.*?\n}\n", "", parts, flags=re.S)
    parts = parts[: parts.index("// Count one more block that has arrived.")]
    text = change((FOLDER / "products.cu").read_text())
    text = text.replace(
        "extern __shared__ float4 shared[];", "float4* const shared = dynamic_shared;"
    )
    header = folder / "products.h"
    header.write_text(parts + text.replace('#include "published/final.cuh"', ""))
    flags = "-O1", "-std=c++20", "-shared", "-fPIC"
    source = HERE / "winograd_products_on_cpu.cpp"
    return ctypes.CDLL(str(gpp.compiled(source, *flags, places=(f'-DKERNELS="{header}"',))))


def wrong(multiply, which, stays, grid, batch, rows, n, depth):
    """How many results are wrong, or written beside the results."""
    rng, m = ct.rng(depth), ct.cdiv(rows, 4) * 4
    a = rng.integers(-3, 4, (batch, depth, m)).astype("float32")
    b = rng.integers(-3, 4, (batch, depth, n)).astype("float32")
    each = np.prod([ct.cdiv(n, t) for n, t in zip((rows, n), TILES[which])])
    expected = np.einsum("bdm,bdn->bmn", a, b)[:, :rows]
    room = np.full(expected.size + 8192, 7.5, "float32")
    x, y = (int(grid or each * batch), 1) if stays else (int(each), batch)
    multiply.products(
        which, stays, x, y, m, n, depth, rows, int(each * batch), floats(a), floats(b),
        floats(room[4096:]),
    )  # fmt: skip
    found, beside = room[4096:-4096], np.concatenate([room[:4096], room[-4096:]])
    return int((found.reshape(expected.shape) != expected).sum() + (beside != 7.5).sum())


@pytest.mark.parametrize("which", range(len(TILES)))
def test_products_of_one_size(multiply, which):
    for sizes in ((2, 70, 140, 16), (3, 65, 68, 48), (1, 3, 4, 5), (2, 33, 20, 23)):
        assert not wrong(multiply, which, False, None, *sizes)
        for grid in (1, 2, None) if sizes[-1] % 16 == 0 else ():
            assert not wrong(multiply, which, True, grid, *sizes)


@pytest.mark.parametrize(
    ("was", "fault"),
    [
        ("coming = 0, (ahead += gridDim.x) < tiles", "coming = 0, (ahead += 1) < tiles"),
        ("++coming < steps", "++coming <= steps"),
        ("sum[j][i ^ 1], sum[j + 1][i ^ 1]", "sum[j + 1][i ^ 1], sum[j][i ^ 1]"),
        ("C + (size_t)number * rows * n", "C"),
        ("row < rows && ", ""),
    ],
)
def test_faults_in_blocks_that_stay_are_noticed(was, fault, tmp_path):
    text = (FOLDER / "products.cu").read_text()
    assert was in text
    made = products(tmp_path, lambda text: text.replace(was, fault))
    assert wrong(made, 2, True, 2, 3, 65, 68, 48)


@pytest.mark.parametrize(
    ("shape", "m", "address", "words"),
    [
        (SMALL, 4, 0, 4),
        (SMALL, 4, 8, 2),
        (SMALL, 4, 4, 1),
        (SMALL, 2, 0, 2),
        (SMALL._replace(width=30), 4, 0, 2),
        (SMALL._replace(width=29), 4, 0, 1),
        (SMALL._replace(dilation=(1, 2), pad=(1, 2)), 4, 0, 1),
    ],
)
def test_words_of_a_store(shape, m, address, words):
    assert launch.stored(shape, m, address) == words


def test_what_is_refused():
    for change, why in (
        ({"window": (3, 1)}, "not 3 x 3"),
        ({"stride": (1, 2)}, "strides are not 1"),
        ({"groups": 3}, "groups must divide"),
    ):
        shape = SMALL._replace(**change)
        with pytest.raises(ValueError, match=why):
            launch.winograd(shape, None, None, None)
    assert not launch.suits(SMALL._replace(window=(1, 1)))


def test_what_suits():
    assert launch.suits(SMALL) and launch.suits(LARGE)
    assert launch.chosen(LARGE) == 4
    depthwise = SMALL._replace(groups=128)
    assert not launch.suits(depthwise)


def test_work_is_counted():
    found = launch.work(LARGE, 4)
    assert found.places == 36 and found.tiles == 64 * 14 * 14
    assert found.words == found.products == 4 * 36 * 256 * found.tiles
    # 36 products for 16 results, where the direct sum has 9 for each.
    assert 16 * 9 / 36 == 4 and 4 * 9 / 16 == 2.25
    assert launch.fitting(LARGE, 4) == 64 and launch.fitting(LARGE, 4, 1) == 1
    one = launch.work(LARGE, 4, 1)
    assert launch.fitting(LARGE, 4, 7 * one.held + 1) == 7


def test_amplification():
    assert [winograd.amplification(m) for m in (1, 2, 4)] == [9, 64, 2304]
