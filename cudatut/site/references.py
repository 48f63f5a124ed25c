"""Measured numbers in prose: `{{ start/x#bench["grid-stride"].value :.0f }}` and their arithmetic.

    {{ example#cell["row"].field }}        a benchmark row, a fact, a counter of a profile
    {{ example#cell["row"]["column"] }}    a value of a table
    {{ example#cell.field }}               a check, resources, a sanitizer, a benchmark's unit or peak
    {{ example#cell.1["row"].field }}      the second result, where several of a cell's would fit
    {{ 2 * 4 * 10**7 / 1e6 :.0f }}         arithmetic, with references or without
    {{ quote "570 ms" from "CUDATutorial 03, V100" }}

A reference reads the recording of the example; one that is missing, damaged, stale or failed is an
error that names the command which mends it. Inside code nothing is replaced.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from html import escape

from cudatut.errors import CudatutError
from cudatut.site.missing import MissingOutputError, number_html

FIELD = re.compile(r"\{\{(.*?)\}\}")
_REFERENCE = re.compile(
    r"""(?P<example>[a-z0-9_]+(?:/[a-z0-9_]+)+)\#(?P<cell>[a-z0-9]+(?:-[a-z0-9]+)*)
        (?:\.(?P<index>\d+))?
        (?:\["(?P<row>[^"]*)"\])?
        (?:\["(?P<column>[^"]*)"\])?
        (?:\.(?P<field>[a-z_][a-z0-9_]*))?""",
    re.VERBOSE,
)
_QUOTE = re.compile(r'quote\s+"(?P<text>[^"]+)"\s+from\s+"(?P<source>[^"]+)"')
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FENCE = re.compile(r"^(?P<indent>[ \t>]*)(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FRONT = re.compile(r"---[ \t]*\n.*?\n---[ \t]*\n", re.DOTALL)
# Lines whose text Markdown extensions read as attributes: no HTML may come in there.
_PLAIN = re.compile(r"^\s*(!!!|\?\?\?|===|#)")
_MATH = re.compile(r"(?<![\\$])(\$\$?)(?=\S)(.+?)(?<=\S)\1")


class BadReferenceError(CudatutError):
    """A `{{ ... }}` that cannot be resolved; the message says which and why."""


Loader = Callable[[str], object]


def load(name: str) -> object:
    """The recording of an example, good and fresh; see `cudatut.recording.require_good`."""
    from cudatut.site import state

    return state.current().record(name)


def value(expression: str, loader: Loader = load) -> int | float | str | bool:
    """Value of what stands between the braces, without a format: figures use it too.

    Raises BadReferenceError, or what the recording raises when it is missing, stale, failed or damaged.
    """
    found: list[object] = []

    def resolve(match: re.Match) -> str:
        found.append(_resolve(match, loader))
        return f"(_{len(found) - 1})"

    text = _REFERENCE.sub(resolve, expression).strip()
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError) as error:
        raise BadReferenceError(
            f"{{{{ {expression.strip()} }}}} is neither a reference (example#cell.field) nor arithmetic"
        ) from error
    try:
        return _evaluate(tree.body, found, expression)
    except (ZeroDivisionError, OverflowError) as error:
        raise BadReferenceError(f"{{{{ {expression.strip()} }}}}: {error}") from error


def formatted(body: str, loader: Loader = load) -> str:
    """Text of one reference, its format applied: `start/x#bench.peak :.0f` -> "3021"."""
    expression, spec = _split(body)
    result = value(expression, loader)
    if isinstance(result, str):
        result = _in_language(result)
    if spec is None:
        return f"{result:.4g}" if isinstance(result, float) else str(result)
    if isinstance(result, float) and spec.endswith("d") and result == int(result):
        result = int(result)
    try:
        return format(result, spec)
    except (ValueError, TypeError) as error:
        raise BadReferenceError(f"{{{{ {body.strip()} }}}}: {error}") from error


def _in_language(label: str) -> str:
    """A recorded word in the page's language."""
    from cudatut.site import locale, localize

    return localize.current().chinese(label) if locale.current() == "zh" else label


