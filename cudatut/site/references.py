"""Measured numbers in prose: `{{ start/x#bench["grid-stride"].value :.0f }}` and their arithmetic.

    {{ example#cell["row"].field }}        a benchmark row, a fact, a counter of a profile
    {{ example#cell["row"]["column"] }}    a value of a table; of a chart's line the value at an x
    {{ example#cell.field }}               a check, resources, a sanitizer, a benchmark's unit or peak
    {{ example#cell.1["row"].field }}      the second result, where several of a cell's would fit
    {{ 2 * 4 * 10**7 / 1e6 :.0f }}         arithmetic, with references or without

What is no reference and no arithmetic is told: `cudatut.site.told`. A reference reads the recording of the example; one that is missing, damaged, stale or failed is an
error that names the command which mends it. Inside code nothing is replaced.
"""

from __future__ import annotations

import ast
import difflib
import operator
import re
from collections.abc import Callable, Iterator
from functools import partial
from html import escape
from typing import Any

from cudatut.errors import CudatutError
from cudatut.recording import Recording
from cudatut.site import locale, localize, state, told
from cudatut.site.missing import MissingOutputError, number_html

FIELD = re.compile(r"\{\{(.*?)\}\}")
_REFERENCE = re.compile(
    r"""(?P<example>[a-z0-9_]+(?:/[a-z0-9_]+)+)\#(?P<cell>[a-z0-9]+(?:-[a-z0-9]+)*)
        (?:\.(?P<index>\d+))?
        (?P<at>(?:\["[^"]*"\]){0,2}(?:\.[a-z_][a-z0-9_]*)?)""",
    re.VERBOSE,
)
_FORMAT = re.compile(
    r'(.*) :\s*([^"]*?)\s*'
)  # a colon in the name of a row is followed by its quote
_LITERAL = re.compile(r"\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?")
_FENCE = re.compile(r"^[ \t>]*(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FRONT = re.compile(r"---[ \t]*\n.*?\n---[ \t]*\n", re.DOTALL)
# Lines whose text Markdown extensions read as attributes: no HTML may come in there.
_PLAIN = re.compile(r"^\s*(!!!|\?\?\?|===|#)")
MATH = re.compile(r"(?<![\\$])(\$\$?)(?=\S)(.+?)(?<=\S)\1")
_IN_FORMULA = re.compile(r"[\w.,+-]*")  # numbers and words: nothing that ends a formula
# Markdown reads a page after this, and takes no character reference for a mark of its own.
_INERT = {ord(mark): f"&#{ord(mark)};" for mark in "\n\r\\`*_{}[]()<>#+!|:$=~^\"'&@"}

Value = int | float | str | bool


class BadReferenceError(CudatutError):
    """A `{{ ... }}` that cannot be resolved; the message says which and why."""


def load(name: str) -> Recording:
    """The recording of an example, good and fresh; see `cudatut.recording.require_good`."""
    return state.current().record(name)


def value(expression: str, record: Callable[[str], Recording] | None = None) -> Value:
    """Value of what stands between the braces, without a format: figures use it too.

    record: gives the recording of an example by its name (default: the book's own). Raises BadReferenceError, or what the recording raises when it is missing, stale, failed or damaged.
    """
    record = record or load
    alone = _REFERENCE.fullmatch(expression.strip())
    if alone:
        return _resolve(alone, record)
    where = f"{{{{ {expression.strip()} }}}}"
    try:
        text = _REFERENCE.sub(partial(_number, record), expression).strip()
        return _evaluate(ast.parse(text, mode="eval").body)
    except SyntaxError as error:
        raise BadReferenceError(
            f"{where} is neither a reference (example#cell.field) nor arithmetic"
        ) from error
    except (ValueError, ArithmeticError) as error:
        raise BadReferenceError(f"{where}: {error}") from error


def facts(example: str, cell: str, index: int = 0) -> dict[str, Any]:
    """Name and value of all facts of a cell: of its result number `index`, from 0. Raises as `value`.

    Any: whether it is a number or a word, the example says.
    """
    return {row["name"]: row["value"] for row in _nth(example, cell, index, "facts")["rows"]}


def table(example: str, cell: str, index: int = 0) -> dict[str, dict[str, Any]]:
    """A table of a cell, by row and column: its result number `index`, from 0. Raises as `value`."""
    result = _nth(example, cell, index, "table")
    columns = [column["name"] for column in result["columns"]]
    return {row["name"]: dict(zip(columns, row["values"])) for row in result["rows"]}


def _nth(example: str, cell: str, index: int, kind: str) -> dict[str, Any]:
    results = load(example).results(cell)
    if index < len(results) and results[index]["kind"] == kind:
        return results[index]
    there = ", ".join(f"{number} {one['kind']}" for number, one in enumerate(results)) or "none"
    raise BadReferenceError(
        f"{example}#{cell}: its result {index} is no {kind}; name another number. Its results: {there}"
    )


def label(english: str) -> str:
    """A label of a recording in the language of the page."""
    return localize.current().chinese(english) if locale.current() == "zh" else english


def formatted(body: str) -> str:
    """Text of one reference, its format applied: `start/x#bench.peak :.0f` -> "3021"."""
    expression, spec = parts(body)
    result = value(expression)
    if isinstance(result, str) and locale.current() == "zh":
        # A word is the value of one reference: there is no arithmetic with it.
        with localize.of(expression.strip().partition("#")[0]):
            result = localize.current().chinese(result)
    if spec is None:
        return f"{result:.4g}" if isinstance(result, float) else str(result)
    if isinstance(result, float) and spec.endswith("d") and result.is_integer():
        result = int(result)
    try:
        return format(result, spec)
    except ValueError as error:
        raise BadReferenceError(f"{{{{ {body.strip()} }}}}: {error}") from error


def parts(body: str) -> tuple[str, str | None]:
    """The expression that stands between the braces, and the format behind it, if there is one."""
    split = _FORMAT.fullmatch(body)
    return (split[1], split[2]) if split else (body, None)


def origins(body: str) -> list[str]:
    """The cells that an expression refers to, each `example#cell`."""
    return [f"{one['example']}#{one['cell']}" for one in _REFERENCE.finditer(body)]


def masked(expression: str) -> str:
    """An expression with a sign of the same length for each character of its references."""
    return _REFERENCE.sub(lambda found: "#" * len(found[0]), expression)


def literals(body: str) -> list[str]:
    """The numbers that are typed in an expression, as they stand there; of what is told, none."""
    if told.begins(body):
        return []
    return _LITERAL.findall(_REFERENCE.sub(" ", parts(body)[0]))


def refers(body: str) -> bool:
    """Whether an expression refers to a recording."""
    return _REFERENCE.search(body) is not None


def factor(body: str, field: str) -> float | None:
    """What the one reference of an expression, to a field whose name ends so, is multiplied with; None for all else.

    Recordings are not read. With several references, sums or powers there is no such factor.
    """
    expression, _ = parts(body)
    found = list(_REFERENCE.finditer(expression))
    if len(found) != 1 or not found[0]["at"].endswith(field):
        return None
    text = _REFERENCE.sub("{}", expression)
    try:
        at_one, at_two = (
            _evaluate(ast.parse(text.format(f"({x})").strip(), mode="eval").body) for x in (1, 2)
        )
    except (SyntaxError, ValueError, ArithmeticError, KeyError, IndexError):
        return None
    return at_one if at_two == 2 * at_one else None


def replace(markdown: str, report: Callable[[Exception], None], line_offset: int = 0) -> str:
    """Markdown with every reference outside code resolved.

    An unresolved one is passed to `report` with its line and left standing.
    """

    def one(number: int, match: re.Match) -> str:
        if inside(CODE_SPAN, match):
            return match[0]
        formula = inside(MATH, match)
        plain = formula or _PLAIN.match(match.string) is not None
        try:
            return _html(match[1], plain, formula)
        except MissingOutputError as error:
            return "–" if plain else number_html(error)
        except (BadReferenceError, told.BadTellingError) as error:
            report(BadReferenceError(f"line {number + line_offset}: {error}"))
        except CudatutError as error:  # of the recording: said once, not for each of its numbers
            report(error)
        return match[0]

    return "\n".join(
        text if in_code else FIELD.sub(partial(one, number), text)
        for number, text, in_code in lines(markdown)
    )


def inside(part: re.Pattern, match: re.Match) -> bool:
    """Whether a match begins within such a part of its line."""
    return any(m.start() <= match.start() < m.end() for m in part.finditer(match.string))


def lines(markdown: str) -> Iterator[tuple[int, str, bool]]:
    """Yield (line number from 1, line, is it in a code fence or comment) for a page."""
    for number, text, kind, _ in scan(markdown):
        yield number, text, kind != "prose"


def scan(markdown: str) -> Iterator[tuple[int, str, str, str]]:
    """Yield (line number from 1, line, kind, the fence's header) for a page.

    kind: "front" matter, "prose", "open" and "close" of a code fence, "code" inside it, "comment".
    """
    fence: str | None = None
    info = ""
    comment = False
    front = _FRONT.match(markdown)
    front_lines = front[0].count("\n") if front else 0
    for number, text in enumerate(markdown.split("\n"), 1):
        if number <= front_lines:
            yield number, text, "front", ""
        elif comment:
            comment = "-->" not in text
            yield number, text, "comment", ""
        elif fence is not None:
            stripped = text.strip(" \t>")
            closes = stripped.startswith(fence) and not stripped.strip(fence[0])
            yield number, text, "close" if closes else "code", info
            if closes:
                fence = None
        else:
            match = _FENCE.match(text)
            if match and "`" not in match["info"]:
                fence, info = match["mark"], match["info"].strip()
                yield number, text, "open", info
                continue
            comment = "<!--" in _COMMENT.sub("", text)
            yield number, text, "comment" if comment else "prose", ""


def named(markdown: str) -> list[str]:
    """Names of the examples that a page refers to, in fences or in prose, in order, each once."""
    names: list[str] = []
    for _, text, kind, info in scan(markdown):
        where = info.partition(" ")[0] if kind == "code" else kind
        if where == "exercise" and "/" in text:
            names.append(text.strip(" \t>").partition(" ")[0] + "_solutions")
        elif where in ("prose", "example"):
            cited = FIELD.findall(CODE_SPAN.sub("", text)) if where == "prose" else [text]
            names += [m["example"] for body in cited for m in _REFERENCE.finditer(body)]
    return list(dict.fromkeys(names))


def _html(body: str, plain: bool, formula: bool) -> str:
    """What stands in the place of a reference. What a recording says is text there, to Markdown and to the browser."""
    if one := told.read(body):
        return one.text if plain else _span(one.css, one.title, escape(one.text))
    text = formatted(body)
    if formula:
        if not _IN_FORMULA.fullmatch(text):
            raise BadReferenceError(
                f"{{{{{body}}}}} is {text!r}: a formula takes numbers and words; write it beside the formula"
            )
        return text
    text = text.translate(_INERT)
    # Only what was measured is marked; arithmetic alone is prose.
    origin = ", ".join(origins(body))
    return text if plain or not origin else _span("ct-measured", origin, text)


def _span(cls: str, title: str, html: str) -> str:
    return f"<span class='{cls}' title='{escape(title)}'>{html}</span>"


def _power(base: float, exponent: float) -> float:
    if abs(exponent) > 64:  # a page must not hang the build
        raise ValueError(f"exponent {exponent} is over 64")
    return base**exponent


_OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.USub: operator.neg,
}


