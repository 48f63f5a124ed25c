"""examples/images/scoreboard on a GPU: whatever is chosen is right on layers of all kinds, shrunk, and so is cuDNN on the same memory."""

import pytest

import cudatut as ct
from cudatut.book.images.scoreboard import choose, shapes
from cudatut.book.images.scoreboard.field import KINDS, Field
from cudatut.book.images.shapes import Shape
from cudatut.book.rivals import cudnn_conv

CASES = [
    shapes.shrunk(case, 20, 2) for case in [*shapes.VARIED, *shapes.CUDATUTORIAL, *shapes.DRAWN]
]


@pytest.fixture(scope="module", params=KINDS)
def field(request):
    if not ct.supports(ct.device().compute_capability, "sm_90a"):
        pytest.skip("needs Hopper")
    return Field(request.param, CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_chosen_is_right(field, case):
    x, w, y = field.arrays(case)
    ct.poison(y)
    choose.convolution(field.kind, Shape(*case.numbers), x, w, y)()
    field.check(case)


@pytest.mark.parametrize("case", CASES[:7], ids=lambda case: case.name)
def test_every_way_that_is_able_is_right(field, case):
    x, w, y = field.arrays(case)
    shape = Shape(*case.numbers)
    for name in choose.able(field.kind, shape):
        ct.poison(y)
        choose.WAYS[field.kind][name](shape, x, w, y)()
        field.check(case, name)


@pytest.mark.parametrize("case", CASES[::4], ids=lambda case: case.name)
def test_the_rival_is_right_on_our_memory(field, case):
    x, w, y = field.arrays(case)
    layer = case.layer
    runs = cudnn_conv.contestants(x, w, y, layer.stride, layer.pad, layer.dilation, layer.groups)
    if not runs["cuDNN"]:
        pytest.skip(runs["cuDNN"].reason)
    ct.poison(y)
    runs["cuDNN"]()
    field.check(case, "cuDNN")


def test_a_fault_is_noticed(field):
    """Weights of the neighboring word: the check is no formality."""
    case = CASES[0]
    x, w, y = field.arrays(case)
    shape = Shape(*case.numbers)
    wrong = field.given[1][1 : 1 + case.words[1]].reshape(w.shape)
    try:
        run = choose.WAYS[field.kind][choose.IMPLICIT](shape, x, wrong, y)
    except (TypeError, ValueError):
        pytest.skip("not aligned")
    ct.poison(y)
    run()
    with pytest.raises(ct.CheckError):
        field.check(case)
