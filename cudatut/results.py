"""Results that travel as data: text for a terminal, HTML for a notebook, JSON (schema v1) for the site.

Every time is in microseconds. The schema is described in docs/en/contributing.md.
"""

import html
import json
import math
import sys
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from cudatut import tool

MIME = "application/vnd.cudatut.v1+json"


@dataclass
class Result:
    """Base class: a subclass gives `kind`, `columns()` and `rows()`; the three representations follow from them."""

    kind: ClassVar[str] = ""

    def json(self) -> dict[str, Any]:
        """The result in schema v1."""
        return {"kind": self.kind, **asdict(self)}

    def heading(self) -> str:
        return self.kind

    def columns(self) -> list[str]:
        raise NotImplementedError

    def rows(self) -> list[list[str]]:
        raise NotImplementedError

    def text(self) -> str:
        """A heading and an aligned table, first column left, the others right."""
        table = [self.columns(), *self.rows()]
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        lines = [
            "  ".join(
                c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))
            )
            for row in table
        ]
        return "\n".join([self.heading(), *(f"  {line.rstrip()}" for line in lines)])

    def html(self) -> str:
        cells = "".join(f"<th>{html.escape(c)}</th>" for c in self.columns())
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>"
            for row in self.rows()
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
    name: str
    passed: bool
    n: int
    max_abs_err: float
    max_rel_err: float
    atol: float
    rtol: float

    def text(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        return (
            f"check {self.name}: {verdict} ({self.n} elements, max abs err {self.max_abs_err:.3g}, "
            f"max rel err {self.max_rel_err:.3g}, atol {self.atol:.3g}, rtol {self.rtol:.3g})"
        )

    def columns(self) -> list[str]:
        return ["check", "result", "elements", "max abs err", "max rel err"]

    def rows(self) -> list[list[str]]:
        verdict = "passed" if self.passed else "FAILED"
        return [
            [self.name, verdict, str(self.n), f"{self.max_abs_err:.3g}", f"{self.max_rel_err:.3g}"]
        ]


@dataclass
class Row:
    """One contestant of a benchmark; times in microseconds, `value` in the benchmark's unit."""

    name: str
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
    name: str
    unit: str
    peak: float | None
    rows_: list[Row]
    rounds: int = 0
    missing: dict[str, str] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        data = {"kind": self.kind, **asdict(self)}
        data["rows"] = data.pop("rows_")
        if not self.missing:
            del data["missing"]
        return data

    def text(self) -> str:
        return "\n".join(
            [super().text(), *(f"  {name} *  no row: {why}" for name, why in self.missing.items())]
        )

    def html(self) -> str:
        notes = (f"{name}: no row. {reason}" for name, reason in self.missing.items())
        return super().html() + "".join(f"<p>{html.escape(note)}</p>" for note in notes)

    def __getitem__(self, name: str) -> Row:
        for row in self.rows_:
            if row.name == name:
                return row
        if name in self.missing:
            raise KeyError(f"no row {name!r} in benchmark {self.name!r}: {self.missing[name]}")
        raise KeyError(
            f"no row {name!r} in benchmark {self.name!r}: it has {[row.name for row in self.rows_]}"
        )

    def heading(self) -> str:
        peak = f", measured limit {self.peak:.4g} {self.unit}" if self.peak else ""
        return f"benchmark {self.name} (median of {self.rounds} interleaved rounds{peak})"

    def columns(self) -> list[str]:
        return [
            "",
            "median us",
            "p20",
            "p80",
            self.unit if self.unit != "us" else "",
            "of limit",
            "vs vendor",
        ]

    def rows(self) -> list[list[str]]:
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
            for row in self.rows_
        ]


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

    def columns(self) -> list[str]:
        return ["kernel", "block", "registers", "shared B", "local B", "blocks/SM", "occupancy"]

    def rows(self) -> list[list[str]]:
        numbers = [
            self.block,
            self.registers,
            self.shared_bytes,
            self.spill_bytes,
            self.blocks_per_sm,
        ]
        return [[self.kernel, *map(str, numbers), f"{self.occupancy:.0%}"]]


