"""examples/images/depthwise without a GPU: its kernels on a CPU against the reference, what launchers take, and faults that are noticed."""

import re
import subprocess
from functools import cache
from pathlib import Path

import gpp
import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.depthwise import launch
from cudatut.book.images.depthwise.launch import FOUR, TWO, Part, Strip
from cudatut.book.images.scoreboard.networks import NETWORKS
from cudatut.book.images.shapes import MOST, Shape, reference
from cudatut.book.numbers.bf16 import to_bf16, to_float

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
ARGUMENTS = {
    "planes": "s, more[0], more[1], more[2], (float*)at[0], (float*)at[1], (float*)at[2]",
    "channels": "s, *(Blocks*)more, (__nv_bfloat16*)at[0], (__nv_bfloat16*)at[1], (__nv_bfloat16*)at[2]",
    "any": "s, ({0}*)at[0], ({0}*)at[1], ({0}*)at[2]",
}


def text_of(source):
    return (EXAMPLES / f"images/depthwise/{source}.cu").read_text()


def instances(source):
    return re.findall(r"^// @instance (.*)$", text_of(source), re.MULTILINE)


def program(source, folder, change=lambda text: text):
    text = change(text_of(source)).replace("#include <cuda_bf16.h>", "")
    text = text.replace("extern __shared__ float4 shared[];", "")
    header = folder / "kernels.h"
    header.write_text(text)
    cases = []
    for i, name in enumerate(instances(source)):
        given = ARGUMENTS[source].format(name[4:].split(",")[0])
        cases.append(f"case {i}: {name}({given}); break;")
    flags = (
        "-O1", "-std=c++20", "-fsanitize=alignment", "-fsanitize-undefined-trap-on-error",
        f"-DLAUNCH={' '.join(cases)}",
    )  # fmt: skip
    places = (f'-DKERNELS="{header}"', f"-I{EXAMPLES}")
    return gpp.compiled(HERE / "depthwise_on_cpu.cpp", *flags, places=places)


def depthwise(images, channels, height, width, window, stride=1, pad=None, **more):
    pad = window // 2 if pad is None else pad
    pads = pad if isinstance(pad, tuple) else (pad, pad)
    return Shape(
        images, channels, height, width, channels, (window,) * 2, (stride,) * 2, pads,
        groups=channels, **more,
    )  # fmt: skip


