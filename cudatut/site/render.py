"""Recorded outputs as HTML in the page's language, their labels too: tables, charts, streams.

Only results that travel as data (schema v1) and text streams are rendered; a notebook's own HTML or
images are not: an image is a result, too (`ct.picture`). Everything that comes from a recording is escaped. What is unknown or damaged raises
ValueError naming it: the page it would be on is then not built.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from itertools import groupby
from typing import Any

from cudatut.recording import gpu_folder
from cudatut.results import MIME, Benchmark, agreeing, validate
from cudatut.schema import reader
from cudatut.site import deferred, locale, pictures
from cudatut.site.charts import benchmark_svg, number, percent, row_name, symbol, with_unit
from cudatut.site.locale import text
from cudatut.site.localize import localized, relabeled
from cudatut.site.svg import NARROW, WIDE
from cudatut.site.sweep import divided, series_svg

_REACHED = {"reached": ("pass", "✓"), "missed": ("fail", "✗"), "undecided": ("note", "=")}
_VERDICTS = {
    "confirmed": ("pass", "✓"),
    "refuted": ("fail", "✗"),
    "same here": ("pass", "✓"),
    "other here": ("note", "≠"),
    "depends": ("note", "≈"),
    "open": ("note", "="),
}


def results_html(
    outputs: Iterable[dict[str, Any]],
    lang: str,
    gpus: Sequence[tuple[str, list]] = (),
    over: str = "",
) -> str:
    """Return the HTML of one cell's outputs, as a recording has them, in language `lang`; "" where there are none.

    gpus: (GPU, results of the same cell there) of the GPU that the outputs are of, first, and of others; charts and
    tables then offer them as a choice. over: the line by which the charts of series are divided (`sweep.divided`); their
    tables stay as they are.
    Consecutive streams are joined, consecutive checks and sanitizer reports share a table, pictures a row. Raises ValueError for an error
    output, for a kind that schema v1 does not have, and for a result that lacks a field or has one of the wrong type.
    """
    with locale.using(lang), _divided_by(over):
        items = [item for item in map(_item, outputs) if item is not None]
        parts = []
        so_far = Counter[str]()
        for kind, group in groupby(items, key=lambda item: item[0]):
            payloads = [payload for _, payload in group]
            if kind in _TOGETHER:
                parts.append(_TOGETHER[kind](payloads))
                continue
            for payload in payloads:
                if kind in _BY_GPU and len(gpus) > 1:
                    parts.append(_by_gpu(payload, so_far[kind], gpus))
                else:
                    parts.append(_EACH[kind](payload))
                so_far[kind] += 1
        if not parts:
            return ""
        label = escape(text("output.label"))
    return f'<div class="ct-result" role="group" aria-label="{label}">{"".join(parts)}</div>'


_over: ContextVar[str] = ContextVar("over", default="")


@contextmanager
def _divided_by(line: str) -> Iterator[None]:
    token = _over.set(line)
    try:
        yield
    finally:
        _over.reset(token)


# What is shown by GPU, and which of its fields is its title.
_BY_GPU = dict.fromkeys(("goals", "series", "table", "facts"), "title") | {"benchmark": "name"}


def _by_gpu(result: dict[str, Any], index: int, gpus: Sequence[tuple[str, list]]) -> str:
    """A result with the GPU as a choice: the same one, by its kind and place in the cell, of each GPU that has another.

    On paper they stand below each other, and a screen reader may read them without the choice: so each has its GPU in its
    title, which a chart's drawing repeats. What others than the first have is marked as deferred (see `deferred`).
    """
    kind = result["kind"]
    (own, _), *others = gpus
    found = {own: result}
    for name, results in others:
        same = [one for one in results if one["kind"] == kind]
        if index < len(same):
            found[name] = localized(same[index], locale.current())
    shown = {name: _EACH[kind](one) for name, one in found.items()}
    found = {name: one for name, one in found.items() if name == own or shown[name] != shown[own]}
    if len(found) == 1:
        return shown[own]
    short = {name: escape(name.removeprefix("NVIDIA ")) for name in found}
    panes = {
        name: _EACH[kind](_on(one, name.removeprefix("NVIDIA "))) for name, one in found.items()
    }
    group = f"gpu-{hashlib.sha256(''.join(panes.values()).encode()).hexdigest()[:8]}"
    choices = "".join(
        f'<label><input type="radio" name="{group}" value="{escape(name)}"{" checked" * (name == own)}> '
        f"{short[name]}</label>"
        for name in panes
    )
    note = f'<p class="ct-gpu__note">{text("output.text_of", name=short[own])}</p>'
    inside = {
        name: pane if name == own else deferred.deferred(pane, gpu_folder(name), short[name]) + note
        for name, pane in panes.items()
    }
    # A group, not a landmark: a page has many, of the same few names.
    sections = "".join(
        f'<section class="ct-gpu" role="group" aria-label="{short[name]}">{pane}</section>'
        for name, pane in inside.items()
    )
    return (
        f'<div class="ct-gpus"><fieldset class="ct-gpus__choice"><legend>{escape(text("output.gpu"))}</legend>'
        f"{choices}</fieldset>{sections}</div>"
    )


def _on(result: dict[str, Any], gpu: str) -> dict[str, Any]:
    """A result whose title says on which GPU it came out so."""
    field = _BY_GPU[result["kind"]]
    title = result[field]
    return result | {field: text("brackets", label=title, remark=gpu) if title else gpu}


def _item(output: dict[str, Any]) -> tuple[str, Any] | None:
    """Return (kind, payload) of one output, its labels in the page's language; None where it holds nothing to show."""
    kind, data = output["output_type"], output.get("data", {})
    if kind == "error":
        what = f"{output.get('ename')}: {output.get('evalue')}"
        raise ValueError(f"an output is an error ({what}); errors are never rendered")
    if kind == "stream":
        return ("stream", output["text"]) if output["text"].strip() else None
    if MIME in data:
        validate(data[MIME])
        return data[MIME]["kind"], localized(data[MIME], locale.current())
    if kind == "execute_result":  # a notebook prints the last expression's value, a script does not
        return None
    if "text/plain" in data:
        return "stream", data["text/plain"] + "\n"
    raise ValueError(f"an output ({kind}) has no {MIME} and no text: {sorted(data)}")


