"""Pictures as results: what is written, what is read of it again, and what is refused."""

import base64
import json
import struct
import zlib

import numpy as np
import pytest

import cudatut as ct
from cudatut import image_files, results
from cudatut.results import MIME, read, validate

ALT = {"en": "a <bright> slope", "zh": "一道亮坡"}
RNG = np.random.default_rng(35)
# The simplest lossy WebP, of which `seen` reads the head alone: 5 x 3 pixels.
_VP8 = b"\x10\x00\x00\x9d\x01\x2a" + struct.pack("<HH", 5, 3) + b"\x00\x00"
WEBP = b"RIFF" + struct.pack("<I", 12 + len(_VP8)) + b"WEBPVP8 " + struct.pack("<I", len(_VP8)) + _VP8  # fmt: skip


def decoded(file):
    """The pixels of one of our PNGs, by the rules of the format and none of our code."""
    at, found = 8, {}
    while at < len(file):
        (length,) = struct.unpack_from(">I", file, at)
        found[file[at + 4 : at + 8]] = file[at + 8 : at + 8 + length]
        at += 12 + length
    width, height, depth, color, *rest = struct.unpack(">IIBBBBB", found[b"IHDR"])
    assert (depth, rest) == (8, [0, 0, 0])
    step = {0: 1, 2: 3, 3: 1}[color]
    stride, raw = width * step, zlib.decompress(found[b"IDAT"])
    above = [0] * stride
    rows = []
    for y in range(height):
        kind, *line = raw[y * (stride + 1) : (y + 1) * (stride + 1)]
        row = []
        for i, value in enumerate(line):
            a = row[i - step] if i >= step else 0
            b, c = above[i], above[i - step] if i >= step else 0
            near = min((a, b, c), key=lambda one: abs(a + b - c - one))
            row.append((value + (0, a, b, (a + b) // 2, near)[kind]) & 255)
        rows.append(row)
        above = row
    if color == 3:
        return np.frombuffer(found[b"PLTE"], np.uint8).reshape(-1, 3)[np.array(rows)]
    shape = (height, width) if step == 1 else (height, width, 3)
    return np.array(rows, np.uint8).reshape(shape)


def slope(*shape):
    return (sum(np.indices(shape)) * 3 % 256).astype(np.uint8)


@pytest.mark.parametrize("shape", [(1, 1), (1, 1, 3), (5, 1), (1, 7, 3), (17, 33), (31, 20, 3)])
@pytest.mark.parametrize("kind", ["random", "slope", "flat", "strided"])
def test_a_png_holds_every_value(shape, kind):
    array = {
        "random": RNG.integers(0, 256, shape, np.uint8),
        "slope": slope(*shape),
        "flat": np.full(shape, 255, np.uint8),
        "strided": RNG.integers(0, 256, shape, np.uint8)[::-1, ::-1],
    }[kind]
    file = image_files.png(array)
    assert np.array_equal(decoded(file), array)
    assert image_files.seen(file) == ("png", shape[1], shape[0])


@pytest.mark.parametrize(("colors", "indexed"), [(1, True), (256, True), (257, False)])
def test_few_colors_are_numbered_where_that_is_smaller(colors, indexed):
    palette = RNG.permutation(1 << 24)[:colors]
    codes = RNG.permutation(np.resize(palette, 60 * 50)).reshape(60, 50)
    array = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=-1).astype(np.uint8)
    file = image_files.png(array)
    assert (b"PLTE" in file) == indexed and len(file) < 60 * 50 * 3.2
    assert np.array_equal(decoded(file), array)


def test_a_picture(capsys):
    array = slope(4, 6, 3)
    picture = ct.picture("slope", array, ALT, scale=8)
    assert capsys.readouterr().out == "slope (6 x 4): a <bright> slope\n"
    assert picture.text("zh").endswith("一道亮坡")
    data = json.loads(json.dumps(picture.json(), allow_nan=False))
    validate(data)
    assert set(data) == {"kind", "name", "width", "height", "alt", "data", "scale"}
    assert (data["width"], data["height"], data["scale"]) == (6, 4, 8)
    assert np.array_equal(decoded(read(data).file), array)
    html = picture._repr_mimebundle_()["text/html"]
    assert f'src="data:image/png;base64,{data["data"]}"' in html
    assert 'alt="a &lt;bright&gt; slope" width="48" height="32"' in html
    assert picture._repr_mimebundle_()[MIME] == picture.json()
    assert picture.table()[1] == ["slope", "6 x 4", "png", str(len(picture.file))]
    assert "scale" not in ct.picture("as it is", array, ALT).json()


def test_a_picture_is_silent_while_a_tool_watches(monkeypatch, capsys):
    monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    ct.picture("slope", slope(4, 6), ALT)
    assert capsys.readouterr().out == ""


class OnGpu:
    def get(self):
        raise AssertionError


@pytest.mark.parametrize(
    ("array", "options", "error", "says"),
    [
        (slope(4, 4).astype(np.float32), {}, TypeError, "a float32 array; give a NumPy array of uint8"),
        ([[1]], {}, TypeError, "it is a list"),
        (OnGpu(), {}, TypeError, r"it is a OnGpu; .*`.get\(\)` copies an array of the GPU"),
        (slope(3, 4, 4), {}, ValueError, r"its shape is \(3, 4, 4\); give height x width"),
        (slope(4), {}, ValueError, r"its shape is \(4,\)"),
        (slope(0, 4), {}, ValueError, "of at least one pixel"),
        (slope(4, 4), {"scale": 0}, ValueError, "scale is 0, and may be 1 to 32"),
        (slope(4, 4), {"alt": {"en": "a"}}, ValueError, "alt needs words in 'en' and 'zh'"),
        (slope(4, 4), {"alt": {"en": "a", "zh": " "}}, ValueError, "alt needs words"),
        (RNG.integers(0, 256, (200, 200), np.uint8), {}, ValueError,
         "its file has 4[0-9],[0-9]{3} B, and may have 30,720: show fewer pixels"),
    ],
)  # fmt: skip
def test_what_is_no_picture_is_refused(array, options, error, says):
    with pytest.raises(error, match=says):
        ct.picture("p", array, **({"alt": ALT} | options))


def test_a_quality_makes_a_webp_where_pillow_is():
    pytest.importorskip("PIL")
    picture = ct.picture("slope", slope(40, 60, 3), ALT, quality=80)
    assert picture.format == "webp" and list(picture.problems()) == []


def test_a_quality_without_pillow_names_the_cure(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(ct.ToolMissing, match="`pip install pillow`; without quality= it is a PNG"):
        ct.picture("slope", slope(4, 4), ALT, quality=80)


def of(file, **changes):
    data = base64.b64encode(file).decode()
    fields = {"name": "p", "width": 5, "height": 3, "alt": ALT, "data": data} | changes
    return [*results.Picture(**fields).problems()]


GOOD = image_files.png(slope(3, 5))


@pytest.mark.parametrize("file", [GOOD, WEBP])
def test_what_can_be(file):
    assert of(file) == []


@pytest.mark.parametrize(
    ("file", "changes", "says"),
    [
        (GOOD, {"width": 4}, "its file has 5 x 3 pixels, and it says 4 x 3"),
        (GOOD, {"data": "<script>"}, "its data is no base64"),
        (b"<svg onload=x>", {}, "it is no PNG and no WebP"),
        (b"", {}, "it is no PNG and no WebP"),
        (GOOD[:-5], {}, "it is a PNG that was cut short"),
        (GOOD[:50] + b"?" + GOOD[51:], {}, "it is a PNG that was damaged"),
        (GOOD[:33], {}, "it is no PNG and no WebP"),
        (GOOD + b"more", {}, "it is a PNG that was cut short"),
        (WEBP[:-1], {}, "it is no PNG and no WebP"),
        (GOOD, {"scale": 33}, "scale is 33"),
    ],
)
def test_what_cannot_be(file, changes, says):
    assert any(says in problem for problem in of(file, **changes)), of(file, **changes)
