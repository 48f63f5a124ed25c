"""Comments and docstrings of Python and CUDA C++: where they stand in a piece of code, and the code with others in their place.

Code on pages is often a part of a file, so what does not parse has its comments found line by line.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import textwrap
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.cells import cell_len

from cudatut.wrapping import wrapped

_WIDTH = 80  # columns of a comment in other words, unless a line of it was wider before
# In C++: what may hold the signs of a comment and is none, and comments.
_CUDA = re.compile(
    r'R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(?P<line>//[^\n]*)|(?P<long>/\*(?:.|\n)*?\*/)'
)
# Comments that speak to a tool, and marks of regions.
_FOR_TOOLS = re.compile(r"noqa\b|type:|fmt:|ruff:|clang-format|NOLINT|-*8<-|@\w+|%%|!|\W*$")
# A line that stands for itself in a comment of several: an item, or what is set out in columns.
_OF_ITS_OWN = re.compile(r" {2,}|[-*•] |\d+[.)] ")
_WORD = re.compile(r"[A-Za-z0-9_]+(?:[.:/-]+[A-Za-z0-9_]+)*")
_CODE = re.compile(r"`[^`]*`")


@dataclass(frozen=True)
class Comment:
    """What stands from `start` to `end` in the code; `text` without marks, blanks at the ends of lines and line breaks."""

    start: int
    end: int
    text: str
    open: str  # before the first line
    next: str  # before each further one
    close: str
    width: int  # columns that a line may take

    def with_words(self, words: str) -> str:
        """What stands in its place when it says these words; line breaks in them stay."""
        paragraphs = [
            wrapped(one, lambda line: cell_len(self.next + line) <= self.width)
            if one.strip()
            else [""]
            for one in words.split("\n")
        ]
        lines = [line for paragraph in paragraphs for line in paragraph]
        whole = self.open + f"\n{self.next}".join(lines)
        whole = whole.replace(f"{self.next}\n", f"{self.next.rstrip()}\n")
        # One line of words needs no line for the end.
        return whole + self.close.removeprefix(f"\n{self.next}" if len(lines) == 1 else "")


def has_english(text: str) -> bool:
    """Whether there are English words beside code, identifiers and numbers."""
    return any(
        re.fullmatch(r"[A-Z]?[a-z]{2,}", word) and len(word) > 2
        for word in _WORD.findall(_CODE.sub(" ", text))
    )


def comments(code: str, language: str) -> list[Comment]:
    """The comments of a piece of code in order, a run of lines as one. language: 'python' or 'cuda'."""
    found = _of_cuda(code) if language == "cuda" else _of_python(code)
    return [one for one in found if not _FOR_TOOLS.match(one.text)]


def replaced(code: str, language: str, words: Callable[[str], str | None]) -> str:
    """The code with the words that `words` has for the text of a comment; where it has None the comment stays."""
    out, at = [], 0
    for one in comments(code, language):
        if (other := words(one.text)) is not None and other != one.text:
            out += [code[at : one.start], one.with_words(other)]
            at = one.end
    return "".join([*out, code[at:]])


# --- C++ -----------------------------------------------------------------------------------------


def _of_cuda(code: str) -> list[Comment]:
    places = []
    found: list[Comment] = []
    for match in _CUDA.finditer(code):
        if match["line"]:
            places.append((match.start(), match.end()))
        elif match["long"]:
            lines = [re.sub(r"^\s*\*? ?", "", line) for line in match[0][2:-2].split("\n")]
            indent = " " * _column(code, match.start())
            found.append(
                Comment(
                    match.start(), match.end(), _joined(lines), "/* ", f"{indent} * ", " */", _WIDTH
                )
            )
    found += _runs(code, places, "//")
    return sorted(found, key=lambda one: one.start)


def _column(code: str, at: int) -> int:
    return at - (code.rfind("\n", 0, at) + 1)


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def _runs(code: str, places: list[tuple[int, int]], mark: str) -> Iterator[Comment]:
    """Comments from a mark to the end of the line, joined where one goes on below the other."""
    run: list[tuple[int, int]] = []

    def body(place: tuple[int, int]) -> str:
        text = code[place[0] : place[1]].rstrip()[len(mark) :]
        return text[1:] if text[:1] == " " else text

    def made() -> Comment:
        start, end = run[0][0], run[-1][0] + len(code[slice(*run[-1])].rstrip())
        lines = [body(place) for place in run]
        lead = " " * (len(lines[0]) - len(lines[0].lstrip(" "))) if len(run) == 1 else ""
        open = f"{mark} {lead}"
        width = max(_WIDTH, *(_column(code, a) + b - a for a, b in run))
        return Comment(start, end, _joined(lines), open, " " * _column(code, start) + open, "", width)  # fmt: skip

    for place in places:
        alone = not code[place[0] - _column(code, place[0]) : place[0]].strip()
        if run:
            below = code.count("\n", run[-1][1], place[0]) == 1 and alone
            same = _column(code, place[0]) == _column(code, run[0][0])
            text, before = body(place), body(run[-1])
            ends = _FOR_TOOLS.match(text) or _FOR_TOOLS.match(before) or _OF_ITS_OWN.match(text)
            if not (below and same) or ends:
                yield made()
                run = []
        run.append(place)
    if run:
        yield made()


# --- Python --------------------------------------------------------------------------------------


def _of_python(code: str) -> list[Comment]:
    margin = _margin(code)
    plain = textwrap.dedent(code) if margin else code
    try:
        found = _parsed(plain)
    except (SyntaxError, tokenize.TokenError, ValueError):
        places = [(m.start(1), m.end()) for m in re.finditer(r"^[^'\"\n#]*(#[^\n]*)", plain, re.M)]
        found = list(_runs(plain, places, "#"))
    if not margin:
        return found
    return [_moved(one, code, plain, margin) for one in found]


def _margin(code: str) -> int:
    lines = [line for line in code.split("\n") if line.strip()]
    return min((len(line) - len(line.lstrip(" ")) for line in lines), default=0)


def _moved(one: Comment, code: str, plain: str, margin: int) -> Comment:
    """A comment of the code without its margin, in the code that has it."""

    def there(at: int) -> int:
        line = plain.count("\n", 0, at)
        start = sum(len(text) + 1 for text in code.split("\n")[:line])
        return start + margin + _column(plain, at)

    blanks = " " * margin
    next_, close = blanks + one.next, one.close.replace("\n", f"\n{blanks}")
    return Comment(there(one.start), there(one.end), one.text, one.open, next_, close, one.width + margin)  # fmt: skip


def _parsed(code: str) -> list[Comment]:
    starts = [0]
    for line in code.split("\n"):
        starts.append(starts[-1] + len(line) + 1)

    def at(line: int, column: int) -> int:
        """Of the ast, which counts bytes."""
        text = code[starts[line - 1] : starts[line]]
        return starts[line - 1] + len(text.encode()[:column].decode())

    tree = ast.parse(code)
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    places = [
        (starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1])
        for token in tokens
        if token.type == tokenize.COMMENT
    ]
    found = list(_runs(code, places, "#"))
    docstrings = set(filter(None, map(_docstring_of, ast.walk(tree))))
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Constant, ast.JoinedStr)) or node.end_lineno is None:
            continue
        start, end = (
            at(node.lineno, node.col_offset),
            at(node.end_lineno, node.end_col_offset or 0),
        )
        if node in docstrings:
            found.append(_docstring(code, start, end))
        elif node.end_lineno > node.lineno and code[end - 3 : end] in ('"""', "'''"):
            found += _within(code, start, end)
    # An f-string's own constants lie inside it.
    unique = {(one.start, one.end): one for one in found}
    return sorted(unique.values(), key=lambda one: one.start)


