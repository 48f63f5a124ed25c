"""`sgemm.py`, which picks instances of final.cu and skinny.cu, and stream_k.cu: all transpositions, leading dimensions,
scalars and plans, places in memory and streams, on a GPU."""

import itertools

import numpy as np
import pytest
from pairwise import pairwise

import cudatut as ct
from cudatut.book.gemm.kernels import sgemm, skinny
from cudatut.gpu.device import supports


@pytest.fixture(autouse=True)
def needs_sm_80():
    if not supports(ct.device().compute_capability, "sm_80"):
        pytest.skip("final.cu needs sm_80")


FLAGS = list(itertools.product((False, True), repeat=2))
# Multiples of 16 bytes, and not; less than a tile, several tiles; deep, and flat.
SHAPES = [(1, 1, 1), (64, 128, 64), (100, 36, 1000), (257, 131, 33), (31, 500, 3), (300, 260, 152)]
SHAPES += [(66, 134, 40)]  # pairs of words


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
    expected = alpha * (op_a @ op_b) if k else np.zeros((m, n))
    return c.get(), expected + (beta * c0[:, :n].astype("float64") if beta else 0.0)


@pytest.mark.parametrize(("transpose_a", "transpose_b"), FLAGS)
@pytest.mark.parametrize("pad", [0, 2, 3, 4])
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


TURNED = [config.turned for config in sgemm.CONFIGS]


@pairwise(
    lambda value: getattr(value, "label", None),
    config=sgemm.CONFIGS,
    splits=[1, 2, 3, 7],
    whole=[0, 1, 3],
)
def test_shared_tiles(config, splits, whole):
    m, n, k = 3 * config.bm - 5, 2 * config.bn - 3, 333
    for _ in range(2):  # the second launch finds the tickets as the first left them
        got, expected = multiply(
            m, n, k, 1, 0, False, False, config=config, splits=splits, whole=whole
        )
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("config", [*sgemm.CONFIGS, *TURNED], ids=lambda config: config.label)
@pytest.mark.parametrize(("transpose_a", "transpose_b"), FLAGS)
def test_every_tile_in_every_layout(config, transpose_a, transpose_b):
    m, n, k = 2 * config.bm + 3, config.bn + 9, 100
    for extents in ((m, n, k), (2 * m, 2 * n, k), (4 * m, 4 * n, k)):
        got, expected = multiply(*extents, 1, 0, transpose_a, transpose_b, config=config, splits=2)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("splits", [15, 16, 17, 33, 70])
def test_many_parts_are_added_in_groups(splits):
    config = sgemm.CONFIGS[-2]
    m, n, k = config.bm + 5, config.bn + 3, 16 * 70 - 3
    for whole in (0, 1):
        for _ in range(2):
            got, expected = multiply(
                m, n, k, 1, 0, False, False, config=config, splits=splits, whole=whole
            )
            np.testing.assert_array_equal(got, expected)


# One row, or column, and a few; vectors, matrices, great depth; multiples of 4, and not.
SKINNY = [(1, 1, 5000), (1, 300, 7000), (300, 1, 700), (3, 3, 9001), (4, 900, 2500), (901, 4, 2499)]
SKINNY += [(7, 129, 20_000), (2000, 8, 1100), (5, 8, 3000), (130, 2, 256)]


@pairwise(
    lambda value: "x".join(map(str, value)) if isinstance(value, tuple) else None,
    transpose_a__transpose_b=FLAGS,
    pad=[0, 3, 4],
    shape=SKINNY,
)
def test_few_rows_or_columns(shape, pad, transpose_a, transpose_b):
    # By the kernel for these shapes whether it suits them or not; twice, because of the tickets.
    m, n, k = shape
    a, b, op_a, op_b = operands(m, n, k, transpose_a, transpose_b, pad)
    c0 = ct.rng(1).integers(-8, 9, (m, n + pad)).astype("float32")
    a, b, space = ct.to_device(a), ct.to_device(b), sgemm.Workspace()
    for alpha, beta in ((1, 0), (-2, 0.5), (0, 1)):
        c = ct.to_device(c0)
        product = sgemm.Product(
            m, n, k, alpha, a, a.shape[1], b, b.shape[1], beta, c, n + pad,
            transpose_a, transpose_b,
        )  # fmt: skip
        skinny.launcher(product, space)()
        got, expected = c.get(), alpha * (op_a @ op_b) + beta * c0[:, :n].astype("float64")
        np.testing.assert_array_equal(got[:, :n], expected)
        np.testing.assert_array_equal(got[:, n:], c0[:, n:])


