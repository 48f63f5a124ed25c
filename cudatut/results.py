"""Results that travel as data: text for a terminal, HTML for a notebook, JSON (schema v1) for the site.

Each kind is declared once, as a dataclass: its fields are the schema, and `problems` is what makes one impossible. What
records makes them, what builds the site reads them; nothing else is shared between the two. Every time is in microseconds.
"""

import html
import json
import math
import sys
import types
import typing
from collections.abc import Iterator
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

from cudatut import tool

MIME = "application/vnd.cudatut.v1+json"
Label = Annotated[str, "label"]  # English words, which a page shows in its language
Unit = Annotated[str, "unit"]  # likewise, behind a value
KINDS: dict[str, type["Result"]] = {}


@dataclass
class Result:
    """Base class: a subclass gives `kind`, `head()` and `body()`; the three representations follow from them."""

    kind: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        KINDS[cls.kind] = cls

    def json(self) -> dict[str, Any]:
        """The result in schema v1: its fields by name, without those that are empty and may be left out."""
        return {"kind": self.kind, **asdict(self)}

    def heading(self) -> str:
        return self.kind

    def head(self) -> list[str]:
        """The heads of the columns of its table."""
        raise NotImplementedError

    def body(self) -> list[list[str]]:
        """The rows of its table."""
        raise NotImplementedError

    def problems(self) -> Iterator[str]:
        """What no run can have measured, or must not be shown."""
        return iter(())

    def text(self) -> str:
        """A heading and an aligned table, first column left, the others right."""
        table = [self.head(), *self.body()]
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        lines = (
            "  ".join(
                c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))
            )
            for row in table
        )
        return "\n".join([self.heading(), *(f"  {line.rstrip()}" for line in lines)])

    def html(self) -> str:
        cells = "".join(f"<th>{html.escape(c)}</th>" for c in self.head())
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>"
            for row in self.body()
        )
        heading = html.escape(self.heading())
        return f"<table><caption>{heading}</caption><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, Any]:
        return {"text/plain": self.text(), "text/html": self.html(), MIME: self.json()}

    def _ipython_display_(self) -> None:
        # A result is shown by the function that made it; being also the last expression of a cell shows it no second time.
        if not getattr(self, "_shown", False):
            show(self)

    def __repr__(self) -> str:
        return self.text()


@dataclass(repr=False)
class Check(Result):
    """Outcome of a comparison: `n` elements, largest absolute and relative error, tolerances."""

    kind: ClassVar[str] = "check"
    name: Label | None
    passed: bool
    n: int
    max_abs_err: float
    max_rel_err: float
    atol: float
    rtol: float

    def _verdict(self) -> str:
        return "passed" if self.passed else "FAILED"

    def text(self) -> str:
        return (
            f"check {self.name}: {self._verdict()} ({self.n} elements, max abs err {self.max_abs_err:.3g}, "
            f"max rel err {self.max_rel_err:.3g}, atol {self.atol:.3g}, rtol {self.rtol:.3g})"
        )

    def head(self) -> list[str]:
        return ["check", "result", "elements", "max abs err", "max rel err"]

    def body(self) -> list[list[str]]:
        errors = f"{self.max_abs_err:.3g}", f"{self.max_rel_err:.3g}"
        return [[str(self.name), self._verdict(), str(self.n), *errors]]

    def problems(self) -> Iterator[str]:
        if not self.passed:
            yield f"the check '{self.name}' failed"


@dataclass
class Row:
    """One contestant of a benchmark; times in microseconds, `value` in the benchmark's unit."""

    name: Label
    median_us: float
    p20_us: float
    p80_us: float
    value: float | None
    of_peak: float | None
    vendor: bool
    ratio_to_vendor: float | None
    bytes: int | None = None
    flops: int | None = None


