"""examples/images/preprocess without a GPU: where an image goes, the taps, the bytes that count, and what a launcher refuses."""

import subprocess
from pathlib import Path

import gpp
import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.preprocess import preprocess, reference

HERE = Path(__file__).parent
FOLDER = Path(preprocess.__file__).parent


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.setattr(ct, "to_device", np.asarray)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 640, 1999])
@pytest.mark.parametrize("new", [1, 2, 5, 640])
def test_taps_stay_inside_and_weights_in_0_to_1(n, new):
    low, high, weight = reference.taps(n, new)
    assert (low >= 0).all() and (high < n).all() and (low <= high).all()
    assert (weight >= 0).all() and (weight < 1).all()
    assert (weight[low == n - 1] == 0).all()  # the kernel relies on it


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 5000), (5000, 1), (480, 640), (1080, 1920), (641, 639)]
)
def test_an_image_fits_and_lies_in_the_middle(shape):
    for out in ((1, 1), (640, 640), (33, 65)):
        h, w, top, left = reference.placed(*shape, *out)
        assert 1 <= h <= out[0] and 1 <= w <= out[1] and (h == out[0] or w == out[1])
        assert 0 <= out[0] - h - 2 * top <= 1 and 0 <= out[1] - w - 2 * left <= 1


def test_a_constant_image_stays_constant_and_the_border_is_the_border():
    out = reference.letterbox(
        np.full((10, 20, 3), 50, "uint8"), 8, 8, mean=(0, 0, 0), std=(1, 1, 1)
    )
    assert np.allclose(out[:, 2:6], 50 / 255) and np.allclose(out[:, :2], 114 / 255)


def test_half_the_size_is_the_mean_of_four():
    image = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype="uint8")
    mean = image.reshape(4, 2, 4, 2, 3).astype(float).mean(axis=(1, 3))
    assert np.allclose(reference.resized(image, 4, 4), mean)


def test_bytes_that_count():
    assert reference.useful_bytes([(640, 640)], 640, 640) == 9 * 640 * 640
    assert reference.useful_bytes([(1280, 1280)], 640, 640) == 3 * 1280**2 + 6 * 640**2
    assert (
        reference.useful_bytes([(1920, 1920)], 640, 640) == 3 * 640**2 + 6 * 640**2
    )  # the middle of three


def test_batch_and_its_table():
    images = [np.full((3, 5, 3), 1, "uint8"), np.full((1, 1, 3), 2, "uint8")]
    batch = preprocess.Batch(images)
    assert batch.firsts == [0, 48] and batch.pixels.size == 64 + preprocess.BEHIND
    table = batch.places(10, 10)
    assert preprocess.IMAGE.itemsize == 48 and table["first"].tolist() == [0, 48]
    assert table[0]["new_height"] == 6 and table[0]["top"] == 2 and table[0]["across"] == 0.5


@pytest.mark.parametrize(
    "images, error",
    [
        ([], ValueError),
        ([np.zeros((2, 2, 3), "float32")], TypeError),
        ([np.zeros((0, 2, 3), "uint8")], ValueError),
        ([np.zeros((2, 2), "uint8")], ValueError),
    ],
)
def test_what_is_no_batch_is_refused(images, error):
    with pytest.raises(error):
        preprocess.Batch(images)


def test_plans_differ_and_the_first_one_is_the_one_of_letterbox():
    plans = preprocess.plans()
    assert plans[0] == {} and len({tuple(sorted(plan.items())) for plan in plans}) == len(plans)
    macros = (FOLDER / "dots.cu").read_text()
    assert all(f"#ifndef {name}\n" in macros for plan in plans for name in plan)


