"""Text in lines, where Chinese stands too: its characters are two columns wide, and a line may end beside each."""

import re
from collections.abc import Callable

# Chinese characters and their punctuation, and what of it begins no line.
WIDE = r"[\u3000-\u9fff\uff00-\uffef]"
_NOT_FIRST = "，。、；：？！）》」』”’"
_PIECES = re.compile(rf"{WIDE}[{_NOT_FIRST}]*| |(?:(?!{WIDE})\S)+[{_NOT_FIRST}]*")


def wrapped(text: str, fits: Callable[[str], bool]) -> list[str]:
    """The lines of a text, each as long as `fits` allows; what cannot be broken may be longer."""
    lines = [""]
    for piece in _PIECES.findall(" ".join(text.split())):
        if lines[-1] and not fits(lines[-1] + piece.rstrip()):
            lines.append("")
        if piece != " " or lines[-1]:
            lines[-1] += piece
    return [line.rstrip() for line in lines]


def padded(text: str, width: int) -> str:
    """A text as wide as a column; to its right with a negative width."""
    from rich.cells import cell_len  # here, since most commands pad nothing

    blanks = " " * (abs(width) - cell_len(text))
    return blanks + text if width < 0 else text + blanks
