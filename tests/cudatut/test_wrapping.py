"""Text in lines, of both languages."""

import pytest

from cudatut.wrapping import wrapped


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("one two three", ["one", "two", "three"]),
        ("a b c d", ["a b c", "d"]),
        # What cannot be broken is longer, and no line is empty.
        ("longest longer", ["longest", "longer"]),
        ("a longest b", ["a", "longest", "b"]),
        # A line may end beside each character, and none begins with what belongs behind one.
        ("一二三四五六七", ["一二三四五", "六七"]),
        ("一二三四五，六七", ["一二三四", "五，六七"]),
    ],
)
def test_lines_of_five_characters(text, lines):
    assert wrapped(text, lambda line: len(line) <= 5) == lines
