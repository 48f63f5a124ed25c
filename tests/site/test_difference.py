"""What changed from one kernel file to the next: lines, counts, words, colors, and what is refused."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from cudatut.site import locale
from cudatut.site.difference import difference

ROOT = Path(__file__).resolve().parents[2]

OLD = """// One at a time.
// @rung kernel=one block=256
// --8<-- [start:kernel]
__global__ void one(float* x) {
  int i = threadIdx.x;

  x[i] = 2 * x[i];  // $a$ {{ not a reference }}
}
// --8<-- [end:kernel]
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Call it with the new text: the difference from OLD to it, as parsed HTML."""
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path))

    def compare(new, old=OLD, **options):
        for name, text in (("old", old), ("new", new)):
            (tmp_path / f"{name}.cu").write_text(text, encoding="utf-8")
        return ET.fromstring(difference("old.cu", "new.cu", **options))

    return compare


def words(element):
    return "".join(element.itertext())


def lines(tree):
    """Sign, blank and text of every line shown."""
    return words(tree.find(".//pre/code")).removesuffix("\n").split("\n")


def test_one_changed_line_stands_between_its_neighbors(files):
    tree = files(OLD.replace("2 * x[i]", "3 * x[i]"), context=1)
    assert lines(tree) == [
        "  ",
        "−   x[i] = 2 * x[i];  // $a$ {{ not a reference }}",
        "+   x[i] = 3 * x[i];  // $a$ {{ not a reference }}",
        "  }",
    ]
    assert [words(tree.find(f".//pre//{tag}"))[0] for tag in ("del", "ins")] == ["−", "+"]


def test_blank_lines_at_the_beginning_and_the_end_are_lines_too(files):
    old = f"\n\n{OLD}\n\n"
    assert lines(files(old.replace("2 * x[i]", "3 * x[i]"), old, context=0)) == [
        "−   x[i] = 2 * x[i];  // $a$ {{ not a reference }}",
        "+   x[i] = 3 * x[i];  // $a$ {{ not a reference }}",
    ]


def test_the_summary_counts_the_lines_in_both_languages(files):
    new = OLD.replace("threadIdx.x;", "threadIdx.x;\n  int j = i;")
    assert words(files(new).find("summary")) == "What changed against old.cu: +1, −0 lines"
    with locale.using("zh"):
        assert words(files(new).find("summary")) == "与 old.cu 相比改了什么：+1 行，−0 行"


def test_two_lines_around_a_change_are_shown_where_nobody_says_how_many(files):
    old = "".join(f"// {k}\n" for k in range(9))
    shown = lines(files(old.replace("// 4", "// four"), old))
    assert shown == ["  // 2", "  // 3", "− // 4", "+ // four", "  // 5", "  // 6"]


def test_lines_that_stand_in_a_long_file_often_are_compared_too(files):
    """difflib would take them for noise from two hundred lines on, and all lines for changed."""
    old = "x\n" * 150 + "y\n" * 150
    tree = files(old.replace("x\ny\n", "x\nz\ny\n"), old)
    assert words(tree.find("summary")).endswith(": +1, −0 lines")


def test_names_of_files_are_escaped(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path))
    names = ('a"<b>.cu', 'c"&.cu')
    for number, name in enumerate(names):
        (tmp_path / name).write_text(f"// {number}\n", "utf-8")
    tree = ET.fromstring(difference(*names))
    assert all(one in words(tree.find("summary")) for one in names[:1])
    assert all(one in tree.find(".//pre/code").get("aria-label") for one in names)


def test_region_markers_are_no_lines(files):
    new = OLD.replace("[start:kernel]", "[start:all]").replace("2 * x", "3 * x")
    new = new.replace("  int i", "  // --8<-- [start:index]\n  int i")
    shown = lines(files(new))
    assert not any("--8<--" in line for line in shown)
    assert [line[0] for line in shown if line[0] in "+−"] == ["−", "+"]


def test_a_place_where_only_the_rung_line_differs_is_left_out(files):
    new = OLD.replace("block=256", "block=128")
    with pytest.raises(ValueError, match=r"nothing has changed from old\.cu to new\.cu"):
        files(new)
    shown = lines(files(new.replace("2 * x", "3 * x"), context=1))
    assert not any("@rung" in line for line in shown)
    # Among other changes it tells something.
    shown = lines(files(new.replace("One at", "Two at")))
    assert sum("@rung" in line for line in shown) == 2


def test_places_far_apart_are_kept_apart(files):
    new = OLD.replace("One at", "Two at").replace("2 * x", "3 * x")
    assert "⋯" in lines(files(new, context=0))
    assert "⋯" not in lines(files(new, context=5))


def test_nothing_of_the_code_is_left_for_the_page_to_read(files, tmp_path):
    files(OLD.replace("2 * x", "3 * x"))
    html = difference("old.cu", "new.cu")
    body = re.sub(r"<[^>]*>", "", html.partition("<pre")[2])
    assert not set("{}$") & set(body) and "\n\n" not in html
    assert "http" not in html and "style=" not in html


def test_what_is_not_among_the_examples_is_refused(files, tmp_path):
    files(OLD.replace("2", "3"))
    for name in ("none.cu", "../old.cu", "."):
        with pytest.raises(FileNotFoundError, match="among the examples"):
            difference("old.cu", name)


@pytest.mark.parametrize("lang", locale.LANGUAGES)
def test_a_reader_with_a_keyboard_gets_there(lang):
    with locale.using(lang):
        tree = ET.fromstring(
            difference("gemm/ladder/block_tile_2d.cu", "gemm/ladder/vectorized.cu")
        )
    code = tree.find(".//pre/code")
    assert tree.tag == "details" and tree[0].tag == "summary" and "open" not in tree.attrib
    assert code.get("tabindex") == "0" and code.get("role") == "region"
    assert "gemm/ladder/vectorized.cu" in code.get("aria-label")
    assert lines(tree)


def test_words_are_legible_on_both_tints_in_both_schemes():
    css = (ROOT / "docs/theme/css/cudatut.css").read_text(encoding="utf-8")
    tints = re.findall(r"\.ct-diff (?:ins|del) \{ background: var\(--([\w-]+)\)", css)
    assert len(set(tints)) == 2
    for scheme in (r":root \{(.*?)\n\}", r'"slate"\] \{(.*?)\n\}'):
        colors = dict(
            re.findall(r"--([\w-]+): (#\w{6})", re.search(scheme, css, re.DOTALL).group(1))
        )
        for tint in tints:
            for word in ("ct-ink", "ct-quiet", "c1", "c2", "c3", "c4", "c5", "c6"):
                assert contrast(colors[word], colors[tint]) >= 4.5, (word, tint)


def contrast(one, other):
    """Contrast of two colors #rrggbb, as WCAG 2 defines it."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