def test_the_plan_of_least_time_is_taken_and_none_is_timed_under_a_tool(monkeypatch):
    monkeypatch.setattr(preprocess, "letterbox", lambda batch, out, **plan: lambda: plan)
    monkeypatch.setattr(preprocess, "compile_ahead", lambda width, some: None)
    took = [[5.0, 4.0, 90.0]] * 18
    took[7] = [3.0, 2.0, 100.0]  # by its median
    monkeypatch.setattr(
        ct, "take_turns", lambda runs, times, order: dict(zip(runs, took, strict=True))
    )
    out = np.empty((1, 3, 8, 8), "uint16")
    plan, run = preprocess.tuned(None, out)
    assert plan == run() == preprocess.plans()[7] == {**preprocess.TWELVE, "CENTER": 1}
    monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    assert preprocess.tuned(None, out)[0] == {}


def test_neighbors_divide_the_width():
    widths = (640, 642, 641, 1)
    assert [preprocess.plan_of(w, "rows")["PIXELS"] for w in widths] == [4, 2, 1, 1]
    plans = [preprocess.plan_of(w, "dots") for w in widths]
    assert [plan["NEIGHBORS"] for plan in plans] == [4, 2, 1, 1]
    assert all(plan["PIXELS"] == 4 for plan in plans)


def bf16(words):
    return (words.astype("uint32") << 16).view("float32").astype("float64")


def on_a_cpu(folder, images, height, width, way, align=16, border=114, source=None, **plan):
    """What a kernel writes there; None where it reads a word beside the batch."""
    batch = preprocess.Batch(images, align)
    plan = preprocess.plan_of(width, way, **plan)
    scale = preprocess.scale_of(way, border, reference.MEAN, reference.STD)
    made = gpp.compiled(
        HERE / "letterbox_on_cpu.cpp",
        "-O1",
        "-std=c++20",
        "-ffp-contract=off",
        *(f"-D{name}={value}" for name, value in plan.items()),
        f"-DNAME=letterbox_{way}",
        f"-DSCALE={'Scale' if way == 'dots' else 'Normalize'}",
        f"-DTURNED={plan.get('CENTER', 0)}",
        f"-DTILE_WIDE={32 * plan.get('PIXELS', 1)}",
        f"-DTILE_HIGH={plan.get('DOWN', 8) * plan.get('ROWS', 1)}",
        places=(
            f'-DKERNEL="{source or FOLDER / (way + ".cu")}"',
            f"-I{FOLDER}",
            f"-I{HERE / 'no_cuda'}",
        ),
    )
    given, out = folder / "batch", folder / "out"
    table = batch.places(height, width)
    given.write_bytes(batch.pixels.tobytes() + table.tobytes() + scale.tobytes())
    run = [made, given, str(len(images)), str(height), str(width), out]
    done = subprocess.run(run, check=False, timeout=60)
    if done.returncode == 3:
        return None
    assert done.returncode == 0, done.returncode
    return np.frombuffer(out.read_bytes(), "uint16")


SIZES = [(1, 1), (1, 7), (7, 1), (2, 3), (33, 65), (64, 48), (192, 96), (100, 300)]
PLANS = [
    ("pixel", {}),
    ("rows", {}),
    ("rows", {"PIXELS": 2, "ROWS": 1, "WORDS": 0, "BY_BITS": 0, "SKIP": 0}),
    ("dots", {}),
    ("dots", {"DOWN": 8, "BLOCKS": 4, "ROWS": 8}),
    ("dots", {**preprocess.TWELVE, "CENTER": 1}),
    ("dots", {**preprocess.TWELVE, "THIRD": 0, "AHEAD": 1, "TURN": 1}),
    ("dots", {"CENTER": 1, "TURN": 1, "ROWS": 1}),
    ("dots", {"TURN": 1, "PIXELS": 8, "DOWN": 8, "CHANNELS_LAST": 1}),
    ("dots", {"NEIGHBORS": 2, "ROWS": 2}),
    ("dots", {"PIXELS": 2, "NEIGHBORS": 2, "ROWS": 8}),
    ("dots", {"PIXELS": 8, "NEIGHBORS": 8, "DOWN": 8, "ROWS": 1, "AHEAD": 1}),
    ("dots", {"CHANNELS_LAST": 1}),
    ("rows", {"CHANNELS_LAST": 1}),
    ("dots", {"SWAP": 0}),
]


