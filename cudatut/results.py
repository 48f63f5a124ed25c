"""Results that travel as data: text for a terminal, HTML for a notebook, JSON (schema v1) for the site.

Each kind is declared once, as a dataclass: its fields are the schema, and `problems` is what makes one impossible. What
records makes them, what builds the site reads them; nothing else is shared between the two. Every time is in microseconds.
"""

import base64
import binascii
import html
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Annotated, Any, ClassVar

from cudatut import image_files, tool, words
from cudatut.pairs import Ratio, again, paired, ratio
from cudatut.schema import reader, short

MIME = "application/vnd.cudatut.v1+json"
Label = Annotated[str, "label"]  # English words, which a page shows in its language
Unit = Annotated[str, "unit"]  # likewise, behind a value
KINDS: dict[str, type["Result"]] = {}
_say, _head = words.section("results"), words.section("heads")


@dataclass
class Result:
    """Base class: a subclass gives its fields and `table()`; the three representations follow from them.

    lang: of what the book says around them; names and units are as the result has them.
    """

    kind: ClassVar[str]  # the name of its class in small letters
    _shown = False

    def __init_subclass__(cls) -> None:
        cls.kind = cls.__name__.lower()
        KINDS[cls.kind] = cls

    def json(self) -> dict[str, Any]:
        """The result in schema v1: its fields by name, without those that are empty and may be left out."""
        return {"kind": self.kind, **_as_json(self)}

    def heading(self, lang: str = "en") -> str:
        return self.kind

    def table(self, lang: str = "en") -> list[list[str]]:
        """The heads of its columns, then its rows."""
        raise NotImplementedError

    def problems(self) -> Iterator[str]:
        """What no run can have measured, or must not be shown."""
        return iter(())

    def text(self, lang: str = "en") -> str:
        """A heading and an aligned table, first column left, the others right."""
        table = self._told(lang)
        # A recording's text is English, and is compared with what this makes of its numbers.
        wide = len if lang == "en" else _columns
        width, *widths = [max(map(wide, column)) for column in zip(*table)]
        lines = [self.heading(lang)]
        for name, *values in table:
            cells = [name + " " * (width - wide(name))]
            cells += [" " * (most - wide(value)) + value for value, most in zip(values, widths)]
            lines.append(f"  {'  '.join(cells)}".rstrip())
        return "\n".join(lines)

    def _told(self, lang: str) -> list[list[str]]:
        """The table, with the heads of its columns in this language."""
        heads, *rows = self.table(lang)
        known = words.table()["heads"]
        return [[_head(head, lang) if head in known else head for head in heads], *rows]

    def html(self, lang: str = "en") -> str:
        def row(cells: list[str], tag: str) -> str:
            return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"

        head, *body = self._told(lang)
        return (
            f"<table><caption>{html.escape(self.heading(lang))}</caption><thead>{row(head, 'th')}</thead>"
            f"<tbody>{''.join(row(cells, 'td') for cells in body)}</tbody></table>"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        lang = words.language()
        return {"text/plain": self.text(lang), "text/html": self.html(lang), MIME: self.json()}

    def _ipython_display_(self) -> None:
        # A result is shown by the function that made it; being also the last expression of a cell shows it no second time.
        if not self._shown:
            show(self)

    def __repr__(self) -> str:
        return self.text()

    def _row(self, rows: list[Any], name: str, missing: dict[str, str] | None = None) -> Any:
        """The row of this name. Raises KeyError naming the rows that there are, or why this one is `missing`."""
        for row in rows:
            if row.name == name:
                return row
        why = (missing or {}).get(name) or f"it has {[row.name for row in rows]}"
        raise KeyError(f"no row {name!r} in {self.kind} {getattr(self, _named(self))!r}: {why}")


def _columns(text: str) -> int:
    """Of a terminal, where Chinese characters are two columns wide."""
    from rich.cells import cell_len

    return cell_len(text)


_ROUNDING = 1e-9  # of what is computed again from the numbers that a result has
# Survey of what the book checks: the largest atol is 3.4e5, a proven bound of a sum of 2**30 floats; the largest
# reference that an error needs is below 1e4.
_LARGEST_ATOL, _LARGEST_REFERENCE = 1e6, 1e12


@dataclass(repr=False)
class Check(Result):
    """Outcome of a comparison: `n` elements, largest absolute and relative error, tolerances."""

    name: Label | None
    passed: bool
    n: int
    max_abs_err: float
    max_rel_err: float
    atol: float
    rtol: float

    def _verdict(self, lang: str) -> str:
        return _say("passed" if self.passed else "failed", lang)

    def text(self, lang: str = "en") -> str:
        errors = {"abs": self.max_abs_err, "rel": self.max_rel_err}
        within = {"atol": self.atol, "rtol": self.rtol}
        verdict = self._verdict(lang)
        return _say("check", lang, name=self.name, verdict=verdict, n=self.n, **errors, **within)

    def table(self, lang: str = "en") -> list[list[str]]:
        head = ["check", "result", "elements", "max abs err", "max rel err"]
        errors = f"{self.max_abs_err:.3g}", f"{self.max_rel_err:.3g}"
        return [head, [str(self.name), self._verdict(lang), str(self.n), *errors]]

    def problems(self) -> Iterator[str]:
        if not self.passed:
            yield f"the check '{self.name}' failed"
        counted = {"n": self.n, "max_abs_err": self.max_abs_err, "max_rel_err": self.max_rel_err}
        for what, number in (counted | {"atol": self.atol, "rtol": self.rtol}).items():
            if number < 0:
                yield f"the check '{self.name}' has {what} = {number}"
        if self.atol > _LARGEST_ATOL or self.rtol >= 1:
            yield f"the check '{self.name}' tolerates what it likes: atol {self.atol:.3g}, rtol {self.rtol:.3g}"
        if impossible := self._impossible():
            errors = f"max_abs_err {self.max_abs_err:.3g}, max_rel_err {self.max_rel_err:.3g}"
            within = f"atol {self.atol:.3g}, rtol {self.rtol:.3g}"
            yield f"the check '{self.name}' has {errors} within {within}: {impossible}"

    def _impossible(self) -> str:
        """Why no reference can have given these errors within these tolerances; "" where one can."""
        error, relative = self.max_abs_err, self.max_rel_err
        if self.n == 0 and error:
            return "there is no element"
        if not error and relative:
            return "no element differs"
        if self.atol == 0 and relative > self.rtol * (1 + _ROUNDING):
            return "an element lies outside"
        if error > self.atol * (1 + _ROUNDING):
            # Then the reference there is not 0, and large enough for this error to lie within both.
            if not (self.rtol and relative):
                return "an element lies outside"
            least = max((error - self.atol) / self.rtol, error / relative)
            if least > _LARGEST_REFERENCE:
                return f"the reference would be {least:.2g} or more"
        if self.n == 1 and relative:
            reference = error / relative
            allowed = self.atol + self.rtol * reference
            if error > allowed * (1 + _ROUNDING):
                return f"the reference is {reference:.3g}"
            if allowed >= reference:
                return f"the reference is {reference:.3g}, and 0 would have passed"
        return ""


@dataclass
class Row:
    """One contestant of a benchmark; times in microseconds, `value` in the benchmark's unit.

    times: all its runs, in the order of their turns, with blanks between them. ratio_low, ratio_high: the interval of
    ratio_to_vendor. host_us: what the host needs to enqueue a launch, which is no part of the times, unless the launch
    itself waits for the GPU (`waits`). mhz, cycles: the clock of the SMs during a run, and their cycles.
    kernels: those that a rival launched. Rows that an older instrument measured have none of these.
    """

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
    times: str | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    host_us: float | None = None
    waits: bool | None = None
    mhz: float | None = None
    cycles: float | None = None
    kernels: list[str] | None = None

    @property
    def runs(self) -> list[float]:
        """Microseconds of all runs, in the order of their turns; empty where an older instrument measured it."""
        return [float(one) for one in (self.times or "").split()]

    @property
    def speed(self) -> float:
        """What is compared: rates, where the work is known, since rows of different work must not be compared by times."""
        return 1 / self.median_us if self.value is None else self.value


BELOW_MOST = 0.98  # of the highest clock: a GPU that runs slower is held back by its power, or its temperature
DEAR_US = 50  # a launch that takes the host so long is told


# The units of benchmarks, and the work behind each rate.
WORK = {"GB/s": "bytes", "TFLOP/s": "flops", "us": None}
FEWEST_ROUNDS = 3  # of a benchmark
# What is in the L2 cache is read faster than the memory's limit; of FMAs nothing but tensor cores is (`cudatut.gpu.bench`).
_MOST_OF_PEAK = {"GB/s": 10, "TFLOP/s": 1.05, "us": 0}
_SHORTEST_US, _LONGEST_US = 0.1, 1e10  # events tell half a microsecond; hours


def _other(row: Row, what: str, follows: float | None) -> Iterator[str]:
    """Says so where a row has something else than what follows from its other fields."""
    has = getattr(row, what)
    same = has is follows or (
        has is not None and follows is not None and math.isclose(has, follows, rel_tol=_ROUNDING)
    )
    if not same:
        yield f"{what} = {has} for '{row.name}', and its other fields give {follows}"


@dataclass(repr=False)
class Benchmark(Result):
    """Medians of contestants that took turns. `unit` is 'GB/s', 'TFLOP/s' or 'us'; `peak` is this GPU's measured limit in it.

    rounds: in which all of them ran. missing: name of a rival that could not run -> the reason. most_mhz: the highest clock
    of the SMs, where clocks were read.
    """

    name: Label | None
    unit: Unit
    peak: float | None
    rows: list[Row]
    rounds: int = 0
    missing: dict[str, str] | None = None
    most_mhz: float | None = None

    def text(self, lang: str = "en") -> str:
        return "\n".join([super().text(lang), *self._absent("no row", lang)])

    def html(self, lang: str = "en") -> str:
        notes = self._absent("no row in html", lang)
        return super().html(lang) + "".join(f"<p>{html.escape(note)}</p>" for note in notes)

    def _absent(self, key: str, lang: str) -> list[str]:
        return [_say(key, lang, name=name, why=why) for name, why in (self.missing or {}).items()]

    def __getitem__(self, name: str) -> Row:
        return self._row(self.rows, name, self.missing)

    def fastest_vendor(self) -> Row | None:
        """The fastest row of the vendor's library, to which ratios are; None without one."""
        return max(
            (row for row in self.rows if row.vendor), key=lambda row: row.speed, default=None
        )

    def ratio(self, ours: str, theirs: str) -> Ratio:
        """How many times as fast one row is as another: the median of the ratios within turns, with its interval.

        Rows of different work are compared by their rates. Raises KeyError, and ValueError where the runs are not recorded.
        """
        one, other = self[ours], self[theirs]
        if not (one.runs and other.runs):
            raise ValueError(
                f"benchmark {self.name!r}: the runs of {ours!r} and {theirs!r} are not recorded"
            )
        if one is other:
            return Ratio(1.0, 1.0, 1.0, len(one.runs))
        work = one.speed * one.median_us / (other.speed * other.median_us)
        held_back = self._held_back(one) or self._held_back(other)
        beyond = again(min(one.median_us, other.median_us), held_back)
        return ratio([work * times for times in paired(one.runs, other.runs)], beyond)

    def goal(self, ours: str, theirs: str, wanted: float) -> "Goal":
        """Whether a row reaches so many times the speed of another, for `ct.goals`. Raises as `ratio`."""
        found = self.ratio(ours, theirs)
        return Goal("", wanted, found.median, found.low, found.high, found.verdict(wanted))

    def held_back(self) -> bool:
        """Whether the GPU ran at less than its highest clock: its time then says as much about its power as about a kernel."""
        return any(map(self._held_back, self.rows))

    def _held_back(self, row: Row) -> bool:
        return bool(row.mhz and self.most_mhz and row.mhz < BELOW_MOST * self.most_mhz)

    def dear(self) -> bool:
        """Whether a launch takes the host so long that it has to be told."""
        return any(row.host_us is not None and row.host_us >= DEAR_US for row in self.rows)

    def heading(self, lang: str = "en") -> str:
        peak = _say("peak", lang, peak=self.peak, unit=self.unit) if self.peak else ""
        key = "benchmark in order" if self._paired() else "benchmark"
        return _say(key, lang, name=self.name, rounds=self.rounds, peak=peak)

    def _paired(self) -> bool:
        return any(row.times for row in self.rows)

    def table(self, lang: str = "en") -> list[list[str]]:
        unit = self.unit if self.unit != "us" else ""
        columns: dict[str, Callable[[Row], str]] = {
            "": lambda row: row.name + (" *" if row.vendor else ""),
            "median us": lambda row: f"{row.median_us:.2f}",
            "p20": lambda row: f"{row.p20_us:.2f}",
            "p80": lambda row: f"{row.p80_us:.2f}",
            unit or "rate": lambda row: _or_empty(row.value, "{:.4g}"),
            "of limit": lambda row: _or_empty(row.of_peak, "{:.1%}"),
            "vs vendor": lambda row: _or_empty(row.ratio_to_vendor, "{:.3f}x"),
        }
        if any(row.ratio_low is not None for row in self.rows):
            columns["interval"] = lambda row: (
                _say("interval", lang, low=row.ratio_low, high=row.ratio_high)
                if row.ratio_low
                else ""
            )
        if self.held_back():
            columns["Mcycles"] = lambda row: _or_empty(row.cycles, "{:.4g}", 1e-6)
            columns["MHz"] = lambda row: _or_empty(row.mhz, "{:.0f}")
        if self.dear():
            columns["host us"] = lambda row: _or_empty(row.host_us, "{:.0f}")
        heads = ["" if head == "rate" else head for head in columns]
        return [heads, *([shown(row) for shown in columns.values()] for row in self.rows)]

    def problems(self) -> Iterator[str]:
        said = [*self._impossible()] or [p for row in self.rows for p in self._does_not_fit(row)]
        yield from (f"the benchmark '{self.name}' has {problem}" for problem in said)

    def _impossible(self) -> Iterator[str]:
        if not self.rows:
            yield "no rows"
        if self.unit not in WORK:
            yield f"the unit {short(self.unit)}, none of {', '.join(WORK)}"
        if self.peak is not None and not self.peak > 0:
            yield f"peak = {self.peak}"
        if self.rounds < FEWEST_ROUNDS:
            yield f"{self.rounds} rounds: fewer than {FEWEST_ROUNDS} show no spread"
        names = [row.name for row in self.rows]
        yield from (f"two rows {name!r}" for name in dict.fromkeys(names) if names.count(name) > 1)
        for row in self.rows:
            for what in ("median_us", "p20_us", "p80_us", "value"):
                number = getattr(row, what)
                if number is not None and not number > 0:
                    yield f"{what} = {number} for '{row.name}'"
            if row.median_us > 0 and not _SHORTEST_US <= row.median_us <= _LONGEST_US:
                yield f"median_us = {row.median_us} for '{row.name}', which no clock here tells"
            yield from (f"{problem} for '{row.name}'" for problem in self._impossible_runs(row))

    def _impossible_runs(self, row: Row) -> Iterator[str]:
        """What no run can have given of a row that the newer instrument measured."""
        if bool(row.times) != self._paired():
            yield "other runs than the rest" if row.times else "no runs, and others have"
        try:
            runs = row.runs
        except ValueError:
            yield f"times = {short(row.times)}"
            return
        if not all(math.isfinite(us) and us > 0 for us in runs):
            yield f"times = {short(row.times)}"
        if self.rounds and len(runs) % self.rounds:
            yield f"{len(runs)} runs in {self.rounds} rounds"
        for what in ("host_us", "mhz", "cycles"):
            if (number := getattr(row, what)) is not None and not number > 0:
                yield f"{what} = {number}"
        if row.mhz is not None and self.most_mhz is not None and row.mhz > 1.1 * self.most_mhz:
            yield f"mhz = {row.mhz}, and most_mhz = {self.most_mhz}"

    def _does_not_fit(self, row: Row) -> Iterator[str]:
        """Of a row: its time to its spread, its rate to its work, its shares to the limit and to the other rows."""
        if not row.p20_us <= row.median_us <= row.p80_us:
            spread = f"p20 {row.p20_us}, median {row.median_us}, p80 {row.p80_us}"
            yield f"{spread} for '{row.name}', which is not their order"
        for work in {"bytes", "flops"} - {WORK[self.unit]}:
            if getattr(row, work) is not None:
                yield f"{work} for '{row.name}', and the unit {self.unit}"
        share = row.value / self.peak if row.value is not None and self.peak else None
        follows = {
            "value": self._value(row),
            "of_peak": share,
            **self._ratios(row),
            **_of_runs(row),
        }
        for what, value in follows.items():
            yield from _other(row, what, value)
        if share is not None and share > _MOST_OF_PEAK[self.unit]:
            yield f"of_peak = {share:.3g} for '{row.name}', beyond what the limit is a limit of"
        if (
            row.cycles is not None
            and row.mhz is not None
            and not 0.5 < row.cycles / (row.median_us * row.mhz) < 2
        ):
            yield f"cycles = {row.cycles} for '{row.name}', and its time and clock are of others"

    def _value(self, row: Row) -> float | None:
        """The rate that the work and the time of a row give."""
        if self.unit == "GB/s" and row.bytes is not None:
            return row.bytes / row.median_us / 1e3
        if self.unit == "TFLOP/s" and row.flops is not None:
            return row.flops / row.median_us / 1e6
        return None

    def _ratios(self, row: Row) -> dict[str, float | None]:
        """The ratio to the fastest row of the vendor's library, and where its runs are known the interval."""
        found = dict.fromkeys(("ratio_to_vendor", "ratio_low", "ratio_high"))
        if vendor := self.fastest_vendor():
            found["ratio_to_vendor"] = row.speed / vendor.speed
            if row.times:
                paired = self.ratio(row.name, vendor.name)
                found = dict(zip(found, (paired.median, paired.low, paired.high)))
        return found


def _of_runs(row: Row) -> dict[str, float]:
    """The median and the 20th and 80th percentile of a row's runs, where they are known (`cudatut.gpu.bench`)."""
    if not (runs := row.runs):
        return {}
    p20, median, p80 = spread(runs)
    return {"median_us": median, "p20_us": p20, "p80_us": p80}


def spread(runs: Sequence[float]) -> tuple[float, float, float]:
    """The 20th percentile, the median and the 80th percentile of some runs, at least one."""
    median = statistics.median(runs)
    p20, *_, p80 = statistics.quantiles(runs, n=5) if len(runs) > 1 else (median, median)
    return min(p20, median), median, max(p80, median)  # between equal runs, p20 may be rounded up


def _or_empty(value: float | None, form: str, scale: float = 1) -> str:
    return "" if value is None else form.format(value * scale)


@dataclass
class Goal:
    """A ratio that was wanted and the one that was measured, with its interval: 'reached', 'missed' or 'undecided'."""

    name: Label
    wanted: float
    measured: float
    low: float
    high: float
    verdict: str


@dataclass(repr=False)
class Goals(Result):
    """What was wanted of contestants, as ratios of speeds, and whether the measurement says that it was reached."""

    title: Label
    rows: list[Goal]

    def __getitem__(self, name: str) -> Goal:
        return self._row(self.rows, name)

    def heading(self, lang: str = "en") -> str:
        return self.title

    def table(self, lang: str = "en") -> list[list[str]]:
        rows = [
            [
                row.name,
                f"{row.wanted:.3g}",
                f"{row.measured:.3f}",
                _say("interval", lang, low=row.low, high=row.high),
                row.verdict,
            ]
            for row in self.rows
        ]
        return [["goal", "wanted", "measured", "interval", "verdict"], *rows]

    def problems(self) -> Iterator[str]:
        for row in self.rows:
            if not 0 < row.low <= row.measured <= row.high or not row.wanted > 0:
                yield f"goals {self.title!r}, {row.name!r}: {row.measured} is not from {row.low} to {row.high}, or no ratio"
            found = Ratio(row.measured, row.low, row.high, 0).verdict(row.wanted)
            if row.verdict != found:
                yield f"goals {self.title!r}, {row.name!r} says {row.verdict}, and by its interval it is {found}"


# CUDA C++ Programming Guide, 'Technical Specifications per Compute Capability': 7.5 to 12.x. Shared memory is 228 KiB at
# most so far, and newer GPUs have more each time.
_MOST_RESOURCES = {
    "registers": 255,
    "shared_bytes": 2**20,
    "spill_bytes": 2**19,
    "occupancy": 1,
    "block": 1024,
    "blocks_per_sm": 64,
}
_WARP, _WARPS_PER_SM, _REGISTERS_PER_SM = 32, (32, 48, 64), 2**16


@dataclass(repr=False)
class Resources(Result):
    """What one thread and one block of a kernel need, as the driver reports it.

    registers: per thread. shared_bytes: static plus dynamic, per block. spill_bytes: local memory per thread, that is
    register spills and arrays indexed at run time. occupancy: resident warps over the SM's maximum, 0 to 1.
    """

    kernel: str
    registers: int
    shared_bytes: int
    spill_bytes: int
    occupancy: float
    block: int = 0
    blocks_per_sm: int = 0

    def table(self, lang: str = "en") -> list[list[str]]:
        head = ["kernel", "block", "registers", "shared B", "local B", "blocks/SM", "occupancy"]
        needs = self.registers, self.shared_bytes, self.spill_bytes, self.blocks_per_sm
        return [head, [self.kernel, *map(str, (self.block, *needs)), f"{self.occupancy:.0%}"]]

    def problems(self) -> Iterator[str]:
        for what, most in _MOST_RESOURCES.items():
            if not 0 <= (number := getattr(self, what)) <= most:
                yield f"the kernel '{self.kernel}' has {what} = {number}, which no GPU has"
        if not self.block:  # how it is launched is not said
            return
        warps = -(-self.block // _WARP) * self.blocks_per_sm
        fits = (math.isclose(self.occupancy, warps / most) for most in _WARPS_PER_SM)
        if not any(fits):
            yield (
                f"the kernel '{self.kernel}' has occupancy = {self.occupancy}, and {self.blocks_per_sm} blocks of "
                f"{self.block} threads are {warps} warps"
            )
        if (registers := self.registers * self.block * self.blocks_per_sm) > _REGISTERS_PER_SM:
            yield f"the kernel '{self.kernel}' would need {registers} registers per SM"


@dataclass
class Metric:
    value: float | str
    unit: Unit | None


@dataclass(repr=False)
class Profile(Result):
    """Counters of one launch, read by Nsight Compute: metrics[name] = {"value", "unit"}."""

    kernel: str
    metrics: dict[str, Metric]

    def __post_init__(self) -> None:
        self.metrics = {
            name: m if isinstance(m, Metric) else Metric(**m) for name, m in self.metrics.items()
        }

    def __getitem__(self, name: str) -> Any:
        return self.metrics[name].value

    def heading(self, lang: str = "en") -> str:
        return f"ncu: {self.kernel}"

    def table(self, lang: str = "en") -> list[list[str]]:
        rows = [[name, format_value(m.value), m.unit or ""] for name, m in self.metrics.items()]
        return [["metric", "value", "unit"], *rows]

    def problems(self) -> Iterator[str]:
        for name, metric in self.metrics.items():
            if not isinstance(metric.value, str) and metric.value < 0:
                yield f"the profile of '{self.kernel}' has {name} = {metric.value}"


@dataclass(repr=False)
class Sanitizer(Result):
    """Errors that one tool of compute-sanitizer found. `log` is its report and does not travel with the data."""

    tool: str
    errors: int
    log: str = field(default="", repr=False)

    def json(self) -> dict[str, Any]:
        return {"kind": self.kind, "tool": self.tool, "errors": self.errors}

    def table(self, lang: str = "en") -> list[list[str]]:
        return [["sanitizer", "errors"], [self.tool, str(self.errors)]]

    def problems(self) -> Iterator[str]:
        if self.tool not in tool.SANITIZERS:
            yield f"there is no sanitizer {short(self.tool)}"
        if self.errors < 0:
            yield f"{self.tool} found {self.errors} errors"


@dataclass
class Fact:
    name: Label
    value: bool | float | Label
    unit: Unit | None


@dataclass(repr=False)
class Facts(Result):
    """Named values, each with an optional unit."""

    title: Label | None
    rows: list[Fact]

    def __getitem__(self, name: str) -> Any:
        return self._row(self.rows, name).value

    def heading(self, lang: str = "en") -> str:
        return self.title or ""

    def table(self, lang: str = "en") -> list[list[str]]:
        rows = [[row.name, format_value(row.value), row.unit or ""] for row in self.rows]
        return [["name", "value", "unit"], *rows]

    def problems(self) -> Iterator[str]:
        names = [row.name for row in self.rows]
        for name in dict.fromkeys(names):
            if names.count(name) > 1:
                yield f"facts {self.title!r}: two rows {name!r}"


VERDICTS = ("confirmed", "refuted", "same here", "other here", "depends", "open")
FORMS = ("said", "printed", "code")
FOUND = ("measured", "counted", "computed", "simulated")
GAIN, LEAD, SHARE = 0.25, 0.02, 0.9  # the rules of tolerance: see `verdict` and `settled`
SEEDS = 20  # at least, where chance has a part
EXACT = 1e-6  # of a count that was divided, such as words per result
RULES = ("equal", "gain", "above", "below")
Value = bool | float | Label
Both = dict[str, str]  # "en" and "zh"


def verdict(rule: str, expected: Any, measured: Any) -> str:
    """What one measurement says of a claim, 'confirmed', 'refuted' or 'open' (too close to call).

    'equal': counts and words have to be the same. 'gain': expected and measured are ratios of times; measured - 1 has to lie
    within 25 % of expected - 1, or measured within 2 % of expected. 'above', 'below': measured has to lie at least 2 % on that
    side of expected (0.02 where that is 0); at least as far on the other side refutes it. Raises ValueError where a rule for
    numbers is given something else.
    """
    if rule == "equal":
        return "confirmed" if same(expected, measured) else "refuted"
    if not all(isinstance(value, (int, float)) for value in (expected, measured)):
        raise ValueError(f"the rule '{rule}' compares numbers, not {short((expected, measured))}")
    if rule == "gain":
        within = max(GAIN * abs(expected - 1), LEAD * abs(expected))
        return "confirmed" if abs(measured - expected) <= within else "refuted"
    lead = (measured - expected) * (1 if rule == "above" else -1)
    if abs(lead) < LEAD * (abs(expected) or 1):
        return "open"
    return "confirmed" if lead > 0 else "refuted"


def settled(
    rule: str,
    expected: Any,
    measured: Any,
    *,
    other: Any = None,
    seeds: list[float] | None = None,
    elsewhere: bool = False,
) -> str:
    """The verdict on a claim, one of VERDICTS.

    other: what was measured on the other side of a condition; 'depends' is where one side confirms and the other refutes.
    seeds: what each seed gave, where chance has a part; nine tenths have to agree with `measured`, or it is 'open'.
    elsewhere: it was said of another GPU, and is not wrong where this one differs: 'same here' or 'other here'.
    """
    found = verdict(rule, expected, measured)
    if other is not None and (second := verdict(rule, expected, other)) != found:
        return "depends" if "open" not in (found, second) else "open"
    if seeds and agreeing(rule, expected, measured, seeds) < SHARE * len(seeds):
        return "open"
    if elsewhere:
        return {"confirmed": "same here", "refuted": "other here"}.get(found, found)
    return found


def agreeing(rule: str, expected: Any, measured: Any, seeds: list[float]) -> int:
    """How many seeds give the verdict that `measured` gives."""
    return sum(verdict(rule, expected, one) == verdict(rule, expected, measured) for one in seeds)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal; numbers within a millionth, since some counts were divided."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if any(isinstance(value, float) for value in (one, other)) and all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in (one, other)
    ):
        return math.isclose(one, other, rel_tol=EXACT)
    return one == other


@dataclass
class Control:
    """What the same measurement gives where the answer is known.

    known: that answer, which `value` has to equal. within: the lowest and the highest value that it may have instead.
    """

    what: Both
    value: Value | list[Value]
    known: Value | list[Value] | None = None
    within: list[float] | None = None

    def missed(self) -> bool:
        """Whether it came out differently, so that the measurement tells nothing."""
        if self.within is not None:
            low, high = self.within
            return not (isinstance(self.value, (int, float)) and low <= self.value <= high)
        return self.known is not None and not same(self.known, self.value)


@dataclass
class Side:
    """One side of the condition that decides a claim, and what was measured on it."""

    what: Both
    value: Value | list[Value]


@dataclass(repr=False)
class Claim(Result):
    """What a source states and where, what comes out if it is right, what was measured, its control, and the verdict.

    form: one of FORMS. rule: one of RULES. found: one of FOUND. depends: the condition under which it holds. sides: the two
    sides of that condition; `measured` is the value of the first. seeds: what each seed gave; `measured` is their median.
    elsewhere: said of another GPU.
    """

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
    found: str = "measured"
    sides: list[Side] | None = None
    seeds: list[float] | None = None
    elsewhere: bool = False

    def heading(self, lang: str = "en") -> str:
        return f"claim ({self.source}): {self.statement['en']}"

    def table(self, lang: str = "en") -> list[list[str]]:
        bound = {"above": "expected, more than", "below": "expected, less than"}
        values = {bound.get(self.rule, "expected"): self.expected}
        if self.sides:
            values |= {f"{self.found}: {side.what['en']}": side.value for side in self.sides}
        else:
            values[self.found] = self.measured
        values[f"control: {self.control.what['en']}"] = self.control.value
        rows = [[name, format_value(value), self.unit or ""] for name, value in values.items()]
        if self.seeds:
            rows.append(["seeds with this verdict", f"{self.agreeing()} of {len(self.seeds)}", ""])
        condition = ""
        if self.depends and self.verdict == "depends":
            condition = f": {self.depends['en']}"
        return [["", "value", "unit"], *rows, ["verdict", self.verdict + condition, ""]]

    def agreeing(self) -> int:
        """How many seeds have the verdict that the median has."""
        return agreeing(self.rule, self.expected, self.measured, self.seeds or [])

    def settled(self) -> str:
        """The verdict by its rule; 'open' where the control was missed, since the measurement tells nothing then."""
        if self.control.missed():
            return "open"
        other = self.sides[1].value if self.sides else None
        return settled(
            self.rule,
            self.expected,
            self.measured,
            other=other,
            seeds=self.seeds,
            elsewhere=self.elsewhere,
        )

    def problems(self) -> Iterator[str]:
        of = {"verdict": VERDICTS, "form": FORMS, "rule": RULES, "found": FOUND}
        for what, known in of.items():
            if (said := getattr(self, what)) not in known:
                yield f"the claim '{self.id}' has the {what} {short(said)}, none of {', '.join(known)}"
        if self.sides is not None and len(self.sides) != 2:
            yield f"the claim '{self.id}' has {len(self.sides)} sides; a condition has two"
        elif self.rule in RULES and self.verdict in VERDICTS and self.verdict != self.settled():
            yield f"the claim '{self.id}' says {self.verdict}, and by its rule it is {self.settled()}"
        if self.sides and self.measured != self.sides[0].value:
            yield f"the claim '{self.id}': measured is not what its first side has"
        if bool(self.depends) != bool(self.sides):
            yield f"the claim '{self.id}' needs both, a condition and what was measured on its two sides"
        texts = [self.place, self.statement, self.control.what, self.depends or self.place]
        for both in (*texts, *(side.what for side in self.sides or ())):
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

    title: Label
    corner: Label
    columns: list[Column]
    rows: list[TableRow]

    def __getitem__(self, name: str) -> dict[str, Any]:
        """A row's values by column. Raises KeyError naming the rows that there are."""
        row = self._row(self.rows, name)
        return dict(zip((column.name for column in self.columns), row.values))

    def heading(self, lang: str = "en") -> str:
        return self.title

    def table(self, lang: str = "en") -> list[list[str]]:
        # A unit that is the column's name already is not said twice.
        named = (
            c.name if c.unit in (None, "", c.name) else f"{c.name} ({c.unit})" for c in self.columns
        )
        rows = (
            [row.name, *("" if v is None else format_value(v) for v in row.values)]
            for row in self.rows
        )
        return [[self.corner, *named], *rows]

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

    title: Label
    x: Axis
    y: Axis
    lines: dict[Label, list[tuple[float, float]]]
    limit: float | None
    foreground: list[Label] | None = None

    def heading(self, lang: str = "en") -> str:
        limit = f", limit {format_value(self.limit)} {self.y.unit}" if self.limit else ""
        return f"{self.title} ({self.y.unit} over {self.x.name}{limit})"

    def table(self, lang: str = "en") -> list[list[str]]:
        lines = [dict(points) for points in self.lines.values()]
        rows = (
            [format_value(x), *(format_value(line[x]) if x in line else "" for line in lines)]
            for x in sorted({x for line in lines for x in line})
        )
        return [[self.x.name, *self.lines], *rows]

    def problems(self) -> Iterator[str]:
        for name, line in self.lines.items():
            if not line:
                yield f"series {self.title!r}: the line {name!r} is empty"
            if not all(math.isfinite(number) for point in line for number in point):
                yield f"series {self.title!r}: the line {name!r} holds a value that is not finite"
        front = self.foreground
        if front is not None and not (
            1 <= len(front) <= FOREGROUND and set(front) <= set(self.lines)
        ):
            yield f"series {self.title!r}: foreground is {short(front)}; name 1 to {FOREGROUND} of the lines {list(self.lines)}"


LARGEST_SCALE = 32  # screen pixels of a picture's pixel


@dataclass(repr=False)
class Picture(Result):
    """An image: a PNG or a WebP in base64, and what it shows in words, `alt`, in 'en' and 'zh'.

    scale: how many pixels of a screen are one of it, in each direction; None: one.
    """

    name: Label
    width: int
    height: int
    alt: Both
    data: str
    scale: int | None = None

    @property
    def file(self) -> bytes:
        """Its file. Raises ValueError where `data` is no base64."""
        try:
            return base64.b64decode(self.data, validate=True)
        except binascii.Error as error:
            raise ValueError(f"picture {self.name!r}: its data is no base64 ({error})") from error

    @property
    def format(self) -> str:
        """ "png" or "webp". Raises ValueError for any other."""
        return image_files.seen(self.file)[0]

    def heading(self, lang: str = "en") -> str:
        return f"{self.name} ({self.width} x {self.height})"

    def table(self, lang: str = "en") -> list[list[str]]:
        size = f"{self.width} x {self.height}"
        row = [self.name, size, self.format, format_value(len(self.file))]
        return [["picture", "pixels", "format", "B"], row]

    def text(self, lang: str = "en") -> str:
        return f"{self.heading(lang)}: {self.alt[lang]}"

    def html(self, lang: str = "en") -> str:
        address = f"data:image/{self.format};base64,{self.data}"
        width, height = (side * (self.scale or 1) for side in (self.width, self.height))
        style = ' style="image-rendering: pixelated"' if self.scale else ""
        return (
            f'<figure><img src="{address}" alt="{html.escape(self.alt[lang])}" width="{width}" height="{height}"{style}>'
            f"<figcaption>{html.escape(self.heading(lang))}</figcaption></figure>"
        )

    def problems(self) -> Iterator[str]:
        if set(self.alt) != {"en", "zh"} or not all(map(str.strip, self.alt.values())):
            yield f"picture {self.name!r}: alt needs words in 'en' and 'zh', and is {short(self.alt)}"
        if self.scale is not None and not 1 <= self.scale <= LARGEST_SCALE:
            yield f"picture {self.name!r}: scale is {self.scale}, and may be 1 to {LARGEST_SCALE}"
        try:
            file = self.file
            _, width, height = image_files.seen(file)
        except ValueError as error:
            yield f"picture {self.name!r}: {error}"
            return
        if (width, height) != (self.width, self.height) or not width * height:
            yield f"picture {self.name!r}: its file has {width} x {height} pixels, and it says {self.width} x {self.height}"
        if len(file) > image_files.MOST:
            yield (
                f"picture {self.name!r}: its file has {len(file):,} B, and may have {image_files.MOST:,}: show fewer pixels "
                "(a part, or every second one), or a photograph with quality=80, as a WebP that is not exact"
            )


def _as_json(value: Any) -> Any:
    """A dataclass, and what it holds, as JSON."""
    if is_dataclass(value):
        return {
            one.name: _as_json(found)
            for one in fields(value)
            if (found := getattr(value, one.name)) is not None or one.default is not None
        }
    if isinstance(value, dict):
        return {key: _as_json(one) for key, one in value.items()}
    return [_as_json(one) for one in value] if isinstance(value, (list, tuple)) else value


# --- reading ------------------------------------------------------------------------------------


def read(data: Any) -> Result:
    """A result from its JSON. Raises ValueError that names the kind, the field and what was found."""
    if not isinstance(data, dict) or "kind" not in data:
        raise ValueError(f"a result is an object with a kind, not {short(data)}")
    kind = KINDS.get(data["kind"]) if isinstance(data["kind"], str) else None
    if kind is None:
        raise ValueError(f"schema v1 has no kind {short(data['kind'])}; it has {', '.join(KINDS)}")
    try:
        return reader(kind)(data)
    except ValueError as error:
        raise ValueError(f"{kind.kind} {data.get(_named(kind), '')}: {error}") from None


def validate(data: Any) -> None:
    """Raises ValueError for what is no result of schema v1, or one that cannot be; see `read` and `Result.problems`."""
    _require_possible(read(data))


def _require_possible(result: Result) -> None:
    for problem in result.problems():
        raise ValueError(problem)


def _named(kind: Any) -> str:
    """The field that names a result: the first of each kind."""
    return fields(kind)[0].name


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


def rounded(value: float) -> float:
    """A measured value with five significant digits, which is more than an event's clock tells."""
    return float(f"{value:.5g}")


def plain(value: Any, where: str) -> bool | int | float | str:
    """A NumPy scalar as Python's own; raises TypeError naming `where` for what is no number, string or bool."""
    if hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, (bool, int, float, str)):
        raise TypeError(f"{where} is a {type(value).__name__}; give a number, string or bool")
    return value