def replace(
    markdown: str,
    loader: Loader = load,
    report: Callable[[Exception], None] | None = None,
    line_offset: int = 0,
) -> str:
    """Markdown with every reference outside code resolved.

    An unresolved one is passed to `report` with its line and left standing, or raised without `report`.
    """

    def line(text: str, number: int) -> str:
        if "{{" not in text:
            return text
        code = [m.span() for m in _CODE_SPAN.finditer(text)]
        bare = [m.span() for m in _MATH.finditer(text)]
        plain = _PLAIN.match(text) is not None

        def one(match: re.Match) -> str:
            start = match.start()
            if any(a <= start < b for a, b in code):
                return match[0]
            inline = plain or any(a <= start < b for a, b in bare)
            try:
                return _html(match[1], loader, inline)
            except MissingOutputError as error:
                return "–" if inline else number_html(error)
            except CudatutError as error:
                # What is wrong with a recording is said once, not for each of its numbers.
                found: CudatutError = error
                if isinstance(error, BadReferenceError):
                    found = BadReferenceError(f"line {number + line_offset}: {error}")
                if report is None:
                    raise found from error
                report(found)
                return match[0]

        return FIELD.sub(one, text)

    return "\n".join(
        text if in_code else line(text, number) for number, text, in_code in lines(markdown)
    )


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
    names: dict[str, None] = {}
    for _, text, kind, info in scan(markdown):
        if kind == "prose":
            for match in FIELD.finditer(_CODE_SPAN.sub("", text)):
                names.update(dict.fromkeys(m["example"] for m in _REFERENCE.finditer(match[1])))
        elif kind == "code" and info.split()[:1] == ["example"] and "#" in text:
            names[text.strip(" \t>").partition("#")[0]] = None
        elif kind == "code" and info.split()[:1] == ["exercise"] and "/" in text:
            names[text.strip(" \t>").partition(" ")[0] + "_solutions"] = None
    return list(names)


def _html(body: str, loader: Loader, plain: bool) -> str:
    quote = _QUOTE.fullmatch(body.strip())
    if quote:
        return quote["text"] if plain else _span("ct-quoted", quote["source"], quote["text"])
    if body.strip().startswith("quote"):
        raise BadReferenceError(f'{{{{{body}}}}}: write {{{{ quote "570 ms" from "its source" }}}}')
    text = formatted(body, loader)
    # Only what was measured is marked; arithmetic alone is prose.
    origin = ", ".join(f"{m['example']}#{m['cell']}" for m in _REFERENCE.finditer(body))
    return text if plain or not origin else _span("ct-measured", origin, text)


def _span(cls: str, title: str, text: str) -> str:
    return f"<span class='{cls}' title='{escape(title)}'>{escape(text)}</span>"


def _split(body: str) -> tuple[str, str | None]:
    """Split an optional format off: the last " :" that is not inside quotes."""
    outside = re.sub(r'"[^"]*"', lambda m: " " * len(m[0]), body)
    at = outside.rfind(" :")
    return (body, None) if at < 0 else (body[:at], body[at + 2 :].strip())


def _evaluate(node: ast.AST, found: list[object], expression: str):
    match node:
        case ast.Constant(value=bool() | int() | float() as number):
            return number
        case ast.Name(id=name) if re.fullmatch(r"_\d+", name) and int(name[1:]) < len(found):
            return found[int(name[1:])]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(_evaluate(operand, found, expression), expression)
        case ast.BinOp(op=ast.Pow(), left=left, right=right):
            base = _number(_evaluate(left, found, expression), expression)
            power = _number(_evaluate(right, found, expression), expression)
            if abs(power) > 64:  # a page must not hang the build
                raise BadReferenceError(
                    f"{{{{ {expression.strip()} }}}}: exponent {power} is over 64"
                )
            return base**power
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](
                _number(_evaluate(left, found, expression), expression),
                _number(_evaluate(right, found, expression), expression),
            )
    raise BadReferenceError(
        f"{{{{ {expression.strip()} }}}}: only references, numbers, + - * / // % ** and parentheses"
    )


