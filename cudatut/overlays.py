"""The Chinese of what stands in English in the examples: comments and docstrings of code, narration, titles of cells.

It lies in `zh.yml` beside the code, as pairs, so that code has one source:

    - en: no thread reads a tile before all have written it
      zh: 所有线程都写完之前，谁也不读

A text is looked up in the folder of its file, then in those above it, up to `examples/zh.yml`. Line breaks count in neither:
a comment of several lines is one text, and is broken anew in Chinese. Breaks in the Chinese stay; a pair with `zh: =` is
said to be the same in Chinese, such as code that is commented out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cudatut import comments, paths
from cudatut.errors import CudatutError

FILE = "zh.yml"
_SAME = "="

# Told of each text that has no Chinese: the overlay in which it belongs, and the text.
Lacking = Callable[[str, str], None]


class BadOverlayError(CudatutError):
    """An overlay file is not as it should be; the message names file and line."""


def folded(text: str) -> str:
    """A text as it is looked up: in one line."""
    return " ".join(text.split())


@dataclass(frozen=True)
class Chinese:
    """What an overlay file has for a text, and the line on which the pair begins."""

    words: str
    line: int


@cache
def load(path: Path) -> dict[str, Chinese]:
    """The Chinese of each text (folded) in an overlay file; {} where there is none. Raises BadOverlayError."""
    if not path.is_file():
        return {}
    import yaml  # here, since most commands read none

    shown, loader = paths.shown(path), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadOverlayError(f"{shown} cannot be read: {folded(str(error))}") from error
    found: dict[str, Chinese] = {}
    for pair in _pairs(root, shown):
        line = pair.start_mark.line + 1
        entry = {key.value: value.value for key, value in _entries(pair, shown)}
        if set(entry) != {"en", "zh"} or not all(isinstance(one, str) and one.strip() for one in entry.values()):  # fmt: skip
            raise BadOverlayError(f"{shown}:{line}: a pair has text for `en:` and `zh:`")
        english, chinese = folded(entry["en"]), entry["zh"].rstrip("\n")
        if english in found:
            raise BadOverlayError(f"{shown}:{line}: '{english[:60]}' stands twice; keep one")
        found[english] = Chinese(english if chinese == _SAME else chinese, line)
    return found


def _pairs(root: Any, shown: str) -> list[Any]:
    if root is None:
        return []
    if root.id != "sequence":
        raise BadOverlayError(f"{shown}: the file is a list of pairs, `- en: ...` and `zh: ...`")
    return root.value


def _entries(pair: Any, shown: str) -> list[tuple[Any, Any]]:
    if pair.id != "mapping":
        line = pair.start_mark.line + 1
        raise BadOverlayError(f"{shown}:{line}: a pair begins with `- en:`")
    return pair.value


def chinese(text: str, file: str) -> str | None:
    """The Chinese of a text in `file`, a path below examples/; None where no overlay has it. Raises BadOverlayError."""
    folder, key = paths.examples_dir() / file, folded(text)
    while folder != paths.examples_dir() and folder.parent != folder:
        folder = folder.parent
        if (found := load(folder / FILE).get(key)) is not None:
            return found.words
    return None


def _looked_up(file: str, lacking: Lacking | None) -> Callable[[str], str | None]:
    def words(text: str) -> str | None:
        found = chinese(text, file)
        if found is None and lacking and comments.has_english(text):
            lacking(overlay_of(file), text)
        return found

    return words


def overlay_of(file: str) -> str:
    """The overlay in which the texts of a file belong, as messages name it."""
    return paths.shown((paths.examples_dir() / file).parent / FILE)


def code(source: str, file: str, lacking: Lacking | None = None) -> str:
    """A piece of the code in `file` (a path below examples/) with Chinese comments and docstrings.

    What has no Chinese stays, and `lacking` is told of it. Raises BadOverlayError.
    """
    language = "python" if file.endswith((".py", "Makefile")) else "cuda"
    return comments.replaced(source, language, _looked_up(file, lacking))


def words(text: str, file: str, lacking: Lacking | None = None) -> str:
    """Narration in Chinese, as `code`."""
    found = _looked_up(file, lacking)(text)
    return text if found is None else found


def title(name: str, file: str, lacking: Lacking | None = None) -> str:
    """The title of a cell in Chinese, as `code`: that of `check-strides-2` is the one of 'check strides', and ' 2'."""
    english, number = said_by_title(name)
    found = chinese(english, file)
    if found is None:
        if lacking:
            lacking(overlay_of(file), english)
        return name
    return f"{found} {number}".rstrip()


def said_by_title(name: str) -> tuple[str, str]:
    """The words of a cell's title, as an overlay has them, and the number at its end or ''."""
    match = re.fullmatch(r"(.*?)(?:-(\d+))?", name, re.DOTALL)
    assert match
    return match[1].replace("-", " "), match[2] or ""
