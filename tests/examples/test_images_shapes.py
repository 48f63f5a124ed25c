"""The scoreboard's convolutions: each list of layers has the weights and the operations that are known for its network, the draw can be repeated, and no case is too large."""

import math

import pytest

import cudatut as ct
from cudatut.book.images.scoreboard import shapes
from cudatut.book.images.scoreboard.networks import NETWORKS, SOURCES, TABLES

ALL = [*shapes.ANCHORS, *shapes.CUDATUTORIAL, *shapes.RESNET_50, *shapes.VARIED, *shapes.DRAWN]


def summed(network: str) -> tuple[int, int, int, int]:
    """Layers, weights, filters (each has two numbers of a batch normalization), multiplications for one image."""
    rows = NETWORKS[network].layers
    return (
        sum(row.times for row in rows),
        sum(row.times * row.weights for row in rows),
        sum(row.times * row.filters for row in rows),
        sum(row.times * row.flops for row in rows) // 2,
    )


def dense(channels: int, classes: int = 1000) -> int:
    """Numbers of a fully connected layer with bias."""
    return channels * classes + classes


def squeezes() -> tuple[int, int]:
    """EfficientNet-B0's squeeze-and-excitation: numbers with bias, and multiplications. A quarter of a block's input is left."""
    blocks = (
        [(32, 32), (16, 96), (24, 144), (24, 144), (40, 240), (40, 240)]
        + [(80, 480)] * 3 + [(112, 672)] * 3 + [(192, 1152)] * 4
    )  # fmt: skip
    weights = sum(2 * wide * (few // 4) for few, wide in blocks)
    return weights + sum(wide + few // 4 for few, wide in blocks), weights


# By network: how many convolutions; all numbers of the model beside weights and batch normalizations; what the model has in all;
# multiplications that are not in the table; in all, in 10^9. The totals are torchvision's (num_params and _ops of its weights).
KNOWN = {
    "VGG-16": (
        13, 4224 + dense(25088, 4096) + dense(4096, 4096) + dense(4096), 138_357_544,
        25088 * 4096 + 4096 * 4096 + 4096 * 1000, 15.47,
    ),
    # The auxiliary classifier: two convolutions with normalizations, and its layer. It does not take part in the operations.
    "Inception v3": (
        94, dense(2048) + 768 * 128 + 2 * 128 + 128 * 768 * 25 + 2 * 768 + dense(768), 27_161_264, 2048 * 1000, 5.713,
    ),
    "ResNet-50": (53, dense(2048), 25_557_032, 2048 * 1000, 4.089),
    "ResNeXt-50 32x4d": (53, dense(2048), 25_028_904, 2048 * 1000, 4.23),
    "MobileNetV2": (52, dense(1280), 3_504_872, 1280 * 1000, 0.301),
    "EfficientNet-B0": (
        49, squeezes()[0] + dense(1280), 5_288_548, squeezes()[1] + 1280 * 1000, 0.386,
    ),
    # Biases; layer normalizations of the stem, 3 steps, 18 blocks and the end; a scale for each block.
    "ConvNeXt-T": (
        4 + 3 * 18,
        41_184 + 2 * (96 + 96 + 192 + 384 + 768) + 3 * (3 * 96 + 3 * 192 + 9 * 384 + 3 * 768) + dense(768),
        28_589_128, 768 * 1000, 4.456,
    ),
    # The pooled branch; the auxiliary classifier on layer3; 2 x 21 biases; one normalization less for each of the last layers.
    "DeepLabv3": (
        53 + 7, 2048 * 256 + 2 * 256 + 1024 * 256 * 9 + 2 * 256 + 256 * 21 + 2 * 21 - 2 * 21, 42_004_074,
        2048 * 256 + (1024 * 256 * 9 + 256 * 21) * 65 * 65, 178.722,
    ),
}  # fmt: skip
NOT_NORMALIZED = "VGG-16", "ConvNeXt-T"


@pytest.mark.parametrize("network", KNOWN)
def test_a_network_has_the_numbers_and_operations_that_are_known(network):
    count, others, numbers, beside, billions = KNOWN[network]
    layers, weights, filters, products = summed(network)
    assert layers == count
    normal = 0 if network in NOT_NORMALIZED else 2 * filters
    assert weights + normal + others == numbers
    assert (products + beside) / 1e9 == pytest.approx(billions, abs=6e-4)


def test_yolov3_fills_the_file_of_its_weights():
    """yolov3.weights has 248,007,048 bytes: 20, then 4 bytes a number; 4 numbers a filter, but 1 in the three layers of 255."""
    layers, weights, filters, _ = summed("YOLOv3")
    assert layers == 75
    assert weights + 4 * (filters - 3 * 255) + 3 * 255 == (248_007_048 - 20) // 4


def test_u_net_has_the_sizes_of_its_figure():
    """23 convolutions, of which four are transposed; 388 x 388 results; no padding."""
    rows = NETWORKS["U-Net"].layers
    assert sum(row.times for row in rows) == 23 - 4
    assert [row.out[0] for row in rows] == [
        570, 568, 282, 280, 138, 136, 66, 64, 30, 28, 54, 52, 102, 100, 198, 196, 390, 388, 388,
    ]  # fmt: skip
    assert all(row.pad == (0, 0) for row in rows)


@pytest.mark.parametrize("network", NETWORKS)
def test_layers_follow_one_another(network):
    """An image has the channels and the size of the network's input, of another layer's results, of some that were put together,
    or of results that were pooled or enlarged by 2."""
    rows = NETWORKS[network].layers
    sizes = {row.out for row in rows}
    sizes |= {(2 * a, 2 * b) for a, b in sizes} | {
        ((a + extra) // 2, (b + extra) // 2) for a, b in sizes for extra in (-1, 0, 1)
    }
    assert rows[0].size[0] == int(SOURCES[network].rsplit(" ", 1)[1])
    for row in rows[1:]:
        assert row.size in sizes, row
    filters = {row.filters for row in rows}
    together = {"Inception v3": {256, 288, 768, 1280, 2048}, "YOLOv3": {768, 384}}
    for row in rows[1:]:
        assert row.channels in filters | together.get(network, set()) | (
            {5 * 256} if network == "DeepLabv3" else set()
        ), row


def test_names_and_rows_are_different():
    assert TABLES.keys() == SOURCES.keys() == NETWORKS.keys()
    for network in NETWORKS.values():
        names = [row.name for row in network.layers]
        assert len(set(names)) == len(names)
        assert len({row[3:] for row in network.layers}) == len(names)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_a_case_is_a_convolution(case):
    layer = case.layer
    assert layer.channels % layer.groups == layer.filters % layer.groups == 0
    assert min(layer.out) >= 1 and min(layer.pad) >= 0
    for n, w, stride, pad, dilation, out in zip(
        layer.size, layer.window, layer.stride, layer.pad, layer.dilation, layer.out
    ):
        last = (out - 1) * stride + (
            w - 1
        ) * dilation  # within the padded image, and no further step is
        assert last < n + 2 * pad <= last + stride
    batch, channels, high, wide = case.numbers[:4]
    assert case.words[0] == batch * channels * high * wide
    assert case.words[2] == batch * layer.filters * math.prod(layer.out)
    assert case.flops == 2 * case.words[2] * layer.weights // layer.filters
    if case not in shapes.CUDATUTORIAL:
        assert max(case.words) <= shapes.MOST


def test_every_case_has_a_name_of_its_own():
    assert len({case.name for case in {*ALL}}) == len({*ALL})


def test_the_twenty_are_as_drawn():
    assert shapes.twenty() == shapes.DRAWN
    assert len(set(shapes.DRAWN)) == 20
    assert {case.layer.network for case in shapes.DRAWN} == set(NETWORKS)


def test_ten_more_are_others():
    """Of seeds that will not be the seed."""
    for seed in range(20):
        ten = shapes.more(seed)
        assert ten == shapes.more(seed)
        assert [case.layer.network for case in ten] == list(NETWORKS)
        assert not {case.layer for case in ten} & {case.layer for case in shapes.DRAWN}
        assert all(max(case.words) <= shapes.MOST for case in ten)
    assert shapes.more(1) != shapes.more(2)


def test_the_scoreboard_has_what_convolutions_can_have():
    """Stride, padding, dilation, groups, depthwise, windows that are not square, one image."""
    layers = [case.layer for case in ALL]
    assert any(layer.stride != (1, 1) for layer in layers)
    assert any(layer.pad != (0, 0) for layer in layers)
    assert any(layer.dilation != (1, 1) for layer in layers)
    assert any(1 < layer.groups < layer.channels for layer in layers)
    assert any(layer.groups == layer.channels > 1 for layer in layers)
    assert any(layer.window[0] != layer.window[1] for layer in layers)
    assert any(case.batch == 1 for case in ALL)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_a_shrunk_case_is_a_convolution(case):
    few = shapes.shrunk(case, 12)
    assert few.batch == 1 and min(few.layer.out) >= 1 and few.layer[5:] == case.layer[5:]
    assert shapes.shrunk(case, 1 << 20, 1 << 20) == case


def test_of_cudatutorial_are_seven():
    assert len(shapes.CUDATUTORIAL) == 7
    assert [case.layer.out for case in shapes.CUDATUTORIAL] == [
        (112, 112), (17, 17), (52, 52), (112, 112), (416, 672), (14, 14), (223, 223),
    ]  # fmt: skip


def test_the_files_are_where_the_page_looks():
    folder = ct.paths.examples_dir() / "images/scoreboard"
    for file, regions in (
        ("networks.py", ("tables",)),
        ("shapes.py", ("case", "draw", "fixed", "drawn")),
    ):
        text = (folder / file).read_text(encoding="utf-8")
        assert all(f"[start:{region}]" in text and f"[end:{region}]" in text for region in regions)
