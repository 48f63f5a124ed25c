"""examples/images/direct: every rung on ragged convolutions against NumPy, several launches of one, what is refused, and faults that are noticed."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.direct import launch
from cudatut.book.images.direct.launch import FEW, MANY, Part
from cudatut.book.images.shapes import RAGGED, Shape, reference

SHAPES = [
    *RAGGED,
    Shape(2, 4, 6, 70, 9, (5, 5), pad=(2, 2)),
    Shape(1, 9, 60, 9, 40, (3, 3), pad=(1, 1)),
    Shape(1, 6, 12, 12, 40, (7, 7), (2, 2), (3, 3)),
    Shape(2, 6, 9, 9, 6, (3, 3), pad=(1, 1), groups=6),
    Shape(1, 3, 9, 9, 3, (3, 3), (200, 200), (1, 1)),
    Shape(1, 3, 2, 5, 70000, (1, 1)),
]
PARTS = [MANY, FEW, Part(8, 8, 32, 4), Part(7, 8, 16, 4), Part(7, 16, 8, 2), Part(7, 8, 8, 8)]


def numbers(shape, seed=0):
    rng = ct.rng(seed)
    images = rng.integers(-4, 5, (shape.images, shape.channels, shape.height, shape.width))
    weights = rng.integers(-4, 5, (shape.filters, shape.channels // shape.groups, *shape.window))
    return images.astype("float32"), weights.astype("float32")


def given(shape):
    images, weights = numbers(shape)
    y = ct.empty((shape.images, shape.filters, *shape.out), "float32")
    return (shape, ct.to_device(images), ct.to_device(weights), y), reference(
        shape, images, weights
    )


def right(run, arguments, expected, name):
    ct.poison(arguments[-1])
    run()
    ct.check(arguments[-1], expected, name=name, rtol=0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_rungs(shape):
    arguments, expected = given(shape)
    for name in ("naive", "constant", "direct"):
        right(getattr(launch, name)(*arguments), arguments, expected, name)
    if not launch.refuses_tiles(shape):
        right(launch.tiled(*arguments), arguments, expected, "tiled")
    for part in (MANY, FEW):
        if not launch.refuses_several(shape, part):
            right(launch.several(*arguments, part), arguments, expected, f"several {part}")
        if not launch.refuses_window(shape):
            for ahead in (False, True):
                run = launch.window(*arguments, part, ahead=ahead)
                right(run, arguments, expected, f"window {part}, ahead: {ahead}")


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_all_parts(part):
    for shape in (
        Shape(2, 11, 30, 29, 70, (3, 3), pad=(1, 1)),
        Shape(1, 5, 33, 61, 9, (3, 3), (2, 2)),
    ):
        arguments, expected = given(shape)
        right(launch.window(*arguments, part), arguments, expected, f"window {part}")
        right(launch.window(*arguments, part, 2, True), arguments, expected, "two channels, ahead")
        right(launch.ahead(*arguments), arguments, expected, "ahead")
        across = (("ACROSS", 1),)
        right(launch.window(*arguments, part, defines=across), arguments, expected, "across")
        right(launch.several(*arguments, part, defines=across), arguments, expected, "across")
        right(launch.several(*arguments, part), arguments, expected, f"several {part}")
        right(launch.several(*arguments, part, room=1), arguments, expected, "one channel a step")


def test_a_second_launch_gives_the_same():
    arguments, expected = given(SHAPES[5])
    for name in ("constant", "window"):
        run = getattr(launch, name)(*arguments)
        for _ in range(2):
            right(run, arguments, expected, name)


def test_what_does_not_fit_is_refused_and_writes_nothing():
    deep = Shape(1, 2000, 3, 3, 2, (3, 3), pad=(1, 1))
    far = Shape(1, 2, 9, 9, 2, (3, 3), pad=(200, 200), dilation=(200, 200))
    for shape, name, why in [
        (deep, "constant", "18000 weights"),
        (far, "tiled", "cover"),
        (far, "several", "shared memory"),
        (far, "window", "dilated"),
    ]:
        arguments, _ = given(shape)
        ct.poison(arguments[-1])
        before = arguments[-1].get()
        with pytest.raises(ValueError, match=why):
            getattr(launch, name)(*arguments)
        assert np.array_equal(before.view("uint32"), arguments[-1].get().view("uint32"))
        right(launch.direct(*arguments), arguments, reference(shape, *numbers(shape)), "direct")


FAULTS = [
    ("naive", "r * s.dilation_y", "r"),
    ("naive", "s.stride_y - s.pad_y", "s.stride_y"),
    ("naive", "x < s.width", "x <= s.width"),
    ("constant", "filter / s.filters", "0"),
    ("constant", "blockIdx.y * s.channels", "blockIdx.y"),
    ("constant", "s.stride_x - s.pad_x", "s.stride_y - s.pad_x"),
    ("constant", "q * s.dilation_x", "q * s.dilation_y"),
    ("tiled", "ty * s.stride_y * wide", "ty * wide"),
    ("several", "q * s.dilation_x", "q"),
    ("window", "row * STRIDE - s.pad_y", "row * STRIDE"),
    ("window", "slot ^ 1", "slot"),
    ("window", "word[i * STRIDE + r]", "word[i + r]"),
    ("naive", "% s.out_width * s.stride_x", "% s.out_width * s.stride_y"),
    ("tiled", "s.stride_x - s.pad_x", "s.stride_x - s.pad_y"),
    ("several", "row * s.stride_y - s.pad_y", "row * s.stride_y - s.pad_x"),
]


@pytest.mark.parametrize(("file", "was", "fault"), FAULTS)
def test_faults_in_index_maps_are_noticed(file, was, fault, monkeypatch):
    """A source with the fault stands for the file; some convolution is then wrong."""
    from cudatut import paths

    text = (paths.examples_dir() / f"{launch.FOLDER}/{file}.cu").read_text()
    assert was in text

    def faulty(_, name, defines=()):
        return ct.Kernel(text.replace(was, fault), name, defines=dict(defines))

    monkeypatch.setattr(launch, "kernel", faulty)
    noticed = 0
    for shape in (
        Shape(2, 12, 10, 11, 18, (3, 3), (2, 1), (1, 0), (2, 3), groups=3),
        Shape(2, 11, 10, 11, 18, (3, 3), (2, 2), (1, 1)),
    ):
        arguments, expected = given(shape)
        if file == "window" and launch.refuses_window(shape):
            continue
        ct.poison(arguments[-1])
        rung = "ahead" if "slot" in was else file
        getattr(launch, rung)(*arguments)()
        noticed += not np.array_equal(arguments[-1].get(), expected)
    assert noticed
