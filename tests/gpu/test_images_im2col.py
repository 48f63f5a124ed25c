"""examples/images/im2col: every kernel against NumPy's matrix, the convolution with any number of images at once, what is refused."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.im2col import launch
from cudatut.book.images.im2col.reference import matrix
from cudatut.book.images.shapes import RAGGED, Shape, reference

SHAPES = [
    *RAGGED,
    Shape(3, 6, 9, 9, 6, (3, 3), pad=(1, 1), groups=6),
    Shape(7, 2, 3, 3, 5, (3, 3)),  # one place an image
    Shape(2, 3, 12, 12, 4, (7, 7), (2, 2), (3, 3)),
    Shape(2, 3, 9, 16, 4, (3, 3), (1, 2), (1, 1)),
    Shape(1, 70000, 1, 2, 1, (1, 1)),  # more channels than a grid has rows
]


def given(shape, seed=0):
    rng = ct.rng(seed)
    images = rng.integers(-4, 5, (shape.images, shape.channels, shape.height, shape.width))
    weights = rng.integers(-4, 5, (shape.filters, shape.channels // shape.groups, *shape.window))
    images, weights = images.astype("float32"), weights.astype("float32")
    y = ct.empty((shape.images, shape.filters, *shape.out), "float32")
    arguments = shape, ct.to_device(images), ct.to_device(weights), y
    return arguments, images, reference(shape, images, weights)


@pytest.mark.parametrize("kind", launch.KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_matrix(shape, kind):
    (_, x, _, _), images, _ = given(shape)
    wanted, found = np.zeros(launch.extents(shape), "float32"), matrix(shape, images)
    wanted[:, : found.shape[1]] = found
    out = ct.empty(wanted.shape, "float32")
    ct.poison(out)
    if kind == "row" and launch.refuses_row(shape):
        with pytest.raises(ValueError, match="`four` takes it"):
            launch.im2col(shape, x, out, kind)
        return
    for blocks in (1, launch.BLOCKS):  # all channels of a thread, or one
        ct.poison(out)
        launch.im2col(shape, x, out, kind, blocks=blocks)()
        ct.check(out, wanted, name=f"im2col {kind}, {blocks} blocks", rtol=0)


@pytest.mark.parametrize("at_once", [None, 1, 2])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_convolution(shape, at_once):
    arguments, _, expected = given(shape)
    run = launch.convolve(*arguments, at_once)
    for _ in range(2):
        ct.poison(arguments[-1])
        run()
        ct.check(arguments[-1], expected, name=f"convolve {at_once}", rtol=0)
    assert run.matrix.nbytes == run.memory.matrix
    assert (run.product.nbytes if run.product is not None else 0) == run.memory.product


def test_pointwise():
    for shape in (Shape(2, 200, 8, 8, 264, (1, 1)), Shape(3, 5, 7, 9, 11, (1, 1))):
        arguments, _, expected = given(shape)
        ct.poison(arguments[-1])
        launch.pointwise(*arguments)()
        ct.check(arguments[-1], expected, name="pointwise", rtol=0)


def test_what_is_refused_writes_nothing():
    arguments, _, _ = given(Shape(1, 4, 5, 5, 4, (3, 3), pad=(1, 1)))
    shape, x, w, y = arguments
    ct.poison(y)
    before = y.get().view("uint32")
    with pytest.raises(ValueError, match="shares"):
        launch.convolve(shape, x, w, x)
    with pytest.raises(TypeError):
        launch.convolve(shape, x.get(), w, y)
    with pytest.raises(ValueError):
        launch.convolve(shape._replace(filters=shape.filters + 1), x, w, y)
    with pytest.raises(ValueError, match="no kernel"):
        launch.convolve(*arguments, kind="five")
    assert np.array_equal(before, y.get().view("uint32"))


FAULTS = [
    ("words", "s.stride_y - s.pad_y + r", "s.stride_y - s.pad_x + r"),
    ("words", "q * s.dilation_x", "q * s.dilation_y"),
    ("words", "s.out_width * s.stride_x", "s.out_width * s.stride_y"),
    ("places", "s.stride_x - s.pad_x;", "s.stride_x;"),
    ("places", "top + r * s.dilation_y", "top + r"),
    ("places", "image < s.images && y >= 0", "y >= 0"),
    ("four", "row = 0, ++image[i + 1]", "++image[i + 1]"),
    ("four", "at * s.stride_x - s.pad_x", "at * s.stride_y - s.pad_x"),
    ("four", "r * s.dilation_y,", "q * s.dilation_y,"),
    ("row", "word[q + 2 * STRIDE]", "word[q + 2]"),
    ("row", "of.top[0] == of.top[3] &&", ""),
]


@pytest.mark.parametrize(("kind", "was", "fault"), FAULTS)
def test_faults_in_index_maps_are_noticed(kind, was, fault, monkeypatch):
    """A source with the fault stands for the file; some matrix is then wrong."""
    from cudatut import paths

    text = (paths.examples_dir() / f"{launch.FOLDER}/im2col.cu").read_text()
    assert was in text

    def faulty(_, name, defines=()):
        return ct.Kernel(text.replace(was, fault), name, defines=dict(defines))

    monkeypatch.setattr(launch, "kernel", faulty)
    noticed = 0
    for shape in (
        Shape(2, 3, 10, 11, 4, (3, 3), (2, 1), (1, 0), (2, 3)),
        Shape(3, 2, 9, 9, 4, (3, 3), (1, 2), (1, 1)),
    ):
        if kind == "row" and launch.refuses_row(shape):
            continue
        (_, x, _, _), images, _ = given(shape)
        wanted, found = np.zeros(launch.extents(shape), "float32"), matrix(shape, images)
        wanted[:, : found.shape[1]] = found
        out = ct.empty(wanted.shape, "float32")
        ct.poison(out)
        launch.im2col(shape, x, out, kind)()
        noticed += not np.array_equal(out.get(), wanted)
    assert noticed


def test_a_fault_in_the_order_of_results_is_noticed(monkeypatch):
    from cudatut import paths

    text = (paths.examples_dir() / f"{launch.FOLDER}/images_first.cu").read_text()
    was = "which % filters * pitch + image * plane"
    assert was in text
    right = launch.kernel

    def faulty(source, name, defines=()):
        if source != "images_first":
            return right(source, name, defines)
        return ct.Kernel(text.replace(was, "which % filters * pitch + image"), name)

    monkeypatch.setattr(launch, "kernel", faulty)
    arguments, _, expected = given(Shape(3, 4, 5, 6, 7, (3, 3), pad=(1, 1)))
    launch.convolve(*arguments)()
    assert not np.array_equal(arguments[-1].get(), expected)