def is_an_instance(few, along, rows, warps):
    return few * warps <= 64 and (rows <= 32 and warps == 8 if along else rows >= 32)


INSTANCES = [
    one
    for one in itertools.product([1, 3, 8], [False, True], [4, 32, 64, 128], [2, 8, 16])
    if is_an_instance(*one)
]


@pytest.mark.parametrize("parts", [1, 5, 40])
@pytest.mark.parametrize(("few", "along", "rows", "warps"), INSTANCES)
def test_few_rows_or_columns_however_they_are_split(few, along, rows, warps, parts):
    for n, k in ((301, 1111), (260, 2052)):
        a, b, op_a, op_b = operands(few, n, k, False, along, 0)
        a, b, c = ct.to_device(a), ct.to_device(b), ct.empty((few, n), "float32")
        ct.poison(c)
        product = sgemm.Product(few, n, k, 1, a, k, b, b.shape[1], 0, c, n, False, along)
        for _ in range(2):
            skinny.launcher(product, sgemm.Workspace(), by=skinny.Split(rows, warps, parts))()
            np.testing.assert_array_equal(c.get(), op_a @ op_b)


def test_what_is_chosen_for_few_rows_or_columns():
    for (m, n, k), name in (
        ((4096, 1, 4096), "skinny"), ((1, 4096, 4096), "skinny"), ((3, 3, 100_000), "skinny"),
        ((4096, 64, 4096), "sgemm"), ((5000, 3, 20), "sgemm"),
    ):  # fmt: skip
        a, b, c = (ct.empty(shape, "float32") for shape in ((m, k), (k, n), (m, n)))
        assert sgemm.prepare(a, b, c).kernel.name.startswith(name)


def test_b_is_turned_first_where_that_pays():
    m, n, k = 1700, 1031, 1040
    assert sgemm.turning_pays(m, n, k)
    for pad in (0, 3):
        got, expected = multiply(m, n, k, 0.5, 0.0, False, True, pad)
        np.testing.assert_array_equal(got[:, :n], expected)


def view(matrix, words):
    """The matrix on the GPU, so many words behind a multiple of 16 bytes."""
    base = ct.to_device(np.zeros(matrix.size + words, "float32"))
    inside = base[words:]
    inside.set(np.ascontiguousarray(matrix, "float32").ravel())
    return inside.reshape(matrix.shape)


@pytest.mark.parametrize("words", [1, 2, 3])
@pytest.mark.parametrize(("transpose_a", "transpose_b"), FLAGS)
@pytest.mark.parametrize("shape", [(132, 260, 64), (1, 3000, 1024), (2000, 4, 1200)])
def test_matrices_may_begin_at_any_word(shape, words, transpose_a, transpose_b):
    m, n, k = shape
    a, b, op_a, op_b = operands(m, n, k, transpose_a, transpose_b, 0)
    for which in range(3):
        places = [words * (which == i) for i in range(3)]
        a_view, b_view, c_view = map(view, (a, b, np.full((m, n), np.nan)), places)
        sgemm.sgemm(a_view, b_view, c_view, 1.0, 0.0, transpose_a, transpose_b)
        np.testing.assert_array_equal(c_view.get(), op_a @ op_b)


def test_an_extent_too_long_is_refused():
    one = ct.empty((1, 1), "float32")
    with pytest.raises(ValueError, match="extents go up to"):
        sgemm.launcher(2**31 - 5, 1, 1, 1.0, one, 1, one, 1, 0.0, one, 1)