# --- one function per kind -----------------------------------------------------------------------


def _streams(texts: list[str]) -> str:
    value = "".join(texts).rstrip()
    return f'<pre class="ct-output" tabindex="0">{escape(value, quote=False)}</pre>'


def _checks(checks: list[dict[str, Any]]) -> str:
    passed = _marked("pass", "✓", text("check.passed"))  # others are never shown: see `validate`
    columns = {
        text("check.name"): [label_html(check["name"] or "–") for check in checks],
        text("check.result"): [passed] * len(checks),
        text("check.n"): [f"{check['n']:,}" for check in checks],
        text("check.max_abs_err"): [f"{check['max_abs_err']:.2g}" for check in checks],
        text("check.tolerance"): [_tolerance(check) for check in checks],
    }
    many = len(checks) > _MANY
    caption = "" if many else text("check.caption")
    table = table_html(columns, zip(*columns.values()), caption=caption, words=(0, 1))
    if not many:
        return table
    error = max(check["max_abs_err"] for check in checks)
    words = text("check.all_passed", count=len(checks), error=f"{error:.2g}")
    return folded(_marked("pass", "✓", words), table)


_MANY = 8  # more checks than these are folded into a line


def _tolerance(check: dict[str, Any]) -> str:
    parts = [f"{name} {check[name]:.2g}" for name in ("atol", "rtol") if check[name]]
    return ", ".join(parts) or text("check.exact")