def _shown(result: Result) -> Any:
    _require_possible(result)
    show(result)
    return result


def facts(title: str, values: dict[str, Any]) -> Facts:
    """Show a small table of named values, each `value` or `(value, unit)`; prose refers to them by name.

    NumPy scalars become Python ones. Raises TypeError for a value that is no number, string or bool.
    """
    where = f"facts({title!r})"
    return _shown(Facts(title, [fact(name, entry, where) for name, entry in values.items()]))


def fact(name: str, entry: Any, where: str) -> Fact:
    """A named value, given as `value` or `(value, unit)`. Raises TypeError as `facts`, naming `where`."""
    value, unit = entry if isinstance(entry, tuple) else (entry, None)
    return Fact(name, plain(value, f"{where}: {name!r}"), unit)


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
    named = {
        str(name): {str(column): value for column, value in row.items()}
        for name, row in rows.items()
    }
    if len(named) < len(rows):
        raise ValueError(f"table({title!r}): two of its rows have one name: {[*map(str, rows)]}")
    columns = list(dict.fromkeys(column for row in named.values() for column in row))
    if unknown := [name for name in units if name not in columns]:
        raise ValueError(f"table({title!r}): units has {unknown}, and its columns are {columns}")

    def value(name: str, column: str) -> Any:
        found = named[name].get(column)
        return None if found is None else plain(found, f"table({title!r}): {name!r}, {column!r}")

    filled = [TableRow(name, [value(name, column) for column in columns]) for name in named]
    heads = [Column(column, units.get(column)) for column in columns]
    return _shown(Table(title, corner, heads, filled))


