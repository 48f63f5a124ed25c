"""examples/images/winograd: exact for multiples of nine on ragged shapes, any tile of the product, within the bound for random
numbers, several launches of one, what is refused, and faults that are noticed."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.shapes import SMALL, Shape, reference
from cudatut.book.images.winograd import launch
from cudatut.book.images.winograd import reference as winograd

SHAPES = [
    *winograd.SHAPES,
    Shape(2, 64, 7, 7, 96, (3, 3), pad=(1, 1), groups=2),
    Shape(1, 7, 1, 3000, 5, (3, 3), pad=(1, 1)),
    Shape(1, 5, 3000, 1, 7, (3, 3), pad=(1, 3), dilation=(700, 3)),
    SMALL._replace(images=2, height=27, width=30, filters=100, channels=72),
    # More channels than a grid has rows, of words and, four at a time, of weights.
    Shape(1, 132000, 1, 1, 4, (3, 3), pad=(1, 1)),
    Shape(1, 4, 1, 1, 66000, (3, 3), pad=(1, 1)),  # and filters
]


def given(shape, numbers=None):
    images, weights = numbers or winograd.numbers(shape, most=1)
    y = ct.empty((shape.images, shape.filters, *shape.out), "float32")
    return (shape, ct.to_device(images), ct.to_device(weights), y), reference(
        shape, images, weights
    )


def poison(run, y):
    """Nothing of an earlier run is left, in the results and between the steps."""
    for one in (y, *run.memory):
        ct.poison(one)


def right(run, y, expected, name):
    ct.poison(y)
    run()
    ct.check(y, expected, name=name, rtol=0)


@pytest.mark.parametrize("m", launch.WAYS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_exact(shape, m):
    arguments, expected = given(shape)
    for at_once in (None, 1, 2):
        run = launch.winograd(*arguments, m, at_once)
        poison(run, arguments[-1])
        for _ in range(2):
            right(run, arguments[-1], expected, f"F({m}), {at_once} images at once")
    right(launch.winograd(*arguments, m, fixed=True), arguments[-1], expected, "weights fixed")
    right(launch.winograd(*arguments), arguments[-1], expected, "as chosen")


@pytest.mark.parametrize("config", launch.CONFIGS, ids=lambda one: one.label)
def test_every_tile_of_the_product(config):
    for shape in (
        SHAPES[-3],
        Shape(2, 40, 9, 21, 70, (3, 3), pad=(1, 1), groups=2),
        Shape(5, 64, 9, 21, 720, (3, 3), pad=(1, 1)),  # blocks that stay for several tiles
        Shape(2, 32, 13, 9, 34, (3, 3), pad=(1, 1), groups=2),
    ):
        whole = shape.channels // shape.groups % config.bk == 0
        for m in launch.WAYS:
            arguments, expected = given(shape)
            for stays in (False, True)[: 1 + whole]:
                run = launch.winograd(*arguments, m, config=config, stays=stays)
                poison(run, arguments[-1])
                name = f"F({m}), {config.label}{', stays' * stays}"
                right(run, arguments[-1], expected, name)


@pytest.mark.parametrize("m", launch.WAYS)
def test_random_numbers_stay_within_their_bound(m):
    for shape in (Shape(2, 72, 19, 15, 136, (3, 3), pad=(1, 1)), SHAPES[-3], SHAPES[2]):
        rng = ct.rng(m)
        images = rng.standard_normal(
            (shape.images, shape.channels, shape.height, shape.width), "float32"
        )
        weights = rng.standard_normal(
            (shape.filters, shape.channels // shape.groups, 3, 3), "float32"
        )
        arguments, expected = given(shape, (images, weights))
        ct.poison(arguments[-1])
        launch.winograd(*arguments, m)()
        off = np.abs(arguments[-1].get() - expected)
        assert (off <= winograd.bound(shape, images, weights, m)).all()


def test_results_that_begin_anywhere():
    """Stores of four words ask for addresses that are multiples of 16."""
    shape = Shape(2, 5, 8, 12, 6, (3, 3), pad=(1, 1))
    (_, x, w, y), expected = given(shape)
    for late in (1, 2, 3):
        room = ct.empty(y.size + late, "float32")
        shifted = room[late:].reshape(y.shape)
        for m in launch.WAYS:
            ct.poison(room)
            launch.winograd(shape, x, w, shifted, m)()
            ct.check(shifted.get(), expected, name=f"F({m}), {late} words late", rtol=0)


def test_parts_are_the_whole():
    (shape, x, w, y), expected = given(SHAPES[-3])
    run = launch.winograd(shape, x, w, y, 4)
    parts = launch.parts(run)
    poison(run, y)
    for name in ("inputs", "products", "results"):
        parts[name]()
    ct.check(y, expected, name="one step after the other", rtol=0)
    ct.poison(y)
    before = run.memory.u.get()
    ct.poison(run.memory.u)
    parts["weights"]()
    ct.check(run.memory.u, before, name="weights alone", rtol=0)


def test_what_is_refused_writes_nothing():
    (shape, x, w, y), _ = given(Shape(1, 4, 5, 5, 4, (3, 3), pad=(1, 1)))
    ct.poison(y)
    before = y.get().view("uint32")
    with pytest.raises(ValueError, match="shares"):
        launch.winograd(shape, x, w, x)
    with pytest.raises(TypeError):
        launch.winograd(shape, x.get(), w, y)
    with pytest.raises(ValueError):
        launch.winograd(shape._replace(filters=shape.filters + 1), x, w, y)
    with pytest.raises(ValueError, match="m = 3"):
        launch.winograd(shape, x, w, y, 3)
    with pytest.raises(ValueError, match="0 images at once"):
        launch.winograd(shape, x, w, y, 4, 0)
    assert np.array_equal(before, y.get().view("uint32"))


# None of them reads or writes beyond memory: an illegal address would end the context, and all tests behind it.
FAULTS = [
    ("transforms", "at - step * phases", "0"),
    ("transforms", "step * (dilation * M)", "step * M"),
    ("transforms", "s.out_height, s.dilation_y) - s.pad_y", "s.out_height, s.dilation_y)"),
    ("transforms", "(unsigned)s.width) << i", "(unsigned)s.width + 1) << i"),
    ("transforms", "channel += high)", "channel += 70000)"),
    ("transforms", "block += blocks)", "block += 70000)"),
    ("transforms", "(blockIdx.y - high) * gridDim.x", "(blockIdx.y - high)"),
    ("transforms", "channel - group * s.channels", "channel"),
    ("transforms", "row >= s.out_height || ", ""),
    ("transforms", "column >= s.out_width", "false"),
    ("products", "C + b_number * rows * n", "C"),
    ("products", "sum[j][i ^ 1], sum[j + 1][i ^ 1]", "sum[j + 1][i ^ 1], sum[j][i ^ 1]"),
    ("products", "coming = 0, (ahead += gridDim.x) < tiles", "coming = 0, (ahead += 1) < tiles"),
    ("products", "C + (size_t)number * rows * n", "C"),
    ("products", "A + b_number * depth * m", "A"),
    ("products", "copy<false>(0, depth - (steps - 1) * BK);", "copy<true>(0, BK);"),
]


@pytest.mark.parametrize(("file", "was", "fault"), FAULTS)
def test_faults_are_noticed(file, was, fault, monkeypatch):
    """A source with the fault stands for the file; some convolution is then wrong."""
    from cudatut import paths

    text = (paths.examples_dir() / f"{launch.FOLDER}/{file}.cu").read_text()
    assert was in text
    whole = launch.kernel

    def faulty(source, name):
        return ct.Kernel(text.replace(was, fault), name) if source == file else whole(source, name)

    monkeypatch.setattr(launch, "kernel", faulty)
    # 15 channels: a product that takes 16 of them reads one line too many, which the next product has, or the red zone.
    stays = Shape(3, 32, 30, 20, 300, (3, 3), pad=(1, 1))
    shapes = [
        Shape(3, 30, 13, 17, 6, (3, 3), pad=(1, 2), dilation=(2, 3), groups=2),
        Shape(2, 15, 7, 9, 3, (3, 3), pad=(1, 0)),
        stays,
    ]
    shapes += [SHAPES[-2]] * ("70000" in fault)
    config = min(launch.CONFIGS, key=lambda one: one.bm * one.bn)
    noticed = 0
    for shape in shapes:
        (_, x, w, y), expected = given(shape)
        room = ct.empty(3 * y.size + 4096, "float32")  # where a fault may write beyond
        inside = room[y.size + 2048 : 2 * y.size + 2048].reshape(y.shape)
        for m in launch.WAYS:
            if shape == stays:  # each block for several tiles
                places, columns, rows, *_ = launch.work(shape, m)
                tiles = places * ct.cdiv(rows, config.bm) * ct.cdiv(columns, config.bn)
                assert tiles > ct.device().sm_count * config.blocks
            ct.poison(room)
            before = room.get().view("uint32")  # the same each time
            run = launch.winograd(shape, x, w, inside, m, config=config)
            poison(run, room)
            run()
            after = room.get()
            begin = y.size + 2048
            same = np.array_equal(after[begin : begin + y.size].reshape(y.shape), expected)
            outside = np.delete(after.view("uint32"), np.s_[begin : begin + y.size])
            kept = np.array_equal(outside, np.delete(before, np.s_[begin : begin + y.size]))
            noticed += not (same and kept)
    assert noticed
