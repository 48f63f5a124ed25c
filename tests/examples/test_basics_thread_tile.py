"""What the page on thread tiles shows in pieces and works by hand is what its program has and does."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = (ROOT / "examples/basics/thread_tile/chapter.py").read_text().split('"""')[1]
_ROW = re.compile(
    r"^\| (?P<t>\d+) \| `a\[(\d+)\]\[(\d+)\]` \| `b\[(\d+)\]\[(\d+)\]` \| (\d+) \| (\d+) \D+ (\d+) \|$",
    re.MULTILINE,
)


def _code(text: str) -> list[str]:
    """The lines of code, without comments and without the room around words."""
    lines = (" ".join(line.partition("//")[0].split()) for line in text.splitlines())
    return [line for line in lines if line]


def _size(name: str) -> int:
    found = re.search(rf"#define {name} (\d+)", PROGRAM)
    assert found
    return int(found[1])


def _page(language: str) -> str:
    return (ROOT / f"docs/{language}/basics/thread_tile.md").read_text()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_pieces_stand_in_the_program(language):
    pieces = re.findall(r"^```cuda\n(.*?)^```", _page(language), re.MULTILINE | re.DOTALL)
    shown = [line for piece in pieces for line in _code(piece)]
    assert len(shown) > 15
    assert not set(shown) - set(_code(PROGRAM))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_threads_worked_by_hand(language):
    bm, bn, bk, tm = map(_size, ("BM", "BN", "BK", "TM"))
    assert bm * bk == bk * bn == bm * bn // tm == 512  # one word of each tile for each thread
    rows = [[int(cell) for cell in found.groups()] for found in _ROW.finditer(_page(language))]
    assert [row[0] for row in rows] == [0, 1, 63, 64]
    for t, *said in rows:
        y = t // bn * tm
        assert said == [t // bk, t % bk, t // bn, t % bn, t % bn, y, y + tm - 1]