def _benchmark(result: dict[str, Any]) -> str:
    rows, declared = result["rows"], reader(Benchmark)(result)
    time, spread = ({"name": text(f"benchmark.{key}"), "unit": "us"} for key in ("time", "spread"))
    # Of a ratio with an interval that digit is shown that the interval is about.
    ratio = percent if all(r.get("ratio_low") is None for r in rows) else _permille
    columns = {
        text("benchmark.candidate"): [label_html(row_name(r)) for r in rows],
        with_unit(time): [number(r["median_us"]) for r in rows],
        with_unit(spread): [f"{number(r['p20_us'])} – {number(r['p80_us'])}" for r in rows],
        escape(result["unit"]): [_maybe(r["value"], number) for r in rows],
        text("benchmark.of_peak"): [_maybe(r["of_peak"], percent) for r in rows],
        text("benchmark.ratio"): [_maybe(r["ratio_to_vendor"], ratio) for r in rows],
        text("benchmark.interval"): [
            _interval(r.get("ratio_low"), r.get("ratio_high"), _permille) for r in rows
        ],
    }
    if declared.held_back():
        columns[text("benchmark.cycles")] = [_maybe(r.get("cycles"), _millions) for r in rows]
        columns[text("benchmark.clock")] = [_maybe(r.get("mhz"), number) for r in rows]
    if declared.dear():
        columns[with_unit({"name": text("benchmark.host"), "unit": "us"})] = [
            _maybe(r.get("host_us"), number) for r in rows
        ]
    known = {head: cells for head, cells in columns.items() if set(cells) != {"–"}}
    table = table_html(known, zip(*known.values()))
    if waiting := [label_html(r["name"]) for r in rows if r.get("waits")]:
        names = text("benchmark.and").join(waiting)
        table += f"<p>{text('benchmark.waits', names=names)}</p>"
    drawn = [benchmark_svg(_unmarked(result), layout) for layout in (WIDE, NARROW)]
    return _chart(result["name"] or "", drawn, table)


def _permille(fraction: float) -> str:
    return f"{100 * fraction:.1f}%"


def _millions(value: float) -> str:
    return number(value / 1e6)


def _interval(low: float | None, high: float | None, shown: Callable[[float], str]) -> str:
    # A library beside itself has none.
    return "–" if low is None or high is None or low == high else f"{shown(low)} – {shown(high)}"


def _goals(result: dict[str, Any]) -> str:
    head = [text(f"goals.{key}") for key in ("goal", "wanted", "measured", "interval", "verdict")]
    rows = [
        [
            label_html(row["name"]),
            f"{row['wanted']:.3g}×",
            _times(row["measured"]),
            _interval(row["low"], row["high"], _times),
            _marked(*_REACHED[row["verdict"]], text(f"goals.{row['verdict']}")),
        ]
        for row in result["rows"]
    ]
    return table_html(head, rows, caption=label_html(result["title"]), words=(0, 4))


def _times(ratio: float) -> str:
    return f"{ratio:.3f}×"


def _series(result: dict[str, Any]) -> str:
    lines = {name: dict(line) for name, line in result["lines"].items()}
    positions = sorted({x for line in lines.values() for x in line})
    x, y = (label_html(with_unit(result[axis])) for axis in "xy")
    rows = [
        [number(at), *(_maybe(line.get(at), number) for line in lines.values())] for at in positions
    ]
    table = table_html([x, *map(label_html, lines)], rows, caption=y)
    shown = _unmarked(result)
    if over := _over.get():
        shown = divided(shown, over)
    drawn = [series_svg(shown, locale.current(), layout) for layout in (WIDE, NARROW)]
    return _chart(result["title"], drawn, table)


def _chart(title: str, drawn: list[str], table: str) -> str:
    return (
        f'<figure class="ct-bench"><figcaption>{label_html(title)}</figcaption>'
        f'<div class="ct-scroll" tabindex="0">{"".join(drawn)}</div>'
        f"{folded(text('table.numbers'), table)}</figure>"
    )


_RESOURCES: dict[str, Callable[[Any], str]] = {
    "block": "{:,}".format,
    "registers": str,
    "shared_bytes": lambda size: f"{size:,} B" if size else text("resources.none"),
    "spill_bytes": lambda size: f"{size:,} B" if size else text("resources.none"),
    "blocks_per_sm": "{:,}".format,
    "occupancy": percent,
}


def _resources(result: dict[str, Any]) -> str:
    rows = [
        [text(f"resources.{key}"), shown(result[key])]
        for key, shown in _RESOURCES.items()
        if key in result
    ]
    return table_html(
        None, rows, caption=text("resources.caption", kernel=code_html(result["kernel"]))
    )