def _evaluate(node: ast.AST) -> int | float:
    """The value of arithmetic on numbers. Raises ValueError or ArithmeticError."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_evaluate(operand))
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_evaluate(left), _evaluate(right))
    raise ValueError("only references, numbers, + - * / // % ** and parentheses")


def _number(record: Callable[[str], Recording], reference: re.Match) -> str:
    """What a reference in arithmetic names, as Python writes that number."""
    found = _resolve(reference, record)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise ValueError(f"{found!r} is not a number")
    return f"({found!r})"


def _resolve(reference: re.Match, record: Callable[[str], Recording]) -> Value:
    """What a reference names in its recording: one value of one result."""
    name, at, text = f"{reference['example']}#{reference['cell']}", reference["at"], reference[0]
    results = record(reference["example"]).results(reference["cell"])
    index = reference["index"]
    values = {
        number: values_of(result) | _points_of(result)
        for number, result in enumerate(results)
        if index is None or number == int(index)
    }
    if not values:
        raise BadReferenceError(
            f"{text}: the cell shows {len(results)} result(s), counted from 0; ct.facts, ct.check, ct.bench ... show more"
        )
    fitting = [number for number, found in values.items() if at in found]
    if not fitting:
        there = dict.fromkeys(key for found in values.values() for key in found)
        near = difflib.get_close_matches(at, there, n=8, cutoff=0)
        raise BadReferenceError(
            f"{text}: there is no such value; the nearest are {', '.join(near)}"
        )
    if len(fitting) > 1:
        kinds = ", ".join(f"{name}.{number} ({results[number]['kind']})" for number in fitting)
        raise BadReferenceError(
            f"{text}: {len(fitting)} of the cell's {len(results)} results fit; say which: {kinds}"
        )
    found = values[fitting[0]][at]
    if found is None:
        raise BadReferenceError(f"{text} was not measured in this recording (null)")
    return found


def values_of(result: dict) -> dict[str, Value | None]:
    """The values of a result, by what a reference writes behind the cell: `.field`, `["row"].field`, `["row"]["column"]`."""
    named = {row["name"]: row for row in result.get("rows", ())} | result.get("metrics", {})
    rows = {f'["{name}"]': row for name, row in named.items()}
    values = {
        f"{at}.{field}": value
        for at, entry in {"": result, **rows}.items()
        for field, value in entry.items()
        if not isinstance(value, list | dict)
    }
    columns = [column["name"] for column in result.get("columns", ())]
    for at, row in rows.items():
        values |= {f'{at}["{c}"]': value for c, value in zip(columns, row.get("values", ()))}
    return values


def _points_of(result: dict) -> dict[str, Value | None]:
    """Of a chart the values of each line, by its name and x: `["copy"]["1024"]`."""
    lines = result["lines"] if result["kind"] == "series" else {}
    return {f'["{name}"]["{_plain(x)}"]': y for name, points in lines.items() for x, y in points}


def _plain(x: float) -> str:
    return f"{x:.0f}" if x == int(x) else f"{x:.4g}"