SHAPES = [
    depthwise(images, channels, *size, window, stride, pad)
    for images, channels, size in ((1, 1, (1, 1)), (2, 2, (7, 7)), (1, 3, (14, 14)), (1, 12, (9, 16)), (2, 4, (3, 40)))
    for window in (3, 5, 7)
    for stride in (1, 2)
    for pad in (window // 2, (window // 2, 0), 9, (0, window // 2))
    if min(size) + 2 * min(pad if isinstance(pad, tuple) else (pad,)) >= window
] + [
    depthwise(1, 136, 6, 9, 3),  # more channels than a block has
    depthwise(1, 24, 30, 17, 5, 2),
    depthwise(1, 8, 5, 70, 7),
]  # fmt: skip
OTHERS = [
    Shape(2, 5, 7, 9, 5, (3, 2), pad=(1, 0), groups=5),
    Shape(1, 4, 9, 8, 4, (1, 1), (3, 2), groups=4),
    Shape(1, 6, 5, 6, 6, (3, 3), pad=(9, 8), dilation=(7, 8), groups=6),
    Shape(1, 2, 12, 12, 2, (9, 9), pad=(4, 4), groups=2),
]


@cache
def numbers(shape, last):
    """Integers: sums are exact in whatever order. Rows of weights differ, so that a wrong index is noticed."""
    rng = ct.rng(7)
    images = rng.integers(-4, 5, (shape.images, shape.channels, shape.height, shape.width))
    weights = rng.integers(-4, 5, (shape.filters, 1, *shape.window))
    expected = reference(shape, images, weights)
    if last:
        images, expected = images.transpose(0, 2, 3, 1), expected.transpose(0, 2, 3, 1)
        weights = weights.transpose(0, 2, 3, 1)
    arrays = [np.ascontiguousarray(a, "float32") for a in (images, weights)]
    return [to_bf16(a) if last else a for a in arrays], expected


def right(made, source, name, shape, grid, block, more):
    """Whether the results are those of the reference, and nothing else is written."""
    last = "bfloat" in name or source == "channels"
    (images, weights), expected = numbers(shape, last)
    around = 64
    size = expected.size * (2 if last else 4)
    head = np.array(
        [instances(source).index(name), grid, block, around, images.nbytes, weights.nbytes, size],
        "int32",
    )
    more = np.resize(np.array([*more, *[0] * 6][:6], "int32"), 6)
    given = b"".join(
        [head.tobytes(), shape.struct(), *(a.tobytes() for a in (more, images, weights))]
    )
    done = subprocess.run([made], input=given, capture_output=True, check=False, timeout=60)
    if done.returncode:
        return f"ended with {done.returncode}"
    out = np.frombuffer(done.stdout, "uint8")
    if (out[:around] != 0xFF).any() or (out[around + size :] != 0xFF).any():
        return "writes elsewhere"
    found = out[around : around + size].view("uint16" if last else "float32")
    found = to_float(found) if last else found
    if last:
        expected = to_float(to_bf16(expected.astype("float32")))
    return True if np.array_equal(found, expected.ravel()) else "wrong"


def by_planes(made, name, shape):
    window, stride, across, down, *_ = map(int, name[7:-1].split(","))
    if launch.general(shape) or (shape.window[0], shape.stride[0]) != (window, stride):
        return None
    if across > launch.strip(shape, True).across:
        return None
    segments, bands = ct.cdiv(shape.out[1], across), ct.cdiv(shape.out[0], down)
    count = shape.images * shape.channels * segments * bands
    more = segments, bands, count
    return right(made, "planes", name, shape, ct.cdiv(count, 128), 128, more)


def by_channels(made, name, shape):
    window, stride, channels, across, *_ = name[9:-1].split(",")
    part = Part(int(channels), int(across))
    if (shape.window[0], shape.stride[0]) != (int(window), int(stride)):
        return None
    if shape.channels % part.channels:
        return None
    b = launch.blocks_of(shape, part, threads=64)
    grid = shape.images * b.parts * b.wide * b.high
    return right(made, "channels", name, shape, grid, b.lanes * b.across * b.down, b)


@pytest.mark.parametrize(("source", "call"), [("planes", by_planes), ("channels", by_channels)])
def test_every_instance_computes_what_the_reference_does(source, call, tmp_path):
    made = program(source, tmp_path)
    done = {name: [call(made, name, shape) for shape in SHAPES] for name in instances(source)}
    for name, found in done.items():
        wrong = [
            (shape, one)
            for shape, one in zip(SHAPES, found, strict=True)
            if one not in (None, True)
        ]
        assert not wrong, (name, wrong[:3])
        assert True in found, name


def test_the_general_kernel_takes_any_window(tmp_path):
    made = program("any", tmp_path)
    for name in instances("any"):
        for shape in [*SHAPES[::9], *OTHERS]:
            count = shape.filters * shape.product[1]
            assert right(made, "any", name, shape, ct.cdiv(count, 64), 64, ()) is True, (
                name,
                shape,
            )


FAULTS = {
    "planes": [
        ("at < s.height", "at <= s.height"),
        ("const int r = row - p * S;", "const int r = row - p;"),
        ("x + w < s.out_width", "true"),
        ("y + p >= s.out_height", "false"),
        ("at < width", "at <= width"),
        ("Of::SKIP + w * S + c", "Of::SKIP + w + c"),
        ("which % s.groups", "which % (s.groups + 1)"),
    ],
    "channels": [
        ("left + j < s.width", "left + j <= s.width"),
        ("const int c = j - p * S;", "const int c = j - p;"),
        ("if (x + p < s.out_width)", ""),
        ("(which / G * b.lanes + lane) * G", "(which / G + lane) * G"),
        ("top + row >= 0", "top + row > 0"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("source", "fault"),
    [(source, fault) for source, some in FAULTS.items() for fault in some],
    ids=str,
)
def test_faults_are_noticed(source, fault, tmp_path):
    assert fault[0] in text_of(source)
    made = program(source, tmp_path, lambda text: text.replace(*fault))
    call = by_planes if source == "planes" else by_channels
    assert any(
        call(made, name, shape) not in (None, True)
        for name in instances(source)
        for shape in SHAPES
    )


def test_layers_of_networks_have_kernels_of_their_own():
    """And all instances that are chosen are compiled ahead."""
    chosen = set()
    for network in NETWORKS.values():
        for layer in network.layers:
            shape = Shape(8, layer.channels, *layer.size, *layer[5:])
            if launch.refuses(shape):
                continue
            assert not launch.general(shape), layer
            head = shape.window[0], shape.stride[0]
            numbers = ",".join(map(str, (*head, *launch.strip(shape, True))))
            chosen.add(f"planes<{numbers}>")
            part = launch.part_of(shape, True)
            numbers = ",".join(map(str, (*head, *part[:2], str(part.ahead).lower(), part.blocks)))
            chosen.add(f"channels<{numbers}>")
            b = launch.blocks_of(shape, part)
            assert 128 <= b.lanes * b.across * b.down <= 256, (layer, b)
    assert chosen <= {*instances("planes"), *instances("channels")}


def test_what_is_no_depthwise_convolution():
    assert launch.refuses(depthwise(1, 8, 9, 9, 3)) is None
    assert "2 channels" in launch.refuses(Shape(1, 8, 9, 9, 8, (3, 3), groups=4))
    assert "2 filters" in launch.refuses(Shape(1, 8, 9, 9, 16, (3, 3), groups=8))


def test_choices():
    assert launch.strip(depthwise(1, 8, 9, 12, 3), True) == Strip(4, 7, 2, 4)
    assert launch.strip(depthwise(1, 8, 9, 14, 5), True) == Strip(2, 7, 1, 3)
    assert launch.strip(depthwise(1, 8, 9, 12, 3), False).across == 1
    assert launch.strip(depthwise(1, 8, 9, 12, 3, pad=(1, 0)), True).across == 1
    assert launch.part_of(depthwise(1, 8, 9, 9, 3), True) == FOUR
    assert launch.part_of(depthwise(1, 6, 9, 9, 3), True) == TWO
    assert launch.part_of(depthwise(1, 7, 9, 9, 3), True) is None
    assert launch.part_of(depthwise(1, 8, 9, 9, 3), False) is None
    assert launch.part_of(depthwise(1, 1 << 20, 64, 64, 3), True) is None
    assert launch.blocks_of(depthwise(1, 32, 112, 112, 3), FOUR)[:3] == (8, 2, 16)
    assert MOST > 0