def _number(operand: object, expression: str) -> int | float:
    if isinstance(operand, bool) or not isinstance(operand, int | float):
        raise BadReferenceError(f"{{{{ {expression.strip()} }}}}: {operand!r} is not a number")
    return operand


def _resolve(match: re.Match, loader: Loader) -> object:
    name, cell, text = match["example"], match["cell"], match[0]
    results = loader(name).results(cell)
    if not results:
        raise BadReferenceError(
            f"{text}: the cell shows no result; use ct.facts, ct.check, ct.bench ..."
        )
    if match["index"] is not None:
        index = int(match["index"])
        if index >= len(results):
            raise BadReferenceError(
                f"{text}: the cell shows only {len(results)} result(s), counted from 0"
            )
        return _value(results[index], match, text)
    if len(results) == 1:
        return _value(results[0], match, text)
    fitting, reasons = [], {}
    for result in results:
        try:
            fitting.append(_value(result, match, text))
        except BadReferenceError as error:
            reasons[str(error).removeprefix(f"{text}: ")] = None
    if not fitting:
        raise BadReferenceError(f"{text}: none of the cell's results fits: {'; '.join(reasons)}")
    if len(fitting) > 1:
        kinds = ", ".join(f"{name}#{cell}.{i} ({r.get('kind')})" for i, r in enumerate(results))
        raise BadReferenceError(
            f"{text}: {len(fitting)} of the cell's {len(results)} results fit; say which: {kinds}"
        )
    return fitting[0]


def _value(result: dict, match: re.Match, text: str) -> object:
    row, column, field = match["row"], match["column"], match["field"]
    if result.get("kind") == "table" and (row is not None or field is None):
        return _table_value(result, row, column, field, text)
    if column is not None:
        raise BadReferenceError(
            f'{text}: a {result.get("kind")} has no columns; leave ["{column}"] away'
        )
    return _field(result, row, field, text)


def _table_value(
    table: dict, row: str | None, column: str | None, field: str | None, text: str
) -> object:
    columns = [entry["name"] for entry in table["columns"]]
    rows = {entry["name"]: entry["values"] for entry in table["rows"]}
    if row is None:
        raise BadReferenceError(f'{text}: which value of the table? Write ["row"]["column"]')
    if row not in rows:
        raise BadReferenceError(f'{text}: no row "{row}"; there are: {", ".join(rows)}')
    if column is None or column not in columns:
        said = "which column? There" if column is None else f'no column "{column}"; there'
        raise BadReferenceError(f"{text}: {said} are: {', '.join(columns)}")
    if field is not None:
        raise BadReferenceError(f"{text}: a value of a table has no fields; leave .{field} away")
    found = rows[row][columns.index(column)]
    if found is None:
        raise BadReferenceError(f'{text}: the table has no value at ["{row}"]["{column}"]')
    return found


def _field(result: dict, row: str | None, field: str | None, text: str) -> object:
    if row is None:
        entry = result
    elif result.get("kind") in ("benchmark", "facts"):
        rows = {entry["name"]: entry for entry in result["rows"]}
        if row not in rows:
            raise BadReferenceError(f'{text}: no row "{row}"; there are: {", ".join(rows)}')
        entry = rows[row]
    elif result.get("kind") == "profile":
        if row not in result["metrics"]:
            raise BadReferenceError(
                f'{text}: no counter "{row}"; there are: {", ".join(result["metrics"])}'
            )
        entry = result["metrics"][row]
    else:
        raise BadReferenceError(f'{text}: a {result.get("kind")} has no rows; leave ["{row}"] away')
    fields = [key for key, item in entry.items() if not isinstance(item, list | dict | None)]
    if field is None or field not in entry:
        said = "which field?" if field is None else f"no field '{field}';"
        raise BadReferenceError(f"{text}: {said} There are: {', '.join(fields)}")
    found = entry[field]
    if isinstance(found, list | dict):
        raise BadReferenceError(f'{text}: {field} has several entries; choose one as ["name"]')
    if found is None:
        raise BadReferenceError(f"{text}: {field} was not measured in this recording (null)")
    return found
