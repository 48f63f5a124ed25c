"""The convolutions of the scoreboard: fixed ones, and twenty that were drawn from published networks before any kernel was tuned.

    for case in DRAWN: ...      # a Case: a layer, and how many images
    more(seed)                  # ten others
    ten()                       # those of the scoreboard, once tuning has ended

`twenty` says how they were drawn, and DRAWN keeps them as they came.
"""

import random
from typing import NamedTuple

from cudatut.book.images.scoreboard.networks import NETWORKS, Layer

SEED = 2026
BATCHES = 1, 8, 32, 128
# The first 8 digits of the commit that ended the tuning, such as 0x1234abcd.
MORE_SEED: int | None = 0xC32A1A4E
MOST = 1 << 28  # words of the images, and of the results


# --8<-- [start:case]
class Case(NamedTuple):
    """A layer that `batch` images pass."""

    layer: Layer
    batch: int

    @property
    def words(self) -> tuple[int, int, int]:
        """Of the images, of the weights and of the results."""
        layer = self.layer
        (high, wide), (down, right) = layer.size, layer.out
        return (
            self.batch * layer.channels * high * wide,
            layer.weights,
            self.batch * layer.filters * down * right,
        )

    @property
    def flops(self) -> int:
        return self.batch * self.layer.flops

    @property
    def numbers(self) -> tuple:
        """Images, channels, height, width, filters, window, stride, pad,
        dilation, groups."""
        layer = self.layer
        return self.batch, layer.channels, *layer.size, *layer[5:]

    @property
    def name(self) -> str:
        return f"{self.layer.network} {self.layer.name}, N={self.batch}"


# --8<-- [end:case]


# --8<-- [start:draw]
def draw(seed: int, each: int, without: frozenset = frozenset()) -> list[Case]:
    """`each` different layers of every network, none of them in `without`. How
    many images: one of BATCHES, if no array has more than MOST words then.

    Only `random()` is used: Python promises the same numbers in all versions.
    """
    chance = random.Random(seed)

    def one_of(some):
        return some[int(chance.random() * len(some))]

    found = []
    for network in NETWORKS.values():
        left = [layer for layer in network.layers if layer not in without]
        for _ in range(each):
            layer = one_of(left)
            left.remove(layer)
            fitting = [
                batch
                for batch in BATCHES
                if max(Case(layer, batch).words) <= MOST
            ]
            found.append(Case(layer, one_of(fitting)))
    return found


def twenty() -> list[Case]:
    """The draw that gave DRAWN."""
    return draw(SEED, 2)


def more(seed: int) -> list[Case]:
    """Ten others. The seed must be one that nobody could choose or know while
    the kernels were tuned: the first 8 digits (hex) of the commit that ended
    the tuning."""
    return draw(seed, 1, frozenset(layer for layer, _ in DRAWN))


def ten() -> list[Case]:
    """`more` with that seed. Raises ValueError before there is one."""
    if MORE_SEED is None:
        raise ValueError(
            "ten more cannot be drawn yet: MORE_SEED is the commit that ends"
            " the tuning, and there is none"
        )
    return more(MORE_SEED)


# --8<-- [end:draw]


def shrunk(case: Case, most: int, batch: int = 1) -> Case:
    """For a tool, under which all is slow: fewer images, of at most `most`
    pixels a side where the window fits then."""
    layer = case.layer
    size = tuple(
        min(n, max(most, dilation * (w - 1) + 1 - 2 * pad))
        for n, w, dilation, pad in zip(
            layer.size, layer.window, layer.dilation, layer.pad
        )
    )
    return Case(layer._replace(size=size), min(case.batch, batch))


def named(network: str, name: str, batch: int) -> Case:
    """A case by the name of its layer."""
    (layer,) = (x for x in NETWORKS[network].layers if x.name == name)
    return Case(layer, batch)


def fixed(of, batch, channels, size, filters, window, stride, *rest) -> Case:
    """A case that is of no network: its sizes are its name."""
    (high, wide), (down, right) = size, window
    name = f"{channels}x{high}x{wide}, {filters} of {down}x{right}/{stride[0]}"
    layer = Layer(of, name, 1, channels, size, filters, window, stride, *rest)
    return Case(layer, batch)


# --8<-- [start:fixed]
# What the goals are about.
ANCHORS = [
    fixed("anchor", 32, 128, (28, 28), 128, (3, 3), (1, 1), (1, 1)),
    fixed("anchor", 64, 256, (56, 56), 256, (3, 3), (1, 1), (1, 1)),
]

# docs/12_convolution/03_im2col_conv/codes/job.sh of CUDATutorial.
CUDATUTORIAL = [
    fixed("CUDATutorial", batch, channels, size, filters, window, stride)
    for batch, channels, size, filters, window, stride in (
        (128, 3, (225, 225), 32, (3, 3), (2, 2)),
        (49, 128, (35, 35), 384, (3, 3), (2, 2)),
        (16, 128, (105, 105), 256, (3, 3), (2, 2)),
        (128, 3, (230, 230), 64, (7, 7), (2, 2)),
        (2, 3, (838, 1350), 64, (7, 7), (2, 2)),
        (256, 256, (28, 28), 256, (2, 2), (2, 2)),
        (128, 3, (225, 225), 32, (3, 3), (1, 1)),
    )
]

RESNET_50 = [Case(layer, 32) for layer in NETWORKS["ResNet-50"].layers]

# What a convolution can have: groups, one channel a group, dilation, stride, a
# window of one row, no padding.
VARIED = [
    named(network, name, batch)
    for network, name, batch in (
        ("ResNeXt-50 32x4d", "layer2.1.conv2", 32),
        ("MobileNetV2", "features.1.depthwise", 32),
        ("ConvNeXt-T", "features.1.0.depthwise", 32),
        ("DeepLabv3", "aspp.3", 8),
        ("YOLOv3", "layer1", 32),
        ("Inception v3", "6b.7x7_2", 32),
        ("U-Net", "down1.2", 1),
    )
]
# --8<-- [end:fixed]

# --8<-- [start:drawn]
DRAWN = [
    named(network, name, batch)
    for network, name, batch in (
        ("VGG-16", "conv1_2", 8),
        ("VGG-16", "conv3_2", 128),
        ("Inception v3", "4a", 1),
        ("Inception v3", "6c.7x7dbl_2", 32),
        ("ResNet-50", "layer4.0.conv2", 32),
        ("ResNet-50", "layer3.1.conv2", 128),
        ("ResNeXt-50 32x4d", "layer4.0.conv1", 32),
        ("ResNeXt-50 32x4d", "layer1.1.conv1", 32),
        ("MobileNetV2", "features.2.expand", 128),
        ("MobileNetV2", "features.7.depthwise", 128),
        ("EfficientNet-B0", "features.5.1.expand", 32),
        ("EfficientNet-B0", "features.2.1.expand", 8),
        ("ConvNeXt-T", "features.7.0.project", 128),
        ("ConvNeXt-T", "features.6", 128),
        ("U-Net", "down5.2", 1),
        ("U-Net", "down4.1", 8),
        ("YOLOv3", "layer7", 8),
        ("YOLOv3", "layer96", 32),
        ("DeepLabv3", "layer3.1.conv2", 1),
        ("DeepLabv3", "layer4.0.downsample", 1),
    )
]
# --8<-- [end:drawn]
