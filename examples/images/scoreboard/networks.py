"""The convolutions of ten published networks, as data.

    NETWORKS["ResNet-50"].layers[1]     # a Layer: layer1.0.conv1

A row is a layer, with all that have its sizes: its name (of the first of
them), how often they occur, channels, size of the image, filters, window,
stride, padding, dilation and groups. 7x1 is 7 down and 1 right; one number is
for both. Not here: layers that are fully connected or see one pixel (those of
squeeze-and-excitation, and the pooled one of DeepLabv3), the transposed ones of
U-Net, and auxiliary classifiers. ConvNeXt's code has its 1 x 1 convolutions as
linear layers.

The test adds up the weights and the operations: they are those that are known
for each network.
"""

from typing import NamedTuple

Pair = tuple[int, int]  # down, right


class Layer(NamedTuple):
    """A convolution of a network. channels and filters are those of all
    groups."""

    network: str
    name: str
    times: int
    channels: int
    size: Pair
    filters: int
    window: Pair
    stride: Pair = (1, 1)
    pad: Pair = (0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1

    @property
    def out(self) -> Pair:
        """The size of the results."""
        sides = zip(
            self.size,
            self.window,
            self.stride,
            self.pad,
            self.dilation,
            strict=True,
        )
        down, right = (
            (n + 2 * pad - dilation * (w - 1) - 1) // stride + 1
            for n, w, stride, pad, dilation in sides
        )
        return down, right

    @property
    def weights(self) -> int:
        """Of one layer, without bias."""
        down, right = self.window
        return self.filters * (self.channels // self.groups) * down * right

    @property
    def flops(self) -> int:
        """Of one layer, for one image: a multiplication and an addition for
        each weight and each result, also where the padding is."""
        down, right = self.out
        return 2 * self.weights * down * right


class Network(NamedTuple):
    source: str
    layers: list[Layer]


def pair(text: str) -> Pair:
    down, _, right = text.partition("x")
    return int(down), int(right or down)


def layers(network: str, table: str) -> list[Layer]:
    """The rows of a table."""
    found = []
    for line in table.strip().splitlines():
        name, times, channels, size, filters, *pairs, groups = line.split()
        found.append(
            Layer(
                network,
                name,
                int(times),
                int(channels),
                pair(size),
                int(filters),
                *map(pair, pairs),
                int(groups),
            )
        )
    return found


# name, times, channels, size, filters, window, stride, pad, dilation, groups
# --8<-- [start:tables]
TABLES = {
    "VGG-16": """
conv1_1                1    3 224   64   3  1   1  1    1
conv1_2                1   64 224   64   3  1   1  1    1
conv2_1                1   64 112  128   3  1   1  1    1
conv2_2                1  128 112  128   3  1   1  1    1
conv3_1                1  128  56  256   3  1   1  1    1
conv3_2                2  256  56  256   3  1   1  1    1
conv4_1                1  256  28  512   3  1   1  1    1
conv4_2                2  512  28  512   3  1   1  1    1
conv5_1                3  512  14  512   3  1   1  1    1
""",
    "Inception v3": """
1a                     1    3 299   32   3  2   0  1    1
2a                     1   32 149   32   3  1   0  1    1
2b                     1   32 147   64   3  1   1  1    1
3b                     1   64  73   80   1  1   0  1    1
4a                     1   80  73  192   3  1   0  1    1
5b.1x1                 2  192  35   64   1  1   0  1    1
5b.5x5_1               1  192  35   48   1  1   0  1    1
5b.5x5_2               3   48  35   64   5  1   2  1    1
5b.3x3dbl_2            4   64  35   96   3  1   1  1    1
5b.3x3dbl_3            3   96  35   96   3  1   1  1    1
5b.pool                1  192  35   32   1  1   0  1    1
5c.1x1                 3  256  35   64   1  1   0  1    1
5c.5x5_1               1  256  35   48   1  1   0  1    1
5d.1x1                 4  288  35   64   1  1   0  1    1
5d.5x5_1               1  288  35   48   1  1   0  1    1
6a.3x3                 1  288  35  384   3  2   0  1    1
6a.3x3dbl_3            1   96  35   96   3  2   0  1    1
6b.1x1                12  768  17  192   1  1   0  1    1
6b.7x7_1               2  768  17  128   1  1   0  1    1
6b.7x7_2               2  128  17  128 1x7  1 0x3  1    1
6b.7x7_3               1  128  17  192 7x1  1 3x0  1    1
6b.7x7dbl_2            2  128  17  128 7x1  1 3x0  1    1
6b.7x7dbl_5            1  128  17  192 1x7  1 0x3  1    1
6c.7x7_1               4  768  17  160   1  1   0  1    1
6c.7x7_2               4  160  17  160 1x7  1 0x3  1    1
6c.7x7_3               2  160  17  192 7x1  1 3x0  1    1
6c.7x7dbl_2            4  160  17  160 7x1  1 3x0  1    1
6c.7x7dbl_5            2  160  17  192 1x7  1 0x3  1    1
6e.7x7_2               4  192  17  192 1x7  1 0x3  1    1
6e.7x7_3               4  192  17  192 7x1  1 3x0  1    1
7a.3x3_2               1  192  17  320   3  2   0  1    1
7a.7x7x3_4             1  192  17  192   3  2   0  1    1
7b.1x1                 1 1280   8  320   1  1   0  1    1
7b.3x3_1               1 1280   8  384   1  1   0  1    1
7b.3x3_2a              4  384   8  384 1x3  1 0x1  1    1
7b.3x3_2b              4  384   8  384 3x1  1 1x0  1    1
7b.3x3dbl_1            1 1280   8  448   1  1   0  1    1
7b.3x3dbl_2            2  448   8  384   3  1   1  1    1
7b.pool                1 1280   8  192   1  1   0  1    1
7c.1x1                 1 2048   8  320   1  1   0  1    1
7c.3x3_1               1 2048   8  384   1  1   0  1    1
7c.3x3dbl_1            1 2048   8  448   1  1   0  1    1
7c.pool                1 2048   8  192   1  1   0  1    1
""",
    "ResNet-50": """
conv1                  1    3 224   64   7  2   3  1    1
layer1.0.conv1         1   64  56   64   1  1   0  1    1
layer1.0.conv2         3   64  56   64   3  1   1  1    1
layer1.0.conv3         4   64  56  256   1  1   0  1    1
layer1.1.conv1         2  256  56   64   1  1   0  1    1
layer2.0.conv1         1  256  56  128   1  1   0  1    1
layer2.0.conv2         1  128  56  128   3  2   1  1    1
layer2.0.conv3         4  128  28  512   1  1   0  1    1
layer2.0.downsample    1  256  56  512   1  2   0  1    1
layer2.1.conv1         3  512  28  128   1  1   0  1    1
layer2.1.conv2         3  128  28  128   3  1   1  1    1
layer3.0.conv1         1  512  28  256   1  1   0  1    1
layer3.0.conv2         1  256  28  256   3  2   1  1    1
layer3.0.conv3         6  256  14 1024   1  1   0  1    1
layer3.0.downsample    1  512  28 1024   1  2   0  1    1
layer3.1.conv1         5 1024  14  256   1  1   0  1    1
layer3.1.conv2         5  256  14  256   3  1   1  1    1
layer4.0.conv1         1 1024  14  512   1  1   0  1    1
layer4.0.conv2         1  512  14  512   3  2   1  1    1
layer4.0.conv3         3  512   7 2048   1  1   0  1    1
layer4.0.downsample    1 1024  14 2048   1  2   0  1    1
layer4.1.conv1         2 2048   7  512   1  1   0  1    1
layer4.1.conv2         2  512   7  512   3  1   1  1    1
""",
    "ResNeXt-50 32x4d": """
conv1                  1    3 224   64   7  2   3  1    1
layer1.0.conv1         1   64  56  128   1  1   0  1    1
layer1.0.conv2         3  128  56  128   3  1   1  1   32
layer1.0.conv3         3  128  56  256   1  1   0  1    1
layer1.0.downsample    1   64  56  256   1  1   0  1    1
layer1.1.conv1         2  256  56  128   1  1   0  1    1
layer2.0.conv1         1  256  56  256   1  1   0  1    1
layer2.0.conv2         1  256  56  256   3  2   1  1   32
layer2.0.conv3         4  256  28  512   1  1   0  1    1
layer2.0.downsample    1  256  56  512   1  2   0  1    1
layer2.1.conv1         3  512  28  256   1  1   0  1    1
layer2.1.conv2         3  256  28  256   3  1   1  1   32
layer3.0.conv1         1  512  28  512   1  1   0  1    1
layer3.0.conv2         1  512  28  512   3  2   1  1   32
layer3.0.conv3         6  512  14 1024   1  1   0  1    1
layer3.0.downsample    1  512  28 1024   1  2   0  1    1
layer3.1.conv1         5 1024  14  512   1  1   0  1    1
layer3.1.conv2         5  512  14  512   3  1   1  1   32
layer4.0.conv1         1 1024  14 1024   1  1   0  1    1
layer4.0.conv2         1 1024  14 1024   3  2   1  1   32
layer4.0.conv3         3 1024   7 2048   1  1   0  1    1
layer4.0.downsample    1 1024  14 2048   1  2   0  1    1
layer4.1.conv1         2 2048   7 1024   1  1   0  1    1
layer4.1.conv2         2 1024   7 1024   3  1   1  1   32
""",
    "MobileNetV2": """
features.0             1    3 224   32   3  2   1  1    1
features.1.depthwise   1   32 112   32   3  1   1  1   32
features.1.project     1   32 112   16   1  1   0  1    1
features.2.expand      1   16 112   96   1  1   0  1    1
features.2.depthwise   1   96 112   96   3  2   1  1   96
features.2.project     1   96  56   24   1  1   0  1    1
features.3.expand      2   24  56  144   1  1   0  1    1
features.3.depthwise   1  144  56  144   3  1   1  1  144
features.3.project     1  144  56   24   1  1   0  1    1
features.4.depthwise   1  144  56  144   3  2   1  1  144
features.4.project     1  144  28   32   1  1   0  1    1
features.5.expand      3   32  28  192   1  1   0  1    1
features.5.depthwise   2  192  28  192   3  1   1  1  192
features.5.project     2  192  28   32   1  1   0  1    1
features.7.depthwise   1  192  28  192   3  2   1  1  192
features.7.project     1  192  14   64   1  1   0  1    1
features.8.expand      4   64  14  384   1  1   0  1    1
features.8.depthwise   4  384  14  384   3  1   1  1  384
features.8.project     3  384  14   64   1  1   0  1    1
features.11.project    1  384  14   96   1  1   0  1    1
features.12.expand     3   96  14  576   1  1   0  1    1
features.12.depthwise  2  576  14  576   3  1   1  1  576
features.12.project    2  576  14   96   1  1   0  1    1
features.14.depthwise  1  576  14  576   3  2   1  1  576
features.14.project    1  576   7  160   1  1   0  1    1
features.15.expand     3  160   7  960   1  1   0  1    1
features.15.depthwise  3  960   7  960   3  1   1  1  960
features.15.project    2  960   7  160   1  1   0  1    1
features.17.project    1  960   7  320   1  1   0  1    1
features.18            1  320   7 1280   1  1   0  1    1
""",
    "EfficientNet-B0": """
features.0             1    3 224   32   3  2   1  1    1
features.1.0.depthwise 1   32 112   32   3  1   1  1   32
features.1.0.project   1   32 112   16   1  1   0  1    1
features.2.0.expand    1   16 112   96   1  1   0  1    1
features.2.0.depthwise 1   96 112   96   3  2   1  1   96
features.2.0.project   1   96  56   24   1  1   0  1    1
features.2.1.expand    2   24  56  144   1  1   0  1    1
features.2.1.depthwise 1  144  56  144   3  1   1  1  144
features.2.1.project   1  144  56   24   1  1   0  1    1
features.3.0.depthwise 1  144  56  144   5  2   2  1  144
features.3.0.project   1  144  28   40   1  1   0  1    1
features.3.1.expand    2   40  28  240   1  1   0  1    1
features.3.1.depthwise 1  240  28  240   5  1   2  1  240
features.3.1.project   1  240  28   40   1  1   0  1    1
features.4.0.depthwise 1  240  28  240   3  2   1  1  240
features.4.0.project   1  240  14   80   1  1   0  1    1
features.4.1.expand    3   80  14  480   1  1   0  1    1
features.4.1.depthwise 2  480  14  480   3  1   1  1  480
features.4.1.project   2  480  14   80   1  1   0  1    1
features.5.0.depthwise 1  480  14  480   5  1   2  1  480
features.5.0.project   1  480  14  112   1  1   0  1    1
features.5.1.expand    3  112  14  672   1  1   0  1    1
features.5.1.depthwise 2  672  14  672   5  1   2  1  672
features.5.1.project   2  672  14  112   1  1   0  1    1
features.6.0.depthwise 1  672  14  672   5  2   2  1  672
features.6.0.project   1  672   7  192   1  1   0  1    1
features.6.1.expand    4  192   7 1152   1  1   0  1    1
features.6.1.depthwise 3 1152   7 1152   5  1   2  1 1152
features.6.1.project   3 1152   7  192   1  1   0  1    1
features.7.0.depthwise 1 1152   7 1152   3  1   1  1 1152
features.7.0.project   1 1152   7  320   1  1   0  1    1
features.8             1  320   7 1280   1  1   0  1    1
""",
    "ConvNeXt-T": """
features.0             1    3 224   96   4  4   0  1    1
features.1.0.depthwise 3   96  56   96   7  1   3  1   96
features.1.0.expand    3   96  56  384   1  1   0  1    1
features.1.0.project   3  384  56   96   1  1   0  1    1
features.2             1   96  56  192   2  2   0  1    1
features.3.0.depthwise 3  192  28  192   7  1   3  1  192
features.3.0.expand    3  192  28  768   1  1   0  1    1
features.3.0.project   3  768  28  192   1  1   0  1    1
features.4             1  192  28  384   2  2   0  1    1
features.5.0.depthwise 9  384  14  384   7  1   3  1  384
features.5.0.expand    9  384  14 1536   1  1   0  1    1
features.5.0.project   9 1536  14  384   1  1   0  1    1
features.6             1  384  14  768   2  2   0  1    1
features.7.0.depthwise 3  768   7  768   7  1   3  1  768
features.7.0.expand    3  768   7 3072   1  1   0  1    1
features.7.0.project   3 3072   7  768   1  1   0  1    1
""",
    "U-Net": """
down1.1                1    1 572   64   3  1   0  1    1
down1.2                1   64 570   64   3  1   0  1    1
down2.1                1   64 284  128   3  1   0  1    1
down2.2                1  128 282  128   3  1   0  1    1
down3.1                1  128 140  256   3  1   0  1    1
down3.2                1  256 138  256   3  1   0  1    1
down4.1                1  256  68  512   3  1   0  1    1
down4.2                1  512  66  512   3  1   0  1    1
down5.1                1  512  32 1024   3  1   0  1    1
down5.2                1 1024  30 1024   3  1   0  1    1
up4.1                  1 1024  56  512   3  1   0  1    1
up4.2                  1  512  54  512   3  1   0  1    1
up3.1                  1  512 104  256   3  1   0  1    1
up3.2                  1  256 102  256   3  1   0  1    1
up2.1                  1  256 200  128   3  1   0  1    1
up2.2                  1  128 198  128   3  1   0  1    1
up1.1                  1  128 392   64   3  1   0  1    1
up1.2                  1   64 390   64   3  1   0  1    1
out                    1   64 388    2   1  1   0  1    1
""",
    "YOLOv3": """
layer0                 1    3 416   32   3  1   1  1    1
layer1                 1   32 416   64   3  2   1  1    1
layer2                 1   64 208   32   1  1   0  1    1
layer3                 1   32 208   64   3  1   1  1    1
layer5                 1   64 208  128   3  2   1  1    1
layer6                 2  128 104   64   1  1   0  1    1
layer7                 2   64 104  128   3  1   1  1    1
layer12                1  128 104  256   3  2   1  1    1
layer13               10  256  52  128   1  1   0  1    1
layer14               11  128  52  256   3  1   1  1    1
layer37                1  256  52  512   3  2   1  1    1
layer38               10  512  26  256   1  1   0  1    1
layer39               11  256  26  512   3  1   1  1    1
layer62                1  512  26 1024   3  2   1  1    1
layer63                7 1024  13  512   1  1   0  1    1
layer64                7  512  13 1024   3  1   1  1    1
layer81                1 1024  13  255   1  1   0  1    1
layer84                1  512  13  256   1  1   0  1    1
layer87                1  768  26  256   1  1   0  1    1
layer93                1  512  26  255   1  1   0  1    1
layer96                1  256  26  128   1  1   0  1    1
layer99                1  384  52  128   1  1   0  1    1
layer105               1  256  52  255   1  1   0  1    1
""",
    "DeepLabv3": """
conv1                  1    3 520   64   7  2   3  1    1
layer1.0.conv1         1   64 130   64   1  1   0  1    1
layer1.0.conv2         3   64 130   64   3  1   1  1    1
layer1.0.conv3         4   64 130  256   1  1   0  1    1
layer1.1.conv1         2  256 130   64   1  1   0  1    1
layer2.0.conv1         1  256 130  128   1  1   0  1    1
layer2.0.conv2         1  128 130  128   3  2   1  1    1
layer2.0.conv3         4  128  65  512   1  1   0  1    1
layer2.0.downsample    1  256 130  512   1  2   0  1    1
layer2.1.conv1         3  512  65  128   1  1   0  1    1
layer2.1.conv2         3  128  65  128   3  1   1  1    1
layer3.0.conv1         1  512  65  256   1  1   0  1    1
layer3.0.conv2         2  256  65  256   3  1   1  1    1
layer3.0.conv3         6  256  65 1024   1  1   0  1    1
layer3.0.downsample    1  512  65 1024   1  1   0  1    1
layer3.1.conv1         5 1024  65  256   1  1   0  1    1
layer3.1.conv2         5  256  65  256   3  1   2  2    1
layer4.0.conv1         1 1024  65  512   1  1   0  1    1
layer4.0.conv2         1  512  65  512   3  1   2  2    1
layer4.0.conv3         3  512  65 2048   1  1   0  1    1
layer4.0.downsample    1 1024  65 2048   1  1   0  1    1
layer4.1.conv1         2 2048  65  512   1  1   0  1    1
layer4.1.conv2         2  512  65  512   3  1   4  4    1
aspp.0                 1 2048  65  256   1  1   0  1    1
aspp.1                 1 2048  65  256   3  1  12 12    1
aspp.2                 1 2048  65  256   3  1  24 24    1
aspp.3                 1 2048  65  256   3  1  36 36    1
aspp.project           1 1280  65  256   1  1   0  1    1
classifier.4           1  256  65   21   1  1   0  1    1
""",
}
# --8<-- [end:tables]

SOURCES = {
    "VGG-16": "K. Simonyan, A. Zisserman, arXiv 1409.1556; 224 x 224",
    "Inception v3": "C. Szegedy et al., arXiv 1512.00567; as torchvision has it, 299 x 299",
    "ResNet-50": "K. He et al., arXiv 1512.03385; as torchvision has it (stride in the 3 x 3), 224 x 224",
    "ResNeXt-50 32x4d": "S. Xie et al., arXiv 1611.05431; 224 x 224",
    "MobileNetV2": "M. Sandler et al., arXiv 1801.04381; 224 x 224",
    "EfficientNet-B0": "M. Tan, Q. Le, arXiv 1905.11946; 224 x 224",
    "ConvNeXt-T": "Z. Liu et al., arXiv 2201.03545; 224 x 224",
    "U-Net": "O. Ronneberger et al., arXiv 1505.04597; 572 x 572",
    "YOLOv3": "J. Redmon, A. Farhadi, arXiv 1804.02767; yolov3.cfg, 416 x 416",
    "DeepLabv3": "L.-C. Chen et al., arXiv 1706.05587; as torchvision's deeplabv3_resnet50 has it, 520 x 520",
}
NETWORKS = {
    name: Network(SOURCES[name], layers(name, table))
    for name, table in TABLES.items()
}
