"""The scoreboard's contests without a GPU: what `check` expects is the convolution, in both layouts, and rivals that are not there say why."""

import sys

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.cutlass_conv import conv as cutlass
from cudatut.book.images.implicit_gemm.shapes import Shape, reference
from cudatut.book.images.scoreboard.field import KINDS, Field
from cudatut.book.images.scoreboard.networks import Layer
from cudatut.book.images.scoreboard.shapes import ANCHORS, DRAWN, Case
from cudatut.book.rivals import cudnn_conv, vision

SMALL = (
    Case(Layer("-", "plain", 1, 5, (7, 6), 4, (3, 3), (1, 1), (1, 1)), 2),
    Case(Layer("-", "strided", 1, 6, (9, 12), 8, (3, 2), (2, 3), (1, 0), (1, 2), 2), 3),
    Case(Layer("-", "depthwise", 1, 6, (5, 4), 6, (5, 3), (1, 1), (7, 6), (4, 3), 6), 1),
    Case(Layer("-", "pixel", 1, 1, (1, 1), 1, (1, 1)), 1),
)


def field(kind: str) -> Field:
    """Without arrays on a GPU. Periods are short, so that words repeat."""
    one = Field.__new__(Field)
    one.kind, one.last = kind, kind == "bf16"
    one.numbers = [ct.rng(i).standard_normal(n).astype("float32") for i, n in enumerate((101, 53))]
    return one


def wanted(one: Field, case: Case) -> np.ndarray:
    """All results, as they lie in memory, by the chapter on implicit GEMM."""
    layer = case.layer
    images = (case.batch, layer.channels, *layer.size)
    weights = (layer.filters, layer.channels // layer.groups, *layer.window)
    arrays = []
    for numbers, shape in zip(one.numbers, (images, weights)):
        if one.last:
            n, c, h, w = shape
            arrays.append(np.resize(numbers, (n, h, w, c)).transpose(0, 3, 1, 2))
        else:
            arrays.append(np.resize(numbers, shape))
    found = reference(Shape(*case.numbers), *arrays)
    return (found.transpose(0, 2, 3, 1) if one.last else found).ravel()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.layer.name)
def test_what_is_expected_is_the_convolution(kind, case):
    one, count = field(kind), case.words[2]
    exact, sizes = one.exact(case, np.arange(count))
    np.testing.assert_allclose(exact, wanted(one, case), rtol=1e-12, atol=1e-12)
    assert np.all(sizes >= np.abs(exact) - 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_of_the_arrays(kind):
    """Images, weights, results: with the channel last in bf16, and as many words as the case says."""
    one = field(kind)
    one.given = [np.zeros(max(case.words[i] for case in SMALL)) for i in (0, 1)]
    one.results = np.zeros(max(case.words[2] for case in SMALL))
    for case in SMALL:
        arrays = one.arrays(case)
        assert tuple(array.size for array in arrays) == case.words
        assert [array.shape[-1 if one.last else 1] for array in arrays] == [
            case.layer.channels,
            case.layer.channels // case.layer.groups,
            case.layer.filters,
        ]


@pytest.mark.parametrize("case", [*ANCHORS, *DRAWN], ids=lambda case: case.name)
def test_a_case_is_a_shape_of_the_kernels(case):
    shape = Shape(*case.numbers)
    shape.check("test")
    assert shape.out == case.layer.out
    assert shape.flops == case.flops


@pytest.fixture
def nothing_installed(monkeypatch):
    monkeypatch.setattr(ct, "activate", lambda: None, raising=False)
    for name in ("torch", "torchvision", "cv2"):
        monkeypatch.setitem(sys.modules, name, None)


def test_rivals_that_are_not_there_say_so(nothing_installed):
    x = np.zeros((1, 1, 1, 1), "float32")
    runs = cudnn_conv.contestants(x, x, x)
    assert list(runs) == ["cuDNN", "PyTorch"]
    absent = [
        *runs.values(),
        vision.nms(x, x, 0.5),
        vision.resize(x, (2, 2)),
        vision.preprocess([x], lambda *_: (1, 1, 0, 0), 2, (0, 0, 0), (1, 1, 1)),
    ]
    for one in absent:
        assert not one and one.reason.startswith("PyTorch cannot run here")
    assert vision.opencv_us(lambda cv2: None).reason == "OpenCV is not installed"
    assert cudnn_conv.version() is None


def test_opencv_is_timed(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", object())
    calls = []
    assert vision.opencv_us(lambda cv2: lambda: calls.append(cv2), rounds=3) > 0
    assert len(calls) == 4


def test_cutlass_that_is_not_there_says_so(monkeypatch):
    monkeypatch.setattr(cutlass, "find_spec", lambda name: None)
    with pytest.raises(ct.ToolMissing, match="nvidia-cutlass is not installed"):
        cutlass.headers()
    assert len({tile.name for tile in cutlass.TILES}) == len(cutlass.TILES)
