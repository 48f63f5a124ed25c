"""examples/images/direct without a GPU: references, tiles with halos, pitches, what each rung takes, instances of the kernels."""

import ast
import re
import struct
from pathlib import Path

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.direct import launch, reference
from cudatut.book.images.shapes import LARGE, RAGGED, SMALL, Shape
from cudatut.book.images.shapes import reference as plain

LITTLE = [shape for shape in RAGGED if shape.flops < 2e6]
PARTS = [launch.MANY, launch.FEW, launch.Part(8, 8, 32, 4), launch.Part(8, 8, 16, 4)]


def numbers(shape, seed=0):
    rng = ct.rng(seed)
    images = rng.integers(-4, 5, (shape.images, shape.channels, shape.height, shape.width))
    weights = rng.integers(-4, 5, (shape.filters, shape.channels // shape.groups, *shape.window))
    return images.astype("float32"), weights.astype("float32")


@pytest.mark.parametrize("shape", LITTLE, ids=str)
def test_scipy_agrees_and_turns_the_window_where_it_convolves(shape):
    pytest.importorskip("scipy.signal")
    images, weights = numbers(shape)
    expected = plain(shape, images, weights)
    assert np.array_equal(reference.by_scipy(shape, images, weights), expected)
    turned = reference.by_scipy(shape, images, reference.turn(weights), turned=True)
    assert np.array_equal(turned, expected)
    # Of a window that is dilated beyond the image, only the word in the middle meets it.
    if max(shape.window) > 1 and max(shape.out) > 1 and max(shape.dilation) < 4:
        assert not np.array_equal(reference.by_scipy(shape, images, weights, True), expected)


def test_spread_puts_zeros_between():
    spread = reference.spread(np.arange(1, 7).reshape(1, 2, 3), (3, 2))
    assert spread.shape == (1, 4, 5)
    assert spread[0].tolist() == [[1, 0, 2, 0, 3], [0] * 5, [0] * 5, [4, 0, 5, 0, 6]]


def by_tiles(shape, images, weights, tile):
    """As the kernels with tiles do it: rows and columns that `covered` counts, zeros outside, loops over results of a tile."""
    (high, wide), (down, across) = launch.covered(shape, tile), launch.tiles(shape, tile)
    (p, q), filters = shape.out, shape.filters // shape.groups
    out = np.full((shape.images, shape.filters, p, q), np.nan)
    for ty, tx in np.ndindex(down, across):
        top = ty * tile[0] * shape.stride[0] - shape.pad[0]
        left = tx * tile[1] * shape.stride[1] - shape.pad[1]
        part = np.zeros((shape.images, shape.channels, high, wide))
        ys, xs = np.arange(high) + top, np.arange(wide) + left
        iny, inx = (ys >= 0) & (ys < shape.height), (xs >= 0) & (xs < shape.width)
        part[:, :, np.flatnonzero(iny)[:, None], np.flatnonzero(inx)] = images[
            :, :, ys[iny][:, None], xs[inx]
        ]
        part = part.reshape(shape.images, shape.groups, -1, high, wide)
        w = weights.reshape(shape.groups, filters, -1, *shape.window)
        for y in range(ty * tile[0], min((ty + 1) * tile[0], p)):
            for x in range(tx * tile[1], min((tx + 1) * tile[1], q)):
                fy, fx = (y - ty * tile[0]) * shape.stride[0], (x - tx * tile[1]) * shape.stride[1]
                window = part[
                    ...,
                    fy : fy + (shape.window[0] - 1) * shape.dilation[0] + 1 : shape.dilation[0],
                    fx : fx + (shape.window[1] - 1) * shape.dilation[1] + 1 : shape.dilation[1],
                ]
                assert window.shape[-2:] == shape.window  # the halo is large enough
                out[:, :, y, x] = np.einsum("ngcrs,gkcrs->ngk", window, w).reshape(shape.images, -1)
    return out


@pytest.mark.parametrize("tile", [launch.TILE, *(part.tile for part in PARTS)], ids=str)
def test_tiles_with_their_halos_cover_all_windows(tile):
    for shape in LITTLE:
        high, wide = launch.covered(shape, tile)
        if high * wide < 1 << 16:
            images, weights = numbers(shape)
            assert np.array_equal(
                by_tiles(shape, images, weights, tile), plain(shape, images, weights)
            )


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_lanes_of_a_warp_meet_in_no_bank(part):
    for window in (1, 3, 5, 7):
        shape = SMALL._replace(window=(window, window), pad=(window // 2,) * 2)
        pitch, _, _ = launch.step_of(shape, part)
        assert launch.meeting(pitch, part.wide, part.results) == 1
        assert pitch >= launch.covered(shape, part.tile)[1]
        two = shape._replace(stride=(2, 2))
        pitch, _, _ = launch.step_of(two, part)
        assert launch.meeting(pitch, part.wide, 2 * part.results, 2) == 2


@pytest.mark.parametrize("shape", [*RAGGED, SMALL, LARGE], ids=str)
@pytest.mark.parametrize("part", PARTS, ids=str)
def test_shared_memory_holds_a_step(shape, part):
    pitch, channels, shared = launch.step_of(shape, part)
    high, _ = launch.covered(shape, part.tile)
    window = shape.window[0] * shape.window[1]
    assert 1 <= channels <= shape.channels // shape.groups
    # As several.cu counts them.
    words = (channels * high * pitch + 3) // 4 * 4 + channels * window * part.weights_pitch
    assert shared == 4 * words
    if channels > 1:
        assert shared <= 32 << 10
    if not launch.refuses_window(shape):
        assert launch.step_of(shape, part, 0)[2] * launch.channels_of(shape, part) <= launch.SHARED


def test_which_rung_takes_what():
    assert launch.chosen(SMALL) == launch.chosen(LARGE) == "window"
    assert launch.chosen(SMALL._replace(dilation=(2, 2))) == "several"
    assert launch.chosen(SMALL._replace(stride=(1, 2))) == "several"
    assert launch.chosen(SMALL._replace(window=(9, 9), pad=(4, 4))) == "several"
    far = SMALL._replace(dilation=(100, 100), pad=(100, 100))
    assert launch.chosen(far) == "naive" and "more than" in launch.refuses_tiles(far)
    depthwise = Shape(2, 64, 9, 9, 64, (3, 3), pad=(1, 1), groups=64)
    assert launch.suits(depthwise) == launch.FEW and launch.suits(SMALL) == launch.MANY
    assert {launch.chosen(shape) for shape in RAGGED} == {"window", "several", "naive"}


def test_parts_that_kernels_can_have():
    for part in PARTS:
        assert 32 % part.wide == 0 and 32 % part.filters == 0


@pytest.mark.parametrize("change", [{"images": 0}, {"groups": 3}, {"window": (31, 3)}])
@pytest.mark.parametrize(
    "rung", ["naive", "constant", "tiled", "several", "window", "ahead", "direct"]
)
def test_what_is_no_convolution_is_refused_before_any_array_is_looked_at(rung, change):
    shape = SMALL._replace(**change)
    with pytest.raises((ValueError, ZeroDivisionError), match="."):
        getattr(launch, rung)(shape, None, None, None)


def folder(name):
    return ct.paths.examples_dir() / "images" / name


def test_python_s_struct_and_shape_cuh_have_the_same_numbers():
    text = folder("shape.cuh").read_text(encoding="utf-8")
    body = text[text.index("struct Shape {") : text.index("};")]
    numbers = re.findall(r"\w+", body.split("int ", 1)[1].replace("int ", ""))
    assert len(SMALL.struct()) == 4 * len(numbers)
    found = dict(zip(numbers, np.frombuffer(SMALL.struct(), "int32").tolist(), strict=True))
    assert found["images"] == 32 and found["groups"] == 1 and found["filters"] == 128
    assert (found["rows"], found["columns"]) == SMALL.window
    assert (found["out_height"], found["out_width"]) == SMALL.out
    odd = Shape(1, 4, 9, 9, 4, (2, 3), (4, 5), (6, 7), (8, 9), 2)
    found = dict(zip(numbers, np.frombuffer(odd.struct(), "int32").tolist(), strict=True))
    assert [found[f"{what}_{axis}"] for what in ("stride", "pad", "dilation") for axis in "yx"] == [
        4, 5, 6, 7, 8, 9,
    ]  # fmt: skip
    assert (found["channels"], found["filters"]) == (2, 2)


def test_a_launch_past_the_checks_says_what_the_kernel_takes():
    """A wrong size is 'too many resources requested for launch' to the driver."""
    from cudatut.gpu.signature import parameters

    source = (folder("direct") / "constant.cu").read_text(encoding="utf-8")
    taken = parameters(source, "direct_constant")
    kinds = ["P" if one.pointer else {"int32": "i"}.get(one.dtype, "s") for one in taken]
    assert "".join(kinds) == re.sub(r"\d", "", launch.ARGUMENTS)
    # Shape, an int, and both addresses where the next multiple of 8 is.
    assert struct.calcsize(launch.ARGUMENTS) == len(SMALL.struct()) + 8 + 16


def test_pitches_of_weights_are_those_of_the_kernels():
    source = (folder("direct") / "weights.cuh").read_text(encoding="utf-8")
    assert "return filters % 32 == 0 ? filters + 4 : filters;" in source
    for part in (*PARTS, launch.EIGHT):
        # 4 filters and 8 places, as copy_weights stores them, meet in no bank.
        side = 4 if part.filters % 4 == 0 else 1
        lanes = [lane // side * part.weights_pitch + lane % side for lane in range(32)]
        assert len({word % 32 for word in lanes}) == 32
        assert part.weights_pitch >= part.together


def test_which_part_of_a_tile_suits_a_layer():
    strided = SMALL._replace(stride=(2, 2))
    assert launch.suits(strided, ahead=True) == launch.EIGHT
    assert launch.suits(strided) == launch.suits(SMALL, ahead=True) == launch.MANY
    assert launch.suits(strided._replace(filters=40), ahead=True) == launch.MANY


def test_a_shape_says_itself_in_words():
    assert SMALL.text == "32 x 128 x 28 x 28, 128 of 3 x 3, pad 1"
    odd = Shape(1, 4, 9, 9, 4, (2, 3), (4, 5), (6, 7), (8, 8), 2)
    assert odd.text == "1 x 4 x 9 x 9, 4 of 2 x 3, stride 4 x 5, pad 6 x 7, dilation 8, 2 groups"


@pytest.mark.parametrize("chapter", ["direct", "im2col"])
def test_each_planted_fault_has_its_place_in_a_kernel(chapter):
    tests = Path(__file__).parents[1] / f"gpu/test_images_{chapter}.py"
    (faults,) = (
        ast.literal_eval(node.value)
        for node in ast.parse(tests.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and node.targets[0].id == "FAULTS"
    )
    for file, was, fault in faults:
        name = file if chapter == "direct" else "im2col"
        text = (folder(chapter) / f"{name}.cu").read_text(encoding="utf-8")
        assert was in text and was != fault