@pytest.mark.parametrize("way, plan", PLANS)
def test_every_kernel_makes_the_input_of_a_network(way, plan, tmp_path):
    chance = np.random.default_rng(0)
    images = [chance.integers(0, 256, (*size, 3), dtype="uint8") for size in SIZES]
    for height, width, align in ((1, 1, 16), (64, 64, 1), (31, 33, 16), (66, 130, 1), (48, 96, 16)):
        got = bf16(on_a_cpu(tmp_path, images, height, width, way, align, **plan))
        want = np.stack([reference.letterbox(i, height, width) for i in images])
        if plan.get("SWAP") == 0:
            own = [reference.letterbox(i[:, :, ::-1], height, width) for i in images]
            want = np.stack(own)
        if plan.get("CHANNELS_LAST"):
            want = want.transpose(0, 2, 3, 1)
        error = np.abs(got.reshape(want.shape) - want)
        assert (error <= 2**-8 * np.abs(want) + 1e-3).all(), (height, width, error.max())


FAULTS = {
    "a center at its corner": ("letterbox.cuh", "(x + Number(0.5)) * step - Number(0.5)", "x * step"),
    "the other neighbor's weight": ("dots.cu", "right << 16 | (ONE - right)", "(ONE - right) << 16 | right"),
    "a row too far": ("dots.cu", "one.lo * bytes", "(one.lo + 1) * bytes"),
    "weights of rows exchanged": ("dots.cu", "1 - one.weight, one.weight}", "one.weight, 1 - one.weight}"),
    "a channel of the next pixel": ("dots.cu", "0x4130", "0x4140"),
    "no border": ("dots.cu", "in ? ZERO : scale.outside", "ZERO"),
    "columns beside the image": ("dots.cu", "in ? right << 16 | (ONE - right) : 0", "right << 16 | (ONE - right)"),
    "channels in their order": ("dots.cu", "SWAP ? 2 - c : c", "c"),
    "a plane too near": ("letterbox.cuh", "3 * image * plane + pixel)", "2 * image * plane + pixel)"),
    "the last columns": ("dots.cu", "left + WIDE > image.left", "left > image.left"),
    "a row of weight 0 for all": ("dots.cu", "one.weight > 0 ? up + bytes : up", "up"),
    "no third word": ("dots.cu", "at % 4 == 3", "at % 4 == 4", {"THIRD": 0}),
    "columns not turned": ("dots.cu", "TURN && x >= width", "false && x >= width", {"TURN": 1}),
    "a tile asks behind the batch": ("dots.cu", "3 * hi + 6", "3 * hi + 60", {"AHEAD": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_noticed(name, tmp_path):
    file, old, new, *plan = FAULTS[name]
    for source in ("letterbox.cuh", "dots.cu"):
        text = (FOLDER / source).read_text()
        if source == file:
            flat = " ".join(text.split())
            assert flat.count(" ".join(old.split())) == 1, old
            lines = text.splitlines(keepends=True)
            whole = [k for k, line in enumerate(lines) if old in line]
            assert len(whole) == 1, "the text of a fault stands in one line"
            lines[whole[0]] = lines[whole[0]].replace(old, new)
            text = "".join(lines)
        (tmp_path / source).write_text(text)
    chance = np.random.default_rng(0)
    images = [chance.integers(0, 256, (*size, 3), dtype="uint8") for size in SIZES]
    height, width = 48, 160
    source = tmp_path / "dots.cu"
    words = on_a_cpu(tmp_path, images, height, width, "dots", source=source, **dict(*plan))
    if words is None:
        return
    got = bf16(words)
    want = np.stack([reference.letterbox(i, height, width) for i in images])
    error = np.abs(got.reshape(want.shape) - want)
    assert not (error <= 2**-8 * np.abs(want) + 1e-3).all()
