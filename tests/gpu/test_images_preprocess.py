"""One kernel for a network's input: every kernel and plan on images and outputs from one pixel on, and what is refused."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.preprocess import reference
from cudatut.book.images.preprocess.batches import bf16, noise
from cudatut.book.images.preprocess.preprocess import Batch, letterbox, plans, tuned
from cudatut.book.images.preprocess.steps import four_launches

SIZES = [(1, 1), (1, 7), (7, 1), (2, 3), (33, 65), (64, 48), (192, 96), (641, 639), (100, 1000)]
OUTPUTS = ((1, 1), (3, 5), (64, 64), (31, 33), (66, 130), (48, 1))
PLANS = [
    ("pixel", {}),
    ("rows", {}),
    ("rows", {"PIXELS": 2, "ROWS": 1, "WORDS": 0, "BY_BITS": 0, "SKIP": 0}),
    ("rows", {"PIXELS": 8, "ROWS": 2}),
    ("dots", {}),
    ("dots", {"DOWN": 8, "BLOCKS": 4, "ROWS": 8}),
    *(("dots", plans()[k]) for k in (1, 2, 3, 6, 12, 17)),  # each choice
    ("dots", {"TURN": 1, "CENTER": 1, "ROWS": 1}),
    ("dots", {"NEIGHBORS": 2, "ROWS": 2}),
    ("dots", {"NEIGHBORS": 1}),
    ("dots", {"PIXELS": 2, "NEIGHBORS": 2, "ROWS": 8}),
    ("dots", {"PIXELS": 8, "NEIGHBORS": 8, "DOWN": 8, "ROWS": 1, "BLOCKS": 2}),
]


def expect(
    images, height, width, way, align=16, last=False, border=114, swap=True, atol=1e-3, **plan
):
    shape = (height, width, 3) if last else (3, height, width)
    out = ct.empty((len(images), *shape), "uint16")
    for _ in range(2):
        ct.poison(out)
        letterbox(
            Batch(images, align), out, border, way=way, channels_last=last, SWAP=int(swap), **plan
        )()
        order = [i if swap else i[:, :, ::-1] for i in images]
        want = np.stack([reference.letterbox(i, height, width, border) for i in order])
        want = want.transpose(0, 2, 3, 1) if last else want
        name = f"{way} {plan}, {height} x {width}"
        ct.check(bf16(out.get()), want, name=name, rtol=2**-8, atol=atol)


@pytest.mark.parametrize("way, plan", PLANS)
def test_any_image_to_any_output(way, plan):
    images = noise(SIZES)
    for height, width in OUTPUTS:
        for align in (1, 16):
            expect(images, height, width, way, align, **plan)


@pytest.mark.parametrize("way", ["rows", "dots"])
def test_channels_last_and_channels_in_their_order(way):
    images = noise(SIZES)
    for height, width in OUTPUTS:
        expect(images, height, width, way, last=True)
        expect(images, height, width, way, swap=False)
    expect(images, 31, 33, "pixel", swap=False)


@pytest.mark.parametrize("way", ["pixel", "rows", "dots"])
@pytest.mark.parametrize("border", [0, 255, 0.5])
def test_any_border(way, border):
    expect(noise([(5, 9), (9, 5)]), 16, 16, way, border=border)


@pytest.mark.parametrize("way", ["pixel", "rows", "dots"])
def test_black_and_white_are_the_ends(way):
    for level in (0, 255):
        image = np.full((37, 53, 3), level, "uint8")
        out = ct.empty((1, 3, 64, 64), "uint16")
        letterbox(Batch([image]), out, border=level, mean=(0, 0, 0), std=(1, 1, 1), way=way)()
        ct.check(bf16(out.get()), np.full((1, 3, 64, 64), level / 255), rtol=2**-8, atol=1e-5)


@pytest.mark.parametrize("way", ["rows", "dots"])
def test_a_large_photograph(way):
    # fp32 finds the taps of `rows`, and 4,000 pixels are 12 bits of its 24.
    atol = 3e-3 if way == "rows" else 1e-3
    expect(noise([(3000, 4000), (17, 4000)]), 640, 640, way, atol=atol)


def test_the_fastest_plan_is_one_that_was_tried():
    images = noise(SIZES)
    out = ct.empty((len(images), 3, 66, 132), "uint16")
    plan, run = tuned(Batch(images), out, times=3)
    assert plan in plans()
    ct.poison(out)
    run()
    want = np.stack([reference.letterbox(i, 66, 132) for i in images])
    ct.check(bf16(out.get()), want, name=str(plan), rtol=2**-8, atol=1e-3)


def test_rows_of_no_weight_are_not_read():
    # The rows beside the middle one of three are of another value: none of it arrives.
    image = np.zeros((192, 192, 3), "uint8")
    image[1::3, 1::3] = 200
    out = ct.empty((1, 3, 64, 64), "uint16")
    letterbox(Batch([image]), out, mean=(0, 0, 0), std=(1, 1, 1))()
    ct.check(bf16(out.get()), np.full((1, 3, 64, 64), 200 / 255), rtol=2**-8, atol=1e-5)


def test_four_launches_round_once_more():
    images = noise(SIZES)
    for height, width in OUTPUTS:
        out = ct.empty((len(images), 3, height, width), "uint16")
        ct.poison(out)
        four_launches(Batch(images), out)()
        want = np.stack([reference.letterbox(i, height, width) for i in images])
        # Half a level is 0.5 / (255 * 0.224).
        ct.check(bf16(out.get()), want, rtol=2**-8, atol=0.0089)


@pytest.mark.parametrize(
    "change, error, what",
    [
        ({"way": "fast"}, ValueError, "no way"),
        ({"way": "pixel", "channels_last": True}, ValueError, "no way"),
        ({"std": (0.2, 0, 0.2)}, ValueError, "deviation"),
        ({"border": 256}, ValueError, "border"),
        ({"border": -1}, ValueError, "border"),
    ],
)
def test_what_no_kernel_can_do_is_refused(change, error, what):
    batch, out = Batch(noise([(4, 4)])), ct.empty((1, 3, 8, 8), "uint16")
    with pytest.raises(error, match=what):
        letterbox(batch, out, **change)


@pytest.mark.parametrize(
    "shape, dtype", [((2, 3, 8, 8), "uint16"), ((1, 8, 8, 3), "uint16"), ((1, 3, 8, 8), "float32")]
)
def test_an_output_that_does_not_fit_is_refused(shape, dtype):
    batch = Batch(noise([(4, 4)]))
    with pytest.raises((TypeError, ValueError), match="letterbox"):
        letterbox(batch, ct.empty(shape, dtype))