def goals(title: str, wanted: dict[str, Goal]) -> Goals:
    """Show what was wanted and what came out: `{"n = 4096": bench.goal("final", "cuBLAS", 1.0), ...}`."""
    return _shown(Goals(title, [replace(goal, name=str(name)) for name, goal in wanted.items()]))


def claim(
    id: str,
    source: str,
    place: Both,
    form: str,
    statement: Both,
    *,
    expected: Any,
    rule: str,
    control: tuple[Both, Any, Any],
    measured: Any = None,
    found: str = "measured",
    unit: str | None = None,
    depends: Both | None = None,
    sides: tuple[tuple[Both, Any], tuple[Both, Any]] | None = None,
    seeds: Any = None,
    elsewhere: bool | None = None,
) -> Claim:
    """Settle a claim of a source, and show it; the page 'Claims we ran' lists all that were recorded.

    id: unique in the book, a-z, 0-9, -. source: such as 'CUDATutorial 09/02'. place: where in it, in 'en' and 'zh'.
    form: 'said' (a sentence), 'printed' (a number) or 'code'. statement: what it says, in our words and at its strength.
    expected: what comes out if it is right; measured: what the cell found; both in `unit`, numbers, words, or lists of
    them. rule: how they are compared (`verdict`). found: how it was found, 'measured' on the GPU, 'counted' (results,
    instructions, counters), 'computed' (arithmetic) or 'simulated' (a model's steps).
    control: what the same measurement gives where the answer is known: in words, that value, and what it has to be, a value
    or (lowest, highest) for a number; where it is missed, the verdict is 'open'.
    In place of measured: depends and sides, a condition and what was measured on either side of it, the source's own first,
    as (words, value); or seeds, what each of at least 20 seeds gave, of which the median counts.
    elsewhere: said of other hardware, so that a difference does not refute it; None: if it is a printed ratio ('gain').
    Raises ValueError for another form, rule or way, a missing language, and none or two of measured, sides and seeds.
    """

    def own(value: Any) -> Any:
        where = f"claim {id!r}: a value"
        many = isinstance(value, (list, tuple))
        return [plain(one, where) for one in value] if many else plain(value, where)

    if rule not in RULES:
        raise ValueError(f"claim {id!r}: rule {rule!r} is none of {', '.join(RULES)}")
    if sum(given is not None for given in (measured, sides, seeds)) != 1:
        raise ValueError(f"claim {id!r}: give one of measured, sides and seeds")
    both = [Side(dict(what), own(value)) for what, value in sides] if sides is not None else None
    each = own(list(seeds)) if seeds is not None else None
    if each is not None:
        if len(each) < SEEDS:
            raise ValueError(f"claim {id!r}: {len(each)} seeds; chance needs at least {SEEDS}")
        measured = statistics.median(each)
    expected, measured = own(expected), both[0].value if both else own(measured)
    if elsewhere is None:
        elsewhere = form == "printed" and rule == "gain"
    said = (id, source, dict(place), form, dict(statement), expected, measured, unit, rule)
    more = (dict(depends) if depends else None, found, both, each, elsewhere)
    made = Claim(*said, _control(*control, own), "open", *more)
    return _shown(replace(made, verdict=made.settled()))


