"""examples/images/im2col: every kernel against NumPy's matrix, the convolution with any number of images at once, what is refused."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.im2col import launch
from cudatut.book.images.im2col.reference import matrix
from cudatut.book.images.implicit_gemm.shapes import RAGGED, Shape, reference

SHAPES = [
    *RAGGED,
    Shape(3, 6, 9, 9, 6, (3, 3), pad=(1, 1), groups=6),
    Shape(7, 2, 3, 3, 5, (3, 3)),  # one place an image
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
    launch.im2col(shape, x, out, kind)()
    ct.check(out, wanted, name=f"im2col {kind}", rtol=0)


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