@dataclass(repr=False)
class Benchmark(Result):
    """Medians of interleaved rounds. `unit` is 'GB/s', 'TFLOP/s' or 'us'; `peak` is this GPU's measured limit in that unit.

    missing: name of a rival that could not run -> the reason.
    """

    kind: ClassVar[str] = "benchmark"
    name: Label | None
    unit: Unit
    peak: float | None
    rows: list[Row]
    rounds: int = 0
    missing: dict[str, str] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        data = super().json()
        if not self.missing:
            del data["missing"]
        return data

    def text(self) -> str:
        absent = (f"  {name} *  no row: {why}" for name, why in self.missing.items())
        return "\n".join([super().text(), *absent])

    def html(self) -> str:
        notes = (f"{name}: no row. {reason}" for name, reason in self.missing.items())
        return super().html() + "".join(f"<p>{html.escape(note)}</p>" for note in notes)

    def __getitem__(self, name: str) -> Row:
        for row in self.rows:
            if row.name == name:
                return row
        if name in self.missing:
            raise KeyError(f"no row {name!r} in benchmark {self.name!r}: {self.missing[name]}")
        raise KeyError(
            f"no row {name!r} in benchmark {self.name!r}: it has {[row.name for row in self.rows]}"
        )

    def heading(self) -> str:
        peak = f", measured limit {self.peak:.4g} {self.unit}" if self.peak else ""
        return f"benchmark {self.name} (median of {self.rounds} interleaved rounds{peak})"

    def head(self) -> list[str]:
        unit = self.unit if self.unit != "us" else ""
        return ["", "median us", "p20", "p80", unit, "of limit", "vs vendor"]

    def body(self) -> list[list[str]]:
        return [
            [
                row.name + (" *" if row.vendor else ""),
                f"{row.median_us:.2f}",
                f"{row.p20_us:.2f}",
                f"{row.p80_us:.2f}",
                "" if row.value is None else f"{row.value:.4g}",
                "" if row.of_peak is None else f"{row.of_peak:.1%}",
                "" if row.ratio_to_vendor is None else f"{row.ratio_to_vendor:.3f}x",
            ]
            for row in self.rows
        ]

    def problems(self) -> Iterator[str]:
        if not self.rows:
            yield f"the benchmark '{self.name}' has no rows"
        for row in self.rows:
            for what in ("median_us", "p20_us", "p80_us", "value"):
                number = getattr(row, what)
                if number is not None and not number > 0:
                    yield f"the benchmark '{self.name}' has {what} = {number} for '{row.name}'"
        if self.peak is not None and not self.peak > 0:
            yield f"the benchmark '{self.name}' has peak = {self.peak}"


@dataclass(repr=False)
class Resources(Result):
    """What one thread and one block of a kernel need, as the driver reports it.

    registers: per thread. shared_bytes: static plus dynamic, per block. spill_bytes: local memory per thread, that is
    register spills and arrays indexed at run time. occupancy: resident warps over the SM's maximum, 0 to 1.
    """

    kind: ClassVar[str] = "resources"
    kernel: str
    registers: int
    shared_bytes: int
    spill_bytes: int
    occupancy: float
    block: int = 0
    blocks_per_sm: int = 0

    def head(self) -> list[str]:
        return ["kernel", "block", "registers", "shared B", "local B", "blocks/SM", "occupancy"]

    def body(self) -> list[list[str]]:
        needs = self.registers, self.shared_bytes, self.spill_bytes, self.blocks_per_sm
        return [[self.kernel, *map(str, (self.block, *needs)), f"{self.occupancy:.0%}"]]


@dataclass
class Metric:
    value: float | str
    unit: Unit | None


@dataclass(repr=False)
class Profile(Result):
    """Counters of one launch, read by Nsight Compute: metrics[name] = {"value", "unit"}."""

    kind: ClassVar[str] = "profile"
    kernel: str
    metrics: dict[str, Metric]

    def __post_init__(self) -> None:
        self.metrics = {
            name: m if isinstance(m, Metric) else Metric(**m) for name, m in self.metrics.items()
        }

    def __getitem__(self, name: str) -> Any:
        return self.metrics[name].value

    def heading(self) -> str:
        return f"ncu: {self.kernel}"

    def head(self) -> list[str]:
        return ["metric", "value", "unit"]

    def body(self) -> list[list[str]]:
        return [[name, format_value(m.value), m.unit or ""] for name, m in self.metrics.items()]