def _control(what: Both, value: Any, known: Any, own: Callable[[Any], Any]) -> Control:
    """A tuple of two numbers is a range, unless the value is itself a list."""
    value = own(value)
    if isinstance(known, tuple) and not isinstance(value, list):
        return Control(dict(what), value, within=own(known))
    return Control(dict(what), value, known=own(known))


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

    def own(point: Any) -> tuple[Any, Any]:
        x, y = point
        return plain(x, f"series({title!r})"), plain(y, f"series({title!r})")

    points = {name: [own(point) for point in line] for name, line in lines.items()}
    # Said by name, since a recording sorts its keys.
    front = list(lines)[:FOREGROUND] if foreground is None else list(foreground)
    top = None if limit is None else float(limit)
    return _shown(Series(title, Axis(*x), Axis(*y), points, top, front))


def picture(
    name: str, array: Any, alt: Both, *, scale: int | None = None, quality: int | None = None
) -> Picture:
    """Show an image: on the site as a file beside the page, in a notebook in its place, elsewhere as its words.

    array: uint8 in the host's memory, height x width (grey) or height x width x 3 (red, green, blue). alt: what it shows,
    in 'en' and 'zh', for readers who do not see it. scale: pixels of the screen for one of it, in each direction, where
    single pixels matter. quality: 1 to 100 makes it a WebP, smaller and not exact, by Pillow; without it, it is a PNG.

    Raises TypeError for another type, ValueError for another shape, for a file of more than 30 KB, and where `alt` lacks a
    language; ToolMissing for a quality without Pillow.
    """
    import numpy as np

    where = f"picture({name!r})"
    if not isinstance(array, np.ndarray) or array.dtype != np.uint8:
        found = f"{array.dtype} array" if isinstance(array, np.ndarray) else type(array).__name__
        cure = "`.get()` copies an array of the GPU" if hasattr(array, "get") else "round it first"
        raise TypeError(f"{where}: it is a {found}; give a NumPy array of uint8 ({cure})")
    if not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 3)) or not array.size:
        raise ValueError(
            f"{where}: its shape is {array.shape}; give height x width, or height x width x 3, of at least one pixel"
        )
    made = image_files.png(array) if quality is None else image_files.webp(array, quality)
    height, width = array.shape[:2]
    data = base64.b64encode(made).decode()
    return _shown(Picture(name, width, height, dict(alt), data, scale))


def show(result: Any) -> None:
    """Show a result: as a MIME bundle in a notebook, as text elsewhere. While a tool runs the process, nothing."""
    if isinstance(result, Result):
        result._shown = True
        if tool.running():
            return
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if getattr(shell, "kernel", None) is None:
        text = result.text(words.language()) if isinstance(result, Result) else result
        print(text, flush=True)
        return
    from IPython.display import display

    if isinstance(result, Result):
        # Fails at the cell that made it, not when it is written.
        json.dumps(result.json(), allow_nan=False)
        display(result._repr_mimebundle_(), raw=True)
    else:
        display(result)
