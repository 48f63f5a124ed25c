"""Recorded outputs as HTML in the page's language, their labels too: tables, charts, streams, birth certificates.

Only results that travel as data (schema v1) and text streams are rendered; a notebook's own HTML or
images are not. Everything that comes from a recording is escaped. What is unknown or damaged raises
ValueError naming it: the page it would be on is then not built.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import groupby
from typing import Any

from cudatut.results import MIME, validate
from cudatut.site.charts import benchmark_svg, in_brackets, number, percent, row_name, symbol
from cudatut.site.locale import text
from cudatut.site.localize import localized, relabeled
from cudatut.site.sweep import axis_words, series_svg

_VERDICTS = {
    "confirmed": ("pass", "✓"),
    "refuted": ("fail", "✗"),
    "depends": ("note", "≈"),
    "open": ("note", "="),
}


def results_html(
    outputs: Iterable[dict[str, Any]], lang: str, gpus: Sequence[tuple[str, list]] = ()
) -> str:
    """Return the HTML of one cell's outputs (a list of nbformat outputs) in language `lang`.

    gpus: (GPU, results of the same cell there) of the GPU that the outputs are of, first, and of others; charts then
    offer them as a choice.
    Consecutive streams are joined, consecutive checks and sanitizer reports share
    a table. Returns "" for a cell without outputs. Raises ValueError for an error output, for a
    kind that schema v1 does not have, and for a result that lacks a field or has one of the wrong
    type.
    """
    items = [_item(output, index, lang) for index, output in enumerate(outputs)]
    items = [item for item in items if item is not None]
    parts = []
    charts = Counter()
    for kind, group in groupby(items, key=lambda item: item[0]):
        payloads = [payload for _, payload in group]
        if kind in _TOGETHER:
            parts.append(_TOGETHER[kind](payloads, lang))
            continue
        for payload in payloads:
            shown = _EACH[kind](payload, lang)
            if kind in _CHARTS and len(gpus) > 1:
                shown = _by_gpu(kind, charts[kind], shown, lang, gpus)
            charts[kind] += 1
            parts.append(shown)
    body = "".join(parts)
    if not body:
        return ""
    label = escape(text("output.label", lang))
    return f'<div class="ct-result" role="group" aria-label="{label}">{body}</div>'


_CHARTS = ("benchmark", "series")


def _by_gpu(kind: str, index: int, shown: str, lang: str, gpus: Sequence[tuple[str, list]]) -> str:
    """A chart with the GPU as a choice: the same result, by its kind and place in the cell, of each GPU that has it."""
    (own, _), *others = gpus
    charts = [(own, shown)]
    for name, results in others:
        same = [result for result in results if result["kind"] == kind]
        if index < len(same):
            charts.append((name, _EACH[kind](localized(same[index], lang), lang)))
    if len(charts) == 1:
        return shown
    group = f"gpu-{hashlib.sha256(''.join(chart for _, chart in charts).encode()).hexdigest()[:8]}"
    choices = "".join(
        f'<label><input type="radio" name="{group}" value="{escape(name)}"{" checked" * (i == 0)}> '
        f"{escape(name.removeprefix('NVIDIA '))}</label>"
        for i, (name, _) in enumerate(charts)
    )
    panes = "".join(f'<div class="ct-gpu">{chart}</div>' for _, chart in charts)
    label = escape(text("output.gpu", lang))
    return (
        f'<div class="ct-gpus"><fieldset class="ct-gpus__choice"><legend>{label}</legend>{choices}</fieldset>'
        f"{panes}</div>"
    )


def _item(output: dict[str, Any], index: int, lang: str) -> tuple[str, Any] | None:
    """Return (kind, payload) of one nbformat output, or None where it holds nothing to show.

    A result's labels are in `lang`.
    """
    kind = output.get("output_type")
    if kind == "stream":
        value = output.get("text", "")
        value = "".join(value) if isinstance(value, list) else value
        return ("stream", value) if value.strip() else None
    if kind == "error":
        what = f"{output.get('ename')}: {output.get('evalue')}"
        raise ValueError(f"output {index} is an error ({what}); errors are never rendered")
    if kind not in ("display_data", "execute_result"):
        raise ValueError(f"output {index} has the unknown type {kind!r}")
    data = output.get("data")
    if not isinstance(data, dict):
        raise ValueError(f"output {index} ({kind}) has no data")
    if MIME in data:
        result = data[MIME]
        validate(result)
        return result["kind"], localized(result, lang)
    if kind == "execute_result":  # a notebook prints the last expression's value, a script does not
        return None
    if "text/plain" in data:
        value = data["text/plain"]
        return "stream", ("".join(value) if isinstance(value, list) else value) + "\n"
    raise ValueError(f"output {index} ({kind}) has no {MIME} and no text: {sorted(data)}")


# --- one function per kind -----------------------------------------------------------------------


def _streams(texts: list[str], lang: str) -> str:
    value = "".join(texts).rstrip()
    return f'<pre class="ct-output" tabindex="0">{escape(value, quote=False)}</pre>'


def _checks(checks: list[dict[str, Any]], lang: str) -> str:
    head = [text(f"check.{c}", lang) for c in ("name", "result", "n", "max_abs_err", "tolerance")]
    rows = []
    for check in checks:
        passed = check["passed"]
        verdict = text("check.passed" if passed else "check.failed", lang)
        mark = f'<span class="ct-{"pass" if passed else "fail"}">{"✓" if passed else "✗"} {verdict}</span>'
        rows.append(
            [
                _label(check["name"] or "–"),
                mark,
                f"{check['n']:,}",
                _error(check["max_abs_err"]),
                _tolerance(check, lang),
            ]
        )
    caption = text("check.caption", lang)
    if len(checks) <= _MANY or not all(check["passed"] for check in checks):
        return table_html(head, rows, caption=caption, words=(0, 1))
    words = text(
        "check.all_passed",
        lang,
        count=len(checks),
        error=_error(max(check["max_abs_err"] for check in checks)),
    )
    return (
        f'<details class="ct-numbers"><summary><span class="ct-pass">✓ {words}</span></summary>'
        f"{table_html(head, rows, words=(0, 1))}</details>"
    )


_MANY = 8  # more checks than these, all passed, are folded into a line


def _tolerance(check: dict[str, Any], lang: str) -> str:
    if not check["atol"] and not check["rtol"]:
        return text("check.exact", lang)
    parts = [(check["atol"], "atol"), (check["rtol"], "rtol")]
    return ", ".join(f"{name} {_error(value)}" for value, name in parts if value)


def _error(value: float) -> str:
    return "0" if value == 0 else f"{value:.2g}"


def _benchmark(result: dict[str, Any], lang: str) -> str:
    svg = benchmark_svg(_unmarked(result), lang)
    rows = result["rows"]
    t = lambda key: text(f"benchmark.{key}", lang)  # noqa: E731
    columns: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        (t("candidate"), lambda r: _label(row_name(r, lang))),
        (in_brackets(t("time"), "µs", lang), lambda r: number(r["median_us"])),
        (
            in_brackets(t("spread"), "µs", lang),
            lambda r: f"{number(r['p20_us'])} – {number(r['p80_us'])}",
        ),
    ]
    if result["unit"] != "us":
        columns.append((escape(result["unit"]), lambda r: _maybe(r["value"], number)))
    if any(row["of_peak"] is not None for row in rows):
        columns.append((t("of_peak"), lambda r: _maybe(r["of_peak"], percent)))
    if any(row["ratio_to_vendor"] is not None for row in rows):
        columns.append((t("ratio"), lambda r: _maybe(r["ratio_to_vendor"], percent)))
    table = table_html(
        [head for head, _ in columns], [[cell(row) for _, cell in columns] for row in rows]
    )
    caption = f"<figcaption>{_label(result['name'])}</figcaption>" if result["name"] else ""
    return (
        f'<figure class="ct-bench">{caption}<div class="ct-scroll" tabindex="0">{svg}</div>'
        f'<details class="ct-numbers"><summary>{text("table.numbers", lang)}</summary>{table}</details>'
        "</figure>"
    )


def _resources(result: dict[str, Any], lang: str) -> str:
    none = text("resources.none", lang)
    size = lambda n: f"{n:,} B" if n else none  # noqa: E731
    rows = [
        [text("resources.registers", lang), str(result["registers"])],
        [text("resources.shared_bytes", lang), size(result["shared_bytes"])],
        [text("resources.spill_bytes", lang), size(result["spill_bytes"])],
        [text("resources.occupancy", lang), percent(result["occupancy"])],
    ]
    if result.get("block"):
        rows.insert(0, [text("resources.block", lang), f"{result['block']:,}"])
    if result.get("blocks_per_sm"):
        rows.insert(-1, [text("resources.blocks_per_sm", lang), f"{result['blocks_per_sm']:,}"])
    caption = text("resources.caption", lang, kernel=_code(result["kernel"]))
    return table_html(None, rows, caption=caption)


def _profile(result: dict[str, Any], lang: str) -> str:
    head = [text("profile.metric", lang), text("profile.value", lang)]
    rows = [[_code(name), _value(m, lang)] for name, m in result["metrics"].items()]
    caption = text("profile.caption", lang, kernel=_code(result["kernel"]))
    return table_html(head, rows, caption=caption)


def _sanitizers(results: list[dict[str, Any]], lang: str) -> str:
    head = [text("sanitizer.tool", lang), text("sanitizer.errors", lang)]
    rows = [
        [
            _code(r["tool"]),
            f'<span class="ct-fail">✗ {r["errors"]:,}</span>'
            if r["errors"]
            else f'<span class="ct-pass">✓ {text("sanitizer.clean", lang)}</span>',
        ]
        for r in results
    ]
    return table_html(head, rows, caption=text("sanitizer.caption", lang), words=(0, 1))


def _facts(result: dict[str, Any], lang: str) -> str:
    rows = [[_label(row["name"]), _value(row, lang)] for row in result["rows"]]
    return table_html(None, rows, caption=_label(result["title"] or ""))


def _table(result: dict[str, Any], lang: str) -> str:
    columns = result["columns"]
    heads = [
        c["name"]
        if not c["unit"] or c["unit"] == c["name"]
        else in_brackets(c["name"], symbol(c["unit"]), lang)
        for c in columns
    ]
    rows = [
        [
            _label(row["name"]),
            *(
                "–" if v is None else _value({"value": v, "unit": None}, lang)
                for v in row["values"]
            ),
        ]
        for row in result["rows"]
    ]
    words = [
        i
        for i in range(len(columns))
        if any(isinstance(row["values"][i], str) for row in result["rows"])
    ]
    return table_html(
        [_label(name) for name in (result["corner"], *heads)],
        rows,
        caption=_label(result["title"]),
        words=(0, *(i + 1 for i in words)),
    )


def _claim(result: dict[str, Any], lang: str) -> str:
    t = lambda key: text(f"claim.{key}", lang)  # noqa: E731
    rows = [
        [t("statement"), escape(result["statement"][lang])],
        [t("place"), claim_place(result, lang)],
        *([t(key), claim_value(result, key, lang)] for key in ("expected", "measured")),
        [
            text(
                "claim.told", lang, name=t("control"), what=escape(result["control"]["what"][lang])
            ),
            claim_value(result, "control", lang),
        ],
        [t("verdict"), verdict_html(result, lang)],
    ]
    caption = text("claim.caption", lang, source=escape(result["source"]))
    return table_html(None, rows, caption=caption, words=(0, 1))


def claim_place(claim: dict[str, Any], lang: str) -> str:
    """Where in its source a claim stands, and whether it is said, printed or code."""
    form = text(f"claim.{claim['form']}", lang)
    return text("claim.where", lang, place=escape(claim["place"][lang]), form=form)


def claim_value(claim: dict[str, Any], key: str, lang: str) -> str:
    """The value of a claim under `key` ("expected", "measured", "control") with its unit, as HTML."""
    claim = localized(claim, lang)
    value = claim["control"]["value"] if key == "control" else claim[key]
    several = value if isinstance(value, list) else [value]
    *first, last = ({"value": one, "unit": None} for one in several)
    last["unit"] = claim["unit"]
    shown = ", ".join(_value(one, lang) for one in (*first, last))
    bound = key == "expected" and claim["rule"] in ("above", "below")
    return text(f"claim.{claim['rule']}", lang, value=shown) if bound else shown


def verdict_html(claim: dict[str, Any], lang: str) -> str:
    """The verdict of a claim as a marked word, with its condition."""
    cls, mark = _VERDICTS[claim["verdict"]]
    word = text(f"claim.{claim['verdict']}", lang)
    if not claim.get("depends"):
        return f'<span class="ct-{cls}">{mark} {word}</span>'
    return text(
        "claim.told",
        lang,
        name=f'<span class="ct-{cls}">{mark} {word}</span>',
        what=f'<span class="ct-claims__condition">{escape(claim["depends"][lang])}</span>',
    )


def _series(result: dict[str, Any], lang: str) -> str:
    lines = {name: dict(line) for name, line in result["lines"].items()}
    positions = sorted({x for line in lines.values() for x in line})
    x, y = (_label(axis_words(result[axis], lang)) for axis in "xy")
    head = [x, *(_label(name) for name in lines)]
    rows = [
        [number(at), *(_maybe(line.get(at), number) for line in lines.values())] for at in positions
    ]
    table = table_html(head, rows, caption=y)
    return (
        f'<figure class="ct-bench"><figcaption>{_label(result["title"])}</figcaption>'
        f'<div class="ct-scroll" tabindex="0">{series_svg(_unmarked(result), lang)}</div>'
        f'<details class="ct-numbers"><summary>{text("table.numbers", lang)}</summary>{table}</details>'
        "</figure>"
    )


_EACH = {
    "claim": _claim,
    "series": _series,
    "benchmark": _benchmark,
    "resources": _resources,
    "profile": _profile,
    "facts": _facts,
    "table": _table,
}
_TOGETHER = {"stream": _streams, "check": _checks, "sanitizer": _sanitizers}


# --- the birth certificate -----------------------------------------------------------------------


def certificate_html(metadata: dict[str, Any] | list[dict[str, Any]], lang: str) -> str:
    """Return the birth certificate of one recording, or of several on one page, as `<details>`.

    metadata: the `cudatut` object of a recording's notebook metadata, or a list of them. The first line says GPU and date;
    opened, it lists driver, CUDA, PyCUDA, commit and the rest of each. Returns "" for [].
    """
    several = metadata if isinstance(metadata, list) else [metadata]
    if not several:
        return ""
    newest = max(several, key=lambda one: _moment(one))
    gpus = " / ".join(dict.fromkeys(one["gpu"]["name"] for one in several))
    summary = text(
        "certificate.summary", lang, gpu=escape(gpus), date=_moment(newest).strftime("%Y-%m-%d")
    )
    body = "".join(_certificate(one, lang, named=len(several) > 1) for one in several)
    return (
        f'<details class="ct-certificate"><summary>{summary}</summary>'
        f"<p>{text('certificate.title', lang)}</p>{body}</details>"
    )


def _certificate(one: dict[str, Any], lang: str, named: bool) -> str:
    t = lambda key, **kw: text(f"certificate.{key}", lang, **kw)  # noqa: E731
    gpu, tools = one["gpu"], one["toolchain"]
    detail = t(
        "gpu_detail",
        name=escape(gpu["name"]),
        cc=escape(gpu["compute_capability"]),
        sm=gpu["sm_count"],
        memory=f"{gpu['memory_bytes'] / 2**30:.1f} GiB",
    )
    rows = [("gpu", detail), ("driver", gpu["driver"])]
    rows += [(key, tools.get(key)) for key in ("cuda", "nvcc", "pycuda", "python", "numpy")]
    rows.append(("recorded", _moment(one).strftime("%Y-%m-%d %H:%M UTC")))
    if one["commit"]:
        rows.append(("commit", _code(one["commit"][:12])))
    rows.append(("duration", t("seconds", value=number(one["duration_s"]))))
    if one["sanitizers"]:
        rows.append(("sanitizers", _sanitizer_line(one["sanitizers"], lang)))
    if named:
        rows.insert(0, ("example", _code(one["name"])))
    cells = "".join(
        f"<dt>{t(key)}</dt><dd>{value if key in _MARKED else escape(str(value))}</dd>"
        for key, value in rows
        if value
    )
    return f"<dl>{cells}</dl>"


_MARKED = {"gpu", "commit", "sanitizers", "example"}  # values that are HTML already


def _sanitizer_line(results: list[dict[str, Any]], lang: str) -> str:
    clean = [escape(r["tool"]) for r in results if not r["errors"]]
    lines = []
    if clean:
        tools = ("、" if lang == "zh" else ", ").join(clean)
        lines.append(f'<span class="ct-pass">{text("certificate.clean", lang, tools=tools)}</span>')
    for r in results:
        if r["errors"]:
            words = text("certificate.found", lang, tool=escape(r["tool"]), errors=r["errors"])
            lines.append(f'<span class="ct-fail">{words}</span>')
    return "<br>".join(lines)


def _moment(one: dict[str, Any]) -> dt.datetime:
    return dt.datetime.fromisoformat(one["recorded_at"]).astimezone(dt.UTC)


# --- small pieces --------------------------------------------------------------------------------


def table_html(head, rows, caption: str = "", words: tuple[int, ...] = (0,)) -> str:
    """Return a table that scrolls by itself; the columns in `words` are text, the others numbers."""
    cls = lambda i: "" if i in words else ' class="n"'  # noqa: E731
    top = ""
    if head:
        cells = "".join(f'<th{cls(i)} scope="col">{cell}</th>' for i, cell in enumerate(head))
        top = f"<thead><tr>{cells}</tr></thead>"
    body = "".join(
        "<tr>"
        + f'<th scope="row">{row[0]}</th>'
        + "".join(f"<td{cls(i)}>{cell}</td>" for i, cell in enumerate(row[1:], 1))
        + "</tr>"
        for row in rows
    )
    title = f"<caption>{caption}</caption>" if caption else ""
    return (
        f'<div class="ct-scroll" tabindex="0"><table class="ct-table">{title}{top}'
        f"<tbody>{body}</tbody></table></div>"
    )


def _value(row: dict[str, Any], lang: str) -> str:
    value, unit = row["value"], row["unit"]
    if isinstance(value, bool):
        shown = text("facts.yes" if value else "facts.no", lang)
    elif isinstance(value, str):
        shown = _label(value)
    elif isinstance(value, int):
        shown = f"{value:,}"
    else:
        shown = number(value)
    if not unit:
        return shown
    close = unit.startswith(("%", "（"))
    return f"{shown}{'' if close else ' '}{escape(symbol(unit))}"


def _label(label: str) -> str:
    """A label as HTML; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r'<code class="ct-code">\1</code>', escape(label))


def _unmarked(result: dict[str, Any]) -> dict[str, Any]:
    """A result for a chart, whose words have no marks of code."""
    return relabeled(result, lambda label: label.replace("`", ""))


def _maybe(value: float | None, shown: Callable[[float], str]) -> str:
    return "–" if value is None else shown(value)


def _code(value: str) -> str:
    return f'<code class="ct-code">{escape(value, quote=False)}</code>'