@dataclass(repr=False)
class Sanitizer(Result):
    """Errors that one tool of compute-sanitizer found. `log` is its report and does not travel with the data."""

    kind: ClassVar[str] = "sanitizer"
    tool: str
    errors: int
    log: str = field(default="", repr=False)

    def json(self) -> dict[str, Any]:
        return {"kind": self.kind, "tool": self.tool, "errors": self.errors}

    def head(self) -> list[str]:
        return ["sanitizer", "errors"]

    def body(self) -> list[list[str]]:
        return [[self.tool, str(self.errors)]]


@dataclass
class Fact:
    name: Label
    value: bool | float | Label
    unit: Unit | None


@dataclass(repr=False)
class Facts(Result):
    """Named values, each with an optional unit."""

    kind: ClassVar[str] = "facts"
    title: Label | None
    rows: list[Fact]

    def __getitem__(self, name: str) -> Any:
        return next(row.value for row in self.rows if row.name == name)

    def heading(self) -> str:
        return self.title or ""

    def head(self) -> list[str]:
        return ["name", "value", "unit"]

    def body(self) -> list[list[str]]:
        return [[row.name, format_value(row.value), row.unit or ""] for row in self.rows]


VERDICTS = ("confirmed", "refuted", "depends", "open")
FORMS = ("said", "printed", "code")
GAIN, LEAD = 0.25, 0.02  # the one rule of tolerance: see `verdict`
RULES = ("equal", "gain", "above", "below")
Value = bool | float | Label
Both = dict[str, str]  # "en" and "zh"


def verdict(rule: str, expected: Any, measured: Any) -> str:
    """What a measurement says of a claim, 'confirmed', 'refuted' or 'open' (too close to call).

    'equal': counts and words have to be the same. 'gain': expected and measured are ratios of times; measured - 1 has to lie
    within 25 % of expected - 1. 'above', 'below': measured has to lie at least 2 % on that side of expected; at least 2 %
    on the other side refutes it. Raises ValueError where a rule for numbers is given something else.
    """
    if rule == "equal":
        return "confirmed" if expected == measured else "refuted"
    if not all(isinstance(value, (int, float)) for value in (expected, measured)):
        raise ValueError(f"the rule '{rule}' compares numbers, not {short((expected, measured))}")
    if rule == "gain":
        near = abs(measured - expected) <= GAIN * abs(expected - 1)
        return "confirmed" if near else "refuted"
    lead = (measured - expected) * (1 if rule == "above" else -1)
    if abs(lead) < LEAD * abs(expected) or lead == 0:
        return "open"
    return "confirmed" if lead > 0 else "refuted"


@dataclass
class Control:
    """What the same measurement gives where the answer is known."""

    what: Both
    value: Value | list[Value]


@dataclass(repr=False)
class Claim(Result):
    """What a source states and where, what comes out if it is right, what was measured, its control, and the verdict.

    form: one of FORMS. rule: one of RULES. depends: the condition under which it holds.
    """

    kind: ClassVar[str] = "claim"
    id: str
    source: str
    place: Both
    form: str
    statement: Both
    expected: Value | list[Value]
    measured: Value | list[Value]
    unit: Unit | None
    rule: str
    control: Control
    verdict: str
    depends: Both | None = None

    def heading(self) -> str:
        return f"claim ({self.source}): {self.statement['en']}"

    def head(self) -> list[str]:
        return ["", "value", "unit"]

    def body(self) -> list[list[str]]:
        what = self.control.what["en"]
        bound = {"above": "expected, more than", "below": "expected, less than"}
        values = [(bound.get(self.rule, "expected"), self.expected), ("measured", self.measured)]
        values.append((f"control: {what}", self.control.value))
        rows = [[name, format_value(value), self.unit or ""] for name, value in values]
        condition = f": {self.depends['en']}" if self.depends else ""
        return [*rows, ["verdict", self.verdict + condition, ""]]

    def problems(self) -> Iterator[str]:
        for what, value, known in (
            ("verdict", self.verdict, VERDICTS),
            ("form", self.form, FORMS),
            ("rule", self.rule, RULES),
        ):
            if value not in known:
                yield f"the claim '{self.id}' has the {what} {short(value)}, none of {', '.join(known)}"
        found = "depends" if self.depends else verdict(self.rule, self.expected, self.measured)
        if self.rule in RULES and self.verdict in VERDICTS and self.verdict != found:
            yield f"the claim '{self.id}' says {self.verdict}, and by its rule it is {found}"
        for both in (self.place, self.statement, self.control.what, self.depends or self.place):
            if set(both) != {"en", "zh"}:
                yield f"the claim '{self.id}' needs 'en' and 'zh', and has {sorted(both)}"