def _profile(result: dict[str, Any]) -> str:
    head = [text("profile.metric"), text("profile.value")]
    rows = [[code_html(name), _value(**metric)] for name, metric in result["metrics"].items()]
    return table_html(
        head, rows, caption=text("profile.caption", kernel=code_html(result["kernel"]))
    )


def _sanitizers(results: list[dict[str, Any]]) -> str:
    head = [text("sanitizer.tool"), text("sanitizer.errors")]
    clean = _marked("pass", "✓", text("sanitizer.clean"))
    rows = [
        [code_html(r["tool"]), _marked("fail", "✗", f"{r['errors']:,}") if r["errors"] else clean]
        for r in results
    ]
    return table_html(head, rows, caption=text("sanitizer.caption"), words=(0, 1))


def _facts(result: dict[str, Any]) -> str:
    rows = [[label_html(row["name"]), _value(row["value"], row["unit"])] for row in result["rows"]]
    return table_html(None, rows, caption=label_html(result["title"] or ""))


def _table(result: dict[str, Any]) -> str:
    head = [label_html(name) for name in (result["corner"], *map(with_unit, result["columns"]))]
    rows = [
        [label_html(row["name"]), *(_maybe(value, _value) for value in row["values"])]
        for row in result["rows"]
    ]
    columns = zip(*(row["values"] for row in result["rows"]))
    words = [
        i for i, column in enumerate(columns, 1) if any(isinstance(value, str) for value in column)
    ]
    return table_html(head, rows, caption=label_html(result["title"]), words=(0, *words))


def _claim(result: dict[str, Any]) -> str:
    lang = locale.current()
    control = escape(result["control"]["what"][lang])
    rows = [
        [text("claim.statement"), escape(result["statement"][lang])],
        [text("claim.place"), claim_place(result)],
        [text("claim.expected"), claim_value(result, "expected")],
        *claim_sides(result),
        [
            text("claim.told", name=text("claim.control"), what=control),
            claim_control(result),
        ],
        [text("claim.verdict"), verdict_html(result)],
    ]
    caption = text("claim.caption", source=escape(result["source"]))
    return table_html(None, rows, caption=caption, words=(0, 1))


def claim_place(claim: dict[str, Any]) -> str:
    """Where in its source a claim stands, and whether it is said, printed or code."""
    place = escape(claim["place"][locale.current()])
    return text("claim.where", place=place, form=text(f"claim.{claim['form']}"))


def claim_value(claim: dict[str, Any], key: str) -> str:
    """The value of a claim under `key` ("expected", "measured") with its unit, as HTML."""
    claim = localized(claim, locale.current())
    bound = key == "expected" and claim["rule"] in ("above", "below")
    shown = _with_unit(claim, claim[key])
    return text(f"claim.{claim['rule']}", value=shown) if bound else shown


def claim_sides(claim: dict[str, Any]) -> list[list[str]]:
    """How a claim was settled, and what came out: a row, or one for each side of the condition that decides it."""
    found = text(f"claim.{claim.get('found', 'measured')}")
    sides = localized(claim, locale.current()).get("sides")
    if not sides:
        rows = [[found, claim_value(claim, "measured")]]
    else:
        rows = [
            [
                text("claim.told", name=found, what=escape(side["what"][locale.current()])),
                _with_unit(claim, side["value"]),
            ]
            for side in sides
        ]
    if seeds := claim.get("seeds"):
        share = agreeing(claim["rule"], claim["expected"], claim["measured"], seeds)
        rows.append([text("claim.seeds"), text("claim.share", same=share, of=len(seeds))])
    return rows


def claim_control(claim: dict[str, Any]) -> str:
    """What the control gave, and what it had to be, as HTML."""
    control = localized(claim, locale.current())["control"]
    shown = _with_unit(claim, control["value"])
    if control.get("within") is not None:
        low, high = map(_value, control["within"])
        return text("claim.within", value=shown, low=low, high=high)
    if control.get("known") is not None:
        return text("claim.known", value=shown, known=_with_unit(claim, control["known"]))
    return shown