def test_more_results_than_an_int_can_count():
    m, n, k = 46_400, 46_400, 4  # m n > 2^31
    if ct.device().memory_bytes < 20 << 30:
        pytest.skip("needs 20 GiB of GPU memory")
    a, b = ct.rng(0).integers(-8, 9, (m, k)), ct.rng(1).integers(-8, 9, (k, n))
    left, right = (ct.to_device(x.astype("float32")) for x in (a, b))
    c = ct.empty((m, n), "float32")
    sgemm.sgemm(left, right, c)
    for row in (0, 1, m // 2, 46_283, m - 1):  # before and after 2^31 words
        np.testing.assert_array_equal(c[row].get(), a[row] @ b)


def test_launches_on_two_streams_may_overlap():
    import pycuda.driver as cuda

    m, n, k = 100, 150, 20_000  # tiles are shared; every launch is much shorter than all of them
    a, b = operands(m, n, k, False, False, 0)[:2]
    a, b = ct.to_device(a), ct.to_device(b)
    alone = ct.empty((m, n), "float32")
    sgemm.sgemm(a, b, alone)
    streams = [cuda.Stream() for _ in range(3)]
    results = [ct.empty((m, n), "float32") for _ in streams]
    runs = [sgemm.prepare(a, b, c, stream=s) for c, s in zip(results, streams)]
    assert all(run.splits > 1 for run in runs)
    ct.synchronize()
    for _ in range(50):
        for run in runs:
            run()
    ct.synchronize()
    for c in results:
        np.testing.assert_array_equal(c.get(), alone.get())


def test_streams_may_be_short_lived():
    # A stream that is gone leaves its handle to the next one, while its launch may still run.
    import pycuda.driver as cuda

    m, n, k = 100, 150, 20_000
    a, b = (ct.to_device(x) for x in operands(m, n, k, False, False, 0)[:2])
    alone = ct.empty((m, n), "float32")
    sgemm.sgemm(a, b, alone)
    results = [ct.empty((m, n), "float32") for _ in range(100)]
    ct.synchronize()
    for c in results:
        sgemm.sgemm(a, b, c, stream=cuda.Stream())
    ct.synchronize()
    for c in results:
        np.testing.assert_array_equal(c.get(), alone.get())


@pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 3), (5, 0, 3), (0, 0, 0)])
def test_nothing_to_compute(m, n, k):
    got, _ = multiply(m, n, k, 1, 0, False, False)
    assert got.shape == (m, n)


def test_no_depth_leaves_beta_c():
    c0 = ct.rng(1).integers(-8, 9, (40, 50)).astype("float32")
    got, _ = multiply(40, 50, 0, 1, -2, False, False, c0=c0)
    np.testing.assert_array_equal(got, -2 * c0)


@pytest.mark.parametrize("alpha", [np.nan, np.inf, -np.inf, 0.0])
def test_no_depth_leaves_alpha_out(alpha):
    c0 = ct.rng(1).integers(-8, 9, (40, 50)).astype("float32")
    for beta in (0.0, 1.0, -2.0):
        got, _ = multiply(40, 50, 0, alpha, beta, False, False, c0=c0)
        np.testing.assert_array_equal(got, beta * c0)


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


class StreamK:
    """C = A B by stream_k.cu, with flags and partials of its own."""

    def __init__(self, a, b, c, blocks, stream=None):
        self.kernel = ct.Kernel(
            "gemm/tile_quantization/stream_k.cu", "sgemm_stream_k<64,128,8,8,8,3>"
        )
        (m, k), n = a.shape, b.shape[1]
        steps = ct.cdiv(m, 64) * ct.cdiv(n, 128) * ct.cdiv(k, 8)
        resident = self.kernel.resources(128).blocks_per_sm * ct.device().sm_count
        self.blocks = min(blocks or resident, resident, steps)
        self.flags = ct.to_device(np.zeros(self.blocks, "uint32"))
        self.partials = ct.empty(self.blocks * 64 * 128, "float32")
        self.arguments = a, b, c, m, n, k, self.partials, self.flags
        self.stream = stream

    def __call__(self):
        self.kernel(*self.arguments, grid=self.blocks, block=128, stream=self.stream)


# Tiles that hang over both edges, a depth that no step divides; fewer blocks than tiles, so that a piece has a whole tile
# between two parts of others; a piece of one step; one tile shared by all blocks; edges of 16 bytes, and not.
@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 50, 0])
@pytest.mark.parametrize(
    "shape",
    [(65, 129, 9), (70, 130, 1003), (130, 260, 44), (1, 1, 4000), (300, 500, 17), (64, 128, 8)],
)
def test_stream_k_pieces_that_end_anywhere(shape, blocks):
    m, n, k = shape
    a, b, op_a, op_b = operands(m, n, k, False, False, 0)
    for words in (0, 1):
        c = view(np.full((m, n), np.nan), words)
        run = StreamK(view(a, words), view(b, words), c, blocks)
        for _ in range(2):  # the second launch finds the flags as the first left them
            run()
            np.testing.assert_array_equal(c.get(), op_a @ op_b)


def test_stream_k_on_two_streams():
    import pycuda.driver as cuda

    m, n, k = 130, 260, 3000
    a, b, op_a, op_b = operands(m, n, k, False, False, 0)
    a, b = ct.to_device(a), ct.to_device(b)
    streams = [cuda.Stream() for _ in range(3)]
    results = [ct.empty((m, n), "float32") for _ in streams]
    runs = [StreamK(a, b, c, 0, s) for c, s in zip(results, streams)]
    ct.synchronize()
    for _ in range(30):
        for run in runs:
            run()
    ct.synchronize()
    for c in results:
        np.testing.assert_array_equal(c.get(), op_a @ op_b)