@dataclass
class Column:
    name: Label
    unit: Label | None


@dataclass
class TableRow:
    name: Label
    values: list[Value | None]


@dataclass(repr=False)
class Table(Result):
    """Values in rows and columns, None where there is none."""

    kind: ClassVar[str] = "table"
    title: Label
    corner: Label
    columns: list[Column]
    rows: list[TableRow]

    def __getitem__(self, name: str) -> dict[str, Any]:
        """A row's values by column. Raises KeyError naming the rows that there are."""
        for row in self.rows:
            if row.name == name:
                return dict(zip((column.name for column in self.columns), row.values))
        raise KeyError(
            f"no row {name!r} in table {self.title!r}: it has {[row.name for row in self.rows]}"
        )

    def heading(self) -> str:
        return self.title

    def head(self) -> list[str]:
        # A unit that is the column's name already is not said twice.
        named = (
            c.name if c.unit in (None, "", c.name) else f"{c.name} ({c.unit})" for c in self.columns
        )
        return [self.corner, *named]

    def body(self) -> list[list[str]]:
        return [
            [row.name, *("" if v is None else format_value(v) for v in row.values)]
            for row in self.rows
        ]

    def problems(self) -> Iterator[str]:
        if not self.columns or not self.rows:
            yield f"table {self.title!r}: it has no {'rows' if self.columns else 'columns'}"
        for row in self.rows:
            if len(row.values) != len(self.columns):
                yield f"table {self.title!r}, row {row.name!r}: {len(row.values)} values for {len(self.columns)} columns"


@dataclass
class Axis:
    name: Label
    unit: Label


FOREGROUND = 6  # lines that a chart shows in color; more cannot be told apart


@dataclass(repr=False)
class Series(Result):
    """Lines over a common x: lines[name] = [(x, y), ...]; limit in y's unit.

    foreground: names of the lines that stand out, at most six; None: the first six.
    """

    kind: ClassVar[str] = "series"
    title: Label
    x: Axis
    y: Axis
    lines: dict[Label, list[tuple[float, float]]]
    limit: float | None
    foreground: list[Label] | None = None

    def heading(self) -> str:
        limit = f", limit {format_value(self.limit)} {self.y.unit}" if self.limit else ""
        return f"{self.title} ({self.y.unit} over {self.x.name}{limit})"

    def head(self) -> list[str]:
        return [self.x.name, *self.lines]

    def body(self) -> list[list[str]]:
        table = {name: dict(map(tuple, points)) for name, points in self.lines.items()}
        positions = sorted({x for points in table.values() for x in points})
        return [
            [format_value(x), *(format_value(p[x]) if x in p else "" for p in table.values())]
            for x in positions
        ]

    def problems(self) -> Iterator[str]:
        for name, line in self.lines.items():
            if not line:
                yield f"series {self.title!r}: the line {name!r} is empty"
        front = self.foreground
        if front is not None and not (
            1 <= len(front) <= FOREGROUND and set(front) <= set(self.lines)
        ):
            yield f"series {self.title!r}: foreground is {short(front)}; name 1 to {FOREGROUND} of the lines {list(self.lines)}"


# --- reading ------------------------------------------------------------------------------------


def read(data: Any) -> Result:
    """A result from its JSON. Raises ValueError that names the kind, the field and what was found."""
    if not isinstance(data, dict) or "kind" not in data:
        raise ValueError(f"a result is an object with a kind, not {short(data)}")
    kind = KINDS.get(data["kind"]) if isinstance(data["kind"], str) else None
    if kind is None:
        raise ValueError(f"schema v1 has no kind {short(data['kind'])}; it has {', '.join(KINDS)}")
    named = data.get("name") or data.get("title") or data.get("kernel") or data.get("id") or ""
    where = f"{data['kind']} {named}".strip()
    return _object(kind, {k: v for k, v in data.items() if k != "kind"}, where)