def _with_unit(claim: dict[str, Any], value: Any) -> str:
    unit = localized(claim, locale.current())["unit"]
    *first, last = value if isinstance(value, list) else [value]
    return ", ".join([*map(_value, first), _value(last, unit)])


def verdict_html(claim: dict[str, Any]) -> str:
    """The verdict of a claim as a marked word, with its condition."""
    cls, mark = _VERDICTS[claim["verdict"]]
    word = _marked(cls, mark, text(f"claim.{claim['verdict']}"))
    if not claim.get("depends") or claim["verdict"] != "depends":
        return word
    condition = escape(claim["depends"][locale.current()])
    what = f'<span class="ct-claims__condition">{condition}</span>'
    return text("claim.told", name=word, what=what)


def _pictures(shown: list[dict[str, Any]]) -> str:
    figures = (
        f'<figure class="ct-picture">{pictures.image(one)}<figcaption>{label_html(one["name"])}</figcaption></figure>'
        for one in shown
    )
    return f'<div class="ct-pictures">{"".join(figures)}</div>'


Shown = Callable[[Any], str]
_EACH: dict[str, Shown] = {
    "claim": _claim,
    "series": _series,
    "benchmark": _benchmark,
    "goals": _goals,
    "resources": _resources,
    "profile": _profile,
    "facts": _facts,
    "table": _table,
}
_TOGETHER: dict[str, Shown] = {
    "stream": _streams,
    "check": _checks,
    "sanitizer": _sanitizers,
    "picture": _pictures,
}


# --- small pieces --------------------------------------------------------------------------------


def table_html(head: Any, rows: Any, caption: str = "", words: tuple[int, ...] = (0,)) -> str:
    """Return a table that scrolls by itself; the columns in `words` are text, the others numbers.

    Most cells are numbers: those of words are marked.
    """
    top = ""
    if head:
        cells = "".join(
            f'<th{"" if i in words else _NUMBER} scope="col">{cell}</th>'
            for i, cell in enumerate(head)
        )
        top = f"<thead><tr>{cells}</tr></thead>"
    body = "".join(
        f'<tr><th scope="row">{first}</th>'
        + "".join(
            f"<td{_WORD if i in words else ''}>{cell}</td>" for i, cell in enumerate(others, 1)
        )
        + "</tr>"
        for first, *others in rows
    )
    title = f"<caption>{caption}</caption>" if caption else ""
    return (
        f'<div class="ct-scroll" tabindex="0"><table class="ct-table">{title}{top}'
        f'<tbody class="ct-amounts">{body}</tbody></table></div>'
    )


_NUMBER, _WORD = ' class="n"', ' class="w"'


def folded(summary: str, body: str) -> str:
    """A fold of ours: numbers behind a chart, the parts of a certificate."""
    return f'<details class="ct-numbers"><summary>{summary}</summary>{body}</details>'


def _marked(cls: str, mark: str, words: str) -> str:
    return f'<span class="ct-{cls}">{mark} {words}</span>'


def _value(value: bool | float | str, unit: str | None = None) -> str:
    if isinstance(value, bool):
        shown = text("facts.yes" if value else "facts.no")
    elif isinstance(value, str):
        shown = label_html(value)
    else:
        shown = f"{value:,}" if isinstance(value, int) else number(value)
    if not unit:
        return shown
    close = unit.startswith(("%", "（"))
    return f"{shown}{'' if close else ' '}{escape(symbol(unit))}"


def label_html(label: str) -> str:
    """A label as HTML; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r'<code class="ct-code">\1</code>', escape(label))


def _unmarked(result: dict[str, Any]) -> dict[str, Any]:
    """A result for a chart, whose words have no marks of code."""
    return relabeled(result, lambda label: label.replace("`", ""))


def _maybe(value: Any, shown: Callable[[Any], str]) -> str:
    return "–" if value is None else shown(value)


def code_html(value: str) -> str:
    """Code in a line of text, as HTML."""
    return f'<code class="ct-code">{escape(value, quote=False)}</code>'