@dataclass(repr=False)
class Profile(Result):
    """Counters of one launch, read by Nsight Compute: metrics[name] = {"value", "unit"}."""

    kind: ClassVar[str] = "profile"
    kernel: str
    metrics: dict[str, dict[str, Any]]

    def heading(self) -> str:
        return f"ncu: {self.kernel}"

    def columns(self) -> list[str]:
        return ["metric", "value", "unit"]

    def rows(self) -> list[list[str]]:
        return [[name, format_value(m["value"]), m["unit"]] for name, m in self.metrics.items()]


@dataclass(repr=False)
class Sanitizer(Result):
    """Errors that one tool of compute-sanitizer found. `log` is its report and does not travel with the data."""

    kind: ClassVar[str] = "sanitizer"
    tool: str
    errors: int
    log: str = field(default="", repr=False)

    def json(self) -> dict[str, Any]:
        return {"kind": self.kind, "tool": self.tool, "errors": self.errors}

    def columns(self) -> list[str]:
        return ["sanitizer", "errors"]

    def rows(self) -> list[list[str]]:
        return [[self.tool, str(self.errors)]]


@dataclass(repr=False)
class Facts(Result):
    """Named values, each with an optional unit: rows of {"name", "value", "unit"}."""

    kind: ClassVar[str] = "facts"
    title: str
    rows_: list[dict[str, Any]]

    def json(self) -> dict[str, Any]:
        return {"kind": self.kind, "title": self.title, "rows": self.rows_}

    def __getitem__(self, name: str) -> Any:
        return next(row["value"] for row in self.rows_ if row["name"] == name)

    def heading(self) -> str:
        return self.title

    def columns(self) -> list[str]:
        return ["name", "value", "unit"]

    def rows(self) -> list[list[str]]:
        return [[row["name"], format_value(row["value"]), row["unit"] or ""] for row in self.rows_]


VERDICTS = ("confirmed", "refuted", "depends")


@dataclass(repr=False)
class Claim(Result):
    """What a source states, what follows from it, what was measured, and the verdict (one of VERDICTS)."""

    kind: ClassVar[str] = "claim"
    id: str
    source: str
    statement: dict[str, str]
    predicted: int | float | str
    measured: int | float | str
    unit: str | None
    verdict: str

    def heading(self) -> str:
        return f"claim ({self.source}): {self.statement['en']}"

    def columns(self) -> list[str]:
        return ["", "value", "unit"]

    def rows(self) -> list[list[str]]:
        values = [("predicted", self.predicted), ("measured", self.measured)]
        return [
            *([what, format_value(value), self.unit or ""] for what, value in values),
            ["verdict", self.verdict, ""],
        ]


@dataclass(repr=False)
class Table(Result):
    """Values in rows and columns, None where there is none: columns of {"name", "unit"}, rows of {"name", "values"}."""

    kind: ClassVar[str] = "table"
    title: str
    corner: str
    columns_: list[dict[str, Any]]
    rows_: list[dict[str, Any]]

    def json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "title": self.title,
            "corner": self.corner,
            "columns": self.columns_,
            "rows": self.rows_,
        }

    def __getitem__(self, name: str) -> dict[str, Any]:
        """A row's values by column. Raises KeyError naming the rows that there are."""
        names = [column["name"] for column in self.columns_]
        for row in self.rows_:
            if row["name"] == name:
                return dict(zip(names, row["values"]))
        raise KeyError(
            f"no row {name!r} in table {self.title!r}: it has {[row['name'] for row in self.rows_]}"
        )

    def heading(self) -> str:
        return self.title

    def columns(self) -> list[str]:
        # A unit that is the column's name already is not said twice.
        return [
            self.corner,
            *(
                c["name"] if c["unit"] in (None, "", c["name"]) else f"{c['name']} ({c['unit']})"
                for c in self.columns_
            ),
        ]

    def rows(self) -> list[list[str]]:
        return [
            [row["name"], *("" if v is None else format_value(v) for v in row["values"])]
            for row in self.rows_
        ]


FOREGROUND = 6  # lines that a chart shows in color; more cannot be told apart


