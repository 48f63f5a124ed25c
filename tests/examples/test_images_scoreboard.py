"""The scoreboard's contests without a GPU: what `check` expects is the convolution, in both layouts, and rivals that are not there say why."""

import sys

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.cutlass_conv import conv as cutlass
from cudatut.book.images.scoreboard import choose, shapes
from cudatut.book.images.scoreboard.field import KINDS, Field, goal, mean
from cudatut.book.images.scoreboard.networks import Layer
from cudatut.book.images.scoreboard.shapes import ANCHORS, DRAWN, Case
from cudatut.book.images.shapes import Shape, reference
from cudatut.book.rivals import cudnn_conv, vision
from cudatut.pairs import Ratio

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


EVERY = [*ANCHORS, *DRAWN, *shapes.CUDATUTORIAL, *shapes.VARIED, *shapes.RESNET_50]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_chosen_can_compute_it(kind):
    for case in [*EVERY, *SMALL]:
        shape = Shape(*case.numbers)
        able = choose.able(kind, shape)
        assert choose.way(kind, shape) in able, case.name
        assert able[-1] == choose.IMPLICIT
        assert set(able) <= set(choose.WAYS[kind])


def test_the_choice_goes_by_sizes():
    plain = Shape(32, 256, 28, 28, 256, (3, 3), pad=(1, 1))
    assert choose.way("fp32", plain) == "Winograd"
    assert choose.way("bf16", plain) == choose.IMPLICIT
    assert choose.way("fp32", plain._replace(stride=(2, 2))) == choose.IMPLICIT
    for kind in KINDS:
        assert choose.way(kind, plain._replace(groups=256)) == "depthwise"
    first = Shape(32, 3, 224, 224, 64, (7, 7), (2, 2), (3, 3))
    assert choose.way("fp32", first) == choose.IMPLICIT


def test_instances_are_those_of_the_files():
    found = choose.instances("images/depthwise")
    assert ("images/depthwise/planes.cu", "planes<3, 1, 4, 7, 2, 4>", None, (), None) in found
    assert len(choose.instances()) > len(found)
    hopper = [one for one in choose.instances() if one[-1] == "sm_90a"]
    assert {one[0] for one in hopper} == {"images/implicit_gemm/im2col_tma.cu"}


def test_ten_more_need_the_commit_that_ends_the_tuning(monkeypatch):
    monkeypatch.setattr(shapes, "MORE_SEED", None)
    with pytest.raises(ValueError, match="cannot be drawn yet"):
        shapes.ten()
    monkeypatch.setattr(shapes, "MORE_SEED", 0x1234ABCD)
    ten = shapes.ten()
    assert len({case.layer.network for case in ten}) == len(ten) == 10
    assert not {case.layer for case in ten} & {case.layer for case in DRAWN}


def test_means_and_goals():
    found = [Ratio(2.0, 1.9, 2.1, 15), Ratio(0.5, 0.4, 0.6, 12)]
    of_both = mean(found)
    assert of_both.median == pytest.approx(1)
    assert (of_both.low, of_both.high) == pytest.approx(((1.9 * 0.4) ** 0.5, (2.1 * 0.6) ** 0.5))
    assert of_both.pairs == 12
    verdicts = [goal(of_both, wanted).verdict for wanted in (0.8, 1.0, 1.2)]
    assert verdicts == ["reached", "undecided", "missed"]


def solution(number: int) -> dict:
    """The names that a solution defines, with its imports."""
    text = (ct.paths.examples_dir() / "images/scoreboard/solutions.py").read_text(encoding="utf-8")
    own = {cell.splitlines()[0]: cell.split("\n", 1)[1] for cell in text.split("# %% ")}
    names: dict = {}
    exec(own[f"given-{number}"] + own[f"solution-{number}"], names)
    return names


def test_limits_of_a_layer_are_those_of_a_case():
    bound = solution(1)["bound"]
    for case in EVERY:
        one = case.layer
        sizes = case.batch, one.channels, one.size, one.filters, one.window, one.groups, one.out
        operations, moved = bound(*sizes, 4, 60.0, 4000.0)
        assert operations == pytest.approx(case.flops / 60e6)
        assert moved == pytest.approx(sum(case.words) / 1e6)


def test_a_network_is_the_sum_of_its_layers():
    whole = solution(2)["whole"]
    assert whole([("a", 1, 5.0, 4.0), ("b", 2, 9.0, 3.0)]) == (10 / 23, "b")
