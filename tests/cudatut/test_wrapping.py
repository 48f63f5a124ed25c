"""Text in lines, of both languages."""

import pytest

from cudatut.wrapping import padded, wrapped


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


def test_a_line_is_asked_for_without_the_blank_behind_it():
    assert wrapped("abcde f", lambda line: len(line) <= 5) == ["abcde", "f"]
    assert wrapped("  ab\n cd  ", lambda line: len(line) <= 5) == ["ab cd"]
    assert wrapped("ab，cd。e", lambda line: len(line) <= 3) == ["ab，", "cd。", "e"]


@pytest.mark.parametrize(
    ("text", "width", "column"),
    [
        ("ab", 4, "ab  "),
        ("ab", -4, "  ab"),
        ("词", 4, "词  "),
        ("词", -3, " 词"),
        ("abc", 2, "abc"),
        ("ab", 2, "ab"),
    ],
)
def test_a_column_is_as_wide_in_chinese(text, width, column):
    assert padded(text, width) == column
