"""examples/images/depthwise: all instances on ragged convolutions against NumPy, unaligned arrays, what is refused, and faults that are noticed."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.depthwise import launch
from cudatut.book.images.depthwise.launch import FOUR, TWO, Part, Strip
from cudatut.book.images.shapes import Shape, reference
from cudatut.book.numbers.bf16 import to_bf16, to_float


def depthwise(images, channels, height, width, window, stride=1, pad=None, **more):
    pads = (window // 2,) * 2 if pad is None else pad
    return Shape(
        images, channels, height, width, channels, (window,) * 2, (stride,) * 2, pads,
        groups=channels, **more,
    )  # fmt: skip


SHAPES = [
    shape
    for window in (3, 5, 7)
    for stride in (1, 2)
    for channels, size in ((1, (1, 1)), (6, (7, 7)), (8, (14, 14)), (136, (9, 12)), (4, (65, 71)))
    for pad in (None, (9, 0))
    if min((shape := depthwise(2, channels, *size, window, stride, pad)).out) > 0
]
OTHERS = [
    Shape(2, 5, 7, 9, 5, (3, 2), pad=(1, 0), groups=5),
    Shape(1, 4, 9, 8, 4, (1, 1), (3, 2), groups=4),
    Shape(1, 6, 5, 6, 6, (3, 3), pad=(9, 8), dilation=(7, 8), groups=6),
]


def given(shape, last, late=0):
    """Arguments of a launcher, and results that are wanted. late: words by which the arrays begin late."""
    rng = ct.rng(7)
    images = rng.integers(-4, 5, (shape.images, shape.channels, shape.height, shape.width))
    weights = rng.integers(-4, 5, (shape.filters, 1, *shape.window))
    expected = reference(shape, images, weights)
    arrays = [images, weights]
    if last:
        arrays = [a.transpose(0, 2, 3, 1) for a in arrays]
        expected = to_float(to_bf16(expected.transpose(0, 2, 3, 1).astype("float32")))
    arrays = [np.ascontiguousarray(a, "float32") for a in arrays]
    if last:
        arrays = [to_bf16(a) for a in arrays]
    on_gpu = []
    for a in arrays:
        whole = ct.empty(a.size + late, a.dtype)
        whole[late:].set(a.ravel())
        on_gpu.append(whole[late:].reshape(a.shape))
    y = ct.empty(expected.size + late, arrays[0].dtype)[late:].reshape(expected.shape)
    return (shape, *on_gpu, y), expected


def right(run, y, expected, name):
    ct.poison(y)
    run()
    found = y.get()
    ct.check(to_float(found) if found.dtype == "uint16" else y, expected, name=name, rtol=0)


@pytest.mark.parametrize("kind", ["fp32", "bf16"])
@pytest.mark.parametrize("shape", [*SHAPES, *OTHERS], ids=str)
def test_what_is_chosen_is_right(shape, kind):
    arguments, expected = given(shape, kind == "bf16")
    right(launch.depthwise(*arguments, kind), arguments[-1], expected, kind)


@pytest.mark.parametrize("kind", ["fp32", "bf16"])
def test_arrays_that_begin_anywhere(kind):
    for shape in SHAPES[::3]:
        arguments, expected = given(shape, kind == "bf16", late=3)
        right(launch.depthwise(*arguments, kind), arguments[-1], expected, kind)


@pytest.mark.parametrize("across", [1, 2, 4])
def test_every_strip(across):
    for shape in SHAPES:
        best = launch.strip(shape, True)
        if best.across >= across:
            arguments, expected = given(shape, False)
            run = launch.planes(*arguments, best._replace(across=across))
            right(run, arguments[-1], expected, f"{across} across")


@pytest.mark.parametrize("part", [FOUR, TWO], ids=str)
def test_every_part(part):
    for shape in SHAPES:
        if shape.channels % part.channels == 0:
            arguments, expected = given(shape, True)
            right(launch.channels(*arguments, part), arguments[-1], expected, str(part))


def test_what_is_refused():
    full = Shape(1, 4, 5, 5, 8, (3, 3))
    arrays = [np.zeros(1, "float32")] * 3
    with pytest.raises(ValueError, match="groups have 4 channels, not one"):
        launch.planes(full, *arrays)
    twice = full._replace(groups=4)
    with pytest.raises(ValueError, match="a channel has 2 filters, not one"):
        launch.channels(twice, *arrays)
    arguments, _ = given(OTHERS[0], False)
    with pytest.raises(ValueError, match=r"only any\.cu takes it"):
        launch.planes(*arguments, Strip(1))
    arguments, _ = given(depthwise(1, 6, 9, 9, 3), True)
    with pytest.raises(ValueError, match="4 at once"):
        launch.channels(*arguments, Part(4))
    arguments, _ = given(depthwise(1, 6, 9, 9, 3), False)
    with pytest.raises(ValueError, match="vectors of 4 words"):
        launch.planes(*arguments, Strip(4))


@pytest.mark.parametrize(
    ("file", "was", "fault"),
    [
        ("planes", "at < s.height", "at <= s.height"),
        ("planes", "const int r = row - p * S;", "const int r = row - p;"),
        ("planes", "which % s.groups", "0"),
        ("channels", "left + j < s.width", "left + j <= s.width"),
        ("channels", "const int c = j - p * S;", "const int c = j - p;"),
        ("channels", "top + row >= 0", "top + row > 0"),
        ("any", "r * s.dilation_y", "r"),
    ],
)
def test_faults_in_index_maps_are_noticed(file, was, fault, monkeypatch):
    """A source with the fault stands for the file; some convolution is then wrong."""
    text = (ct.paths.examples_dir() / f"{launch.FOLDER}/{file}.cu").read_text()
    assert was in text

    def faulty(source, name):
        return ct.Kernel(text.replace(was, fault), name)

    monkeypatch.setattr(launch, "kernel", faulty)
    noticed = 0
    for shape in OTHERS if file == "any" else SHAPES[::2]:
        last = file == "channels"
        if (file != "any" and launch.general(shape)) or (last and shape.channels % 2):
            continue
        arguments, expected = given(shape, last)
        try:
            right(
                (launch.channels if last else launch.planes)(*arguments),
                arguments[-1],
                expected,
                file,
            )
        except ct.CheckError:
            noticed += 1
    assert noticed