def validate(data: Any) -> None:
    """Raises ValueError for what is no result of schema v1, or one that cannot be; see `read` and `Result.problems`."""
    for problem in read(data).problems():
        raise ValueError(problem)


@cache
def _annotations(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _object(cls: type, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise ValueError(f"{where}: expected an object, found {short(data)}")
    values = {}
    for one in fields(cls):
        if one.name in data:
            type_ = _annotations(cls)[one.name]
            inside = f"{where}, {one.name}" if is_dataclass(type_) else where
            values[one.name] = _value(type_, data[one.name], inside, one.name)
        elif one.default is MISSING and one.default_factory is MISSING:
            raise ValueError(f"{where}: field {one.name!r} is missing")
    return cls(**values)


def _value(type_: Any, value: Any, where: str, name: str) -> Any:
    """`value`, read as an annotation says. True is no number, NaN and infinity are none either."""
    origin, inner = typing.get_origin(type_), typing.get_args(type_)
    if origin in (types.UnionType, typing.Union):
        for choice in inner:
            try:
                return _value(choice, value, where, name)
            except ValueError:
                continue
    elif is_dataclass(type_):
        return _object(type_, value, where)
    elif origin is list and isinstance(value, (list, tuple)):
        # Rows are called by their names, other values by their numbers.
        called = [one.get("name", i) if isinstance(one, dict) else i for i, one in enumerate(value)]
        return [
            _value(inner[0], one, f"{where}, {name} {at!r}", name) for at, one in zip(called, value)
        ]
    elif origin is tuple and isinstance(value, (list, tuple)) and len(value) == len(inner):
        return tuple(_value(one, part, where, name) for one, part in zip(inner, value))
    elif origin is dict and isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return {
            k: _value(inner[1], one, f"{where}, {name} {k!r}", name) for k, one in value.items()
        }
    elif type_ is types.NoneType and value is None:
        return None
    elif (type_ in (bool, str) and isinstance(value, type_)) or _is_number(value, type_):
        return value
    raise ValueError(f"{where}: field {name!r} is {'null' if value is None else short(value)}")


def _is_number(value: Any, type_: Any) -> bool:
    if type_ not in (int, float) or isinstance(value, bool) or not isinstance(value, (int, type_)):
        return False
    return math.isfinite(value)


def short(value: Any) -> str:
    """A value as an error message shows it, cut at 60 characters."""
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


# --- making -------------------------------------------------------------------------------------


def format_value(value: Any) -> str:
    """A value as a reader would write it: integers whole, floats with four significant digits, lists with commas."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(format_value, value))
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.4g}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{int(value):,}" if math.isfinite(value) else str(value)
    return str(value)


def plain(value: Any, where: str) -> bool | int | float | str:
    """A NumPy scalar as Python's own; raises TypeError naming `where` for what is no number, string or bool."""
    if hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, (bool, int, float, str)):
        raise TypeError(f"{where} is a {type(value).__name__}; give a number, string or bool")
    return value


def _shown(result: Result) -> Any:
    for problem in result.problems():
        raise ValueError(problem)
    show(result)
    return result


def facts(title: str, values: dict[str, Any]) -> Facts:
    """Show a small table of named values, each `value` or `(value, unit)`; prose refers to them by name.

    NumPy scalars become Python ones. Raises TypeError for a value that is no number, string or bool.
    """
    rows = []
    for name, entry in values.items():
        value, unit = entry if isinstance(entry, tuple) else (entry, None)
        rows.append(Fact(name, plain(value, f"facts({title!r}): {name!r}"), unit))
    return _shown(Facts(title, rows))


def table(
    title: str,
    rows: dict[Any, dict[str, Any]],
    corner: str = "",
    units: dict[str, str] | None = None,
) -> Table:
    """Show a table of rows and columns; prose refers to a value by both, `{{ example#cell["row"]["column"] }}`.

    rows: row name -> {column name: value}; a value is a number, string, bool, or None where there is none, as for a column
    that only other rows have. Columns stand in the order in which rows first name them. corner: the head above the rows'
    names. units: column name -> unit, shown in the column's head.

    Raises ValueError for a table without values, two rows of one name, and a unit of no column; TypeError for another type.
    """
    units = units or {}
    columns = list(dict.fromkeys(str(column) for row in rows.values() for column in row))
    names = [str(name) for name in rows]
    if not columns:
        raise ValueError(f"table({title!r}): it has no rows with values")
    if len(set(names)) < len(names):
        raise ValueError(f"table({title!r}): two of its rows have one name: {names}")
    if unknown := [name for name in units if name not in columns]:
        raise ValueError(f"table({title!r}): units has {unknown}, and its columns are {columns}")
    filled = []
    for name, row in zip(names, rows.values()):
        found = {str(column): value for column, value in row.items()}
        values = [
            None
            if found.get(column) is None
            else plain(found[column], f"table({title!r}): {name!r}, {column!r}")
            for column in columns
        ]
        filled.append(TableRow(name, values))
    heads = [Column(column, units.get(column)) for column in columns]
    return _shown(Table(title, corner, heads, filled))


def claim(
    id: str,
    source: str,
    place: Both,
    form: str,
    statement: Both,
    *,
    expected: Any,
    measured: Any,
    rule: str,
    control: tuple[Both, Any],
    unit: str | None = None,
    depends: Both | None = None,
) -> Claim:
    """Settle a claim of a source, and show it; the page 'Claims we ran' lists all that were recorded.

    id: unique in the book, a-z, 0-9, -. source: such as 'CUDATutorial 09/02'. place: where in it, in 'en' and 'zh'.
    form: 'said' (a sentence), 'printed' (a number) or 'code'. statement: what it says, in our words and at its strength.
    expected: what comes out if it is right; measured: what the cell found; both in `unit`, numbers, words, or tuples of
    them. rule: how they are compared (`verdict`). control: what the same measurement gives where the answer is known,
    and that value. depends: the condition that decides; then the verdict is 'depends'.
    Raises ValueError for another form or rule, or a missing language.
    """

    def own(value: Any) -> Any:
        where = f"claim {id!r}: a value"
        many = isinstance(value, (list, tuple))
        return [plain(one, where) for one in value] if many else plain(value, where)

    if rule not in RULES:
        raise ValueError(f"claim {id!r}: rule {rule!r} is none of {', '.join(RULES)}")
    expected, measured = own(expected), own(measured)
    found = "depends" if depends else verdict(rule, expected, measured)
    known = Control(dict(control[0]), own(control[1]))
    values = (expected, measured, unit, rule, known, found, depends)
    return _shown(Claim(id, source, dict(place), form, dict(statement), *values))


def series(
    title: str,
    x: tuple[str, str],
    y: tuple[str, str],
    lines: dict[str, Any],
    limit: float | None = None,
    foreground: list[str] | None = None,
) -> Series:
    """Show lines over a common x, as a chart on the site and as a table elsewhere.

    x, y: (name, unit). lines: name -> sequence of (x, y). limit: drawn as a horizontal line, in y's unit.
    foreground: names of the lines that the chart shows in color, at most six (default: the first six); the others are grey.
    Raises ValueError for an empty or non-finite line, and for a foreground that names no line or too many.
    """
    points = {
        name: [(plain(a, f"series({title!r})"), plain(b, f"series({title!r})")) for a, b in line]
        for name, line in lines.items()
    }
    for name, line in points.items():
        if not all(math.isfinite(a) and math.isfinite(b) for a, b in line):
            raise ValueError(
                f"series({title!r}): the line {name!r} holds a value that is not finite"
            )
    # Said by name, since a recording sorts its keys.
    front = list(lines)[:FOREGROUND] if foreground is None else list(foreground)
    top = None if limit is None else float(limit)
    return _shown(Series(title, Axis(*x), Axis(*y), points, top, front))


def show(result: Any) -> None:
    """Show a result: as a MIME bundle in a notebook, as text elsewhere. While a tool runs the process, nothing."""
    if isinstance(result, Result):
        result._shown = True
        if tool.running():
            return
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or getattr(shell, "kernel", None) is None:
        print(result.text() if isinstance(result, Result) else result, flush=True)
        return
    from IPython.display import display

    if isinstance(result, Result):
        # Fails at the cell that made it, not when it is written.
        json.dumps(result.json(), allow_nan=False)
        display(result._repr_mimebundle_(), raw=True)
    else:
        display(result)