def _docstring_of(node: ast.AST) -> ast.Constant | None:
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        match node.body:
            case [ast.Expr(value=ast.Constant(value=str()) as text), *_]:
                return text
    return None


def _docstring(code: str, start: int, end: int) -> Comment:
    literal = code[start:end]
    quote = re.match(r"[A-Za-z]*(\"\"\"|'''|\"|')", literal)
    assert quote
    text = inspect.cleandoc(literal[quote.end() : -len(quote[1])])
    paragraphs = [_joined(one.split("\n")) for one in re.split(r"\n\s*\n", text)]
    indent = " " * _column(code, start)
    several = "\n" in literal and len(quote[1]) == 3 and literal.rstrip("\"'").endswith(indent)
    close = quote[1] if not (several and "\n" in text) else f"\n{indent}{quote[1]}"
    return Comment(
        start, end, "\n\n".join(paragraphs), quote[0], indent, close, _WIDTH - 2 * len(quote[0])
    )


def _within(code: str, start: int, end: int) -> list[Comment]:
    """Comments of the program that a text of several lines is."""
    text = code[start:end]
    if re.search(r"__global__|__device__|__shared__|#include|#define|\)\s*\{\n", text):
        inner = _of_cuda(text[:-3])
    elif re.search(r"^\s*(?:import|from|def|for|with) ", text, re.M):
        places = [(m.start(1), m.end()) for m in re.finditer(r"^[^'\"\n#]*(#[^\n]*)", text, re.M)]
        inner = list(_runs(text, places, "#"))
    else:
        return []
    return [
        Comment(one.start + start, one.end + start, one.text, one.open, one.next, one.close, one.width)
        for one in inner
    ]  # fmt: skip