@dataclass(repr=False)
class Series(Result):
    """Lines over a common x: lines[name] = [(x, y), ...]; x and y are each {"name", "unit"}; limit in y's unit.

    foreground: names of the lines that stand out, at most six; None: the first six.
    """

    kind: ClassVar[str] = "series"
    title: str
    x: dict[str, str]
    y: dict[str, str]
    lines: dict[str, list[tuple[float, float]]]
    limit: float | None = None
    foreground: list[str] | None = None

    def heading(self) -> str:
        limit = f", limit {format_value(self.limit)} {self.y['unit']}" if self.limit else ""
        return f"{self.title} ({self.y['unit']} over {self.x['name']}{limit})"

    def columns(self) -> list[str]:
        return [self.x["name"], *self.lines]

    def rows(self) -> list[list[str]]:
        table = {name: dict(points) for name, points in self.lines.items()}
        positions = sorted({x for points in table.values() for x in points})
        cells = [
            [format_value(points[x]) if x in points else "" for points in table.values()]
            for x in positions
        ]
        return [[format_value(x), *row] for x, row in zip(positions, cells)]


def format_value(value: Any) -> str:
    """A value as a reader would write it: integers whole, floats with four significant digits."""
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


def facts(title: str, values: dict[str, Any]) -> Facts:
    """Show a small table of named values, each `value` or `(value, unit)`; prose refers to them by name.

    NumPy scalars become Python ones. Raises TypeError for a value that is no number, string or bool.
    """
    rows = []
    for name, entry in values.items():
        value, unit = entry if isinstance(entry, tuple) else (entry, None)
        rows.append(
            {"name": name, "value": plain(value, f"facts({title!r}): {name!r}"), "unit": unit}
        )
    result = Facts(title, rows)
    show(result)
    return result


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
        filled.append({"name": name, "values": values})
    heads = [{"name": column, "unit": units.get(column)} for column in columns]
    result = Table(title, corner, heads, filled)
    show(result)
    return result


def claim(
    id: str,
    source: str,
    statement: dict[str, str],
    predicted: Any,
    measured: Any,
    verdict: str,
    unit: str | None = None,
) -> Claim:
    """Settle a claim of a source, and show it; the page 'Claims we ran' lists all that were recorded.

    id: unique in the book, a-z, 0-9, -. source: such as 'CUDATutorial 09/02'. statement: what it says, in 'en' and 'zh',
    in our words. predicted: what follows if it is right; measured: what the cell found; both in `unit`.
    verdict: 'confirmed', 'refuted' or 'depends'. Raises ValueError for another verdict or a missing language.
    """
    if verdict not in VERDICTS:
        raise ValueError(f"claim {id!r}: verdict {verdict!r} is none of {', '.join(VERDICTS)}")
    if set(statement) != {"en", "zh"}:
        raise ValueError(
            f"claim {id!r}: the statement needs 'en' and 'zh', and has {sorted(statement)}"
        )
    where = f"claim {id!r}: a value"
    result = Claim(
        id, source, dict(statement), plain(predicted, where), plain(measured, where), unit, verdict
    )
    show(result)
    return result


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
    if foreground is not None:
        unknown = [name for name in foreground if name not in lines]
        if unknown or not 1 <= len(foreground) <= FOREGROUND:
            raise ValueError(
                f"series({title!r}): foreground is {foreground}; name 1 to {FOREGROUND} of the lines {list(lines)}"
            )
    points = {
        name: [(plain(a, f"series({title!r})"), plain(b, f"series({title!r})")) for a, b in line]
        for name, line in lines.items()
    }
    for name, line in points.items():
        if not line or not all(math.isfinite(a) and math.isfinite(b) for a, b in line):
            raise ValueError(
                f"series({title!r}): the line {name!r} is empty or holds a value that is not finite"
            )
    axes = [{"name": name, "unit": unit} for name, unit in (x, y)]
    # Said by name, since a recording sorts its keys.
    front = list(lines)[:FOREGROUND] if foreground is None else list(foreground)
    result = Series(title, *axes, points, None if limit is None else float(limit), front)
    show(result)
    return result


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
        json.dumps(
            result.json(), allow_nan=False
        )  # fail at the cell that made it, not when it is written
        display(result._repr_mimebundle_(), raw=True)
    else:
        display(result)
