"""What readers' GPUs measured, on a page: every file of `results/`, side by side, each with its birth certificate.

    from cudatut.site import results
    print(results.scoreboard("gemm"))     # the ladder's scoreboard on every GPU
    print(results.tuned("gemm"))          # what tuning chose on each, beside the untuned choice

A file that is damaged or foreign fails the build, named with its reason. Results of kernels that have changed since are
shown with the commit they belong to, and marked.
"""

from __future__ import annotations

from html import escape
from typing import Any

from cudatut import gpu_results
from cudatut.errors import CudatutError
from cudatut.site import state
from cudatut.site.charts import number, percent
from cudatut.site.locale import current, text
from cudatut.site.render import certificate_html, table_html
from cudatut.site.sweep import series_svg


def scoreboard(ladder: str) -> str:
    """The scoreboard of a ladder on every GPU that has one: who leads, a chart over the sizes, and all the numbers."""
    found = [gpu for gpu in _files() if ladder in gpu["scoreboards"]]
    return scoreboard_html(ladder, found)


def tuned(ladder: str) -> str:
    """What tuning chose on every GPU, beside the untuned choice and the vendor's library."""
    found = [gpu for gpu in _files() if gpu["tuned"].get(ladder)]
    return tuned_html(ladder, found)


def _files() -> list[dict[str, Any]]:
    try:
        return gpu_results.load_all()
    except CudatutError as error:
        state.current().report(error)
        return []


def scoreboard_html(ladder: str, gpus: list[dict[str, Any]]) -> str:
    """The contents of files with a scoreboard of this ladder as HTML in the page's language."""
    lang = current()
    t = lambda key, **kw: text(f"results.{key}", lang, **kw)  # noqa: E731
    if not gpus:
        return _none(f"python -m cudatut results {ladder}", lang)
    head = [t(key) for key in ("gpu", "size", "first", "rate", "of_vendor", "of_limit", "date")]
    rows, details = [], []
    for gpu in gpus:
        board = gpu["scoreboards"][ladder]
        last = board["contests"][-1]
        best = _best(last["benchmark"])
        rows.append(
            [
                escape(gpu["gpu"]["name"]) + _mark(board, lang),
                escape(_size(last["size"])),
                escape(best["name"]),
                _rate(best, last["benchmark"]),
                _share(best["ratio_to_vendor"]),
                _share(best["of_peak"]),
                _date(board),
            ]
        )
        details.append(_details(gpu["gpu"]["name"], board, lang))
    table = table_html(head, rows, caption=t("caption"), words=(0, 2, 6))
    return f'<div class="ct-results">{table}{_chart(ladder, gpus, lang)}{"".join(details)}</div>'


def tuned_html(ladder: str, gpus: list[dict[str, Any]]) -> str:
    """The contents of files with tuned choices as HTML in the page's language."""
    lang = current()
    t = lambda key, **kw: text(f"results.{key}", lang, **kw)  # noqa: E731
    if not gpus:
        return _none(f"python -m cudatut tune {ladder}", lang)
    head = [t(k) for k in ("gpu", "size", "choice", "rate", "untuned", "of_vendor", "candidates")]
    rows, certificates = [], []
    for gpu in gpus:
        for entry in gpu["tuned"][ladder].values():
            by_name = {row["name"]: row for row in entry["benchmark"]["rows"]}
            best = by_name["tuned"]
            untuned = by_name.get("default")
            rows.append(
                [
                    escape(gpu["gpu"]["name"]) + _mark(entry, lang),
                    escape(_size(entry["size"])),
                    f'<code class="ct-code">{escape(_choice(entry["choice"]))}</code>',
                    _rate(best, entry["benchmark"]),
                    _rate(untuned, entry["benchmark"]) if untuned else t("same"),
                    _share(best["ratio_to_vendor"]),
                    f"{entry['search'][0]['left']:,}" if entry["search"] else "–",
                ]
            )
        newest = max(
            gpu["tuned"][ladder].values(), key=lambda one: one["certificate"]["recorded_at"]
        )
        certificates.append(certificate_html(newest["certificate"], lang))
    table = table_html(head, rows, caption=t("tuned_caption"), words=(0, 2))
    return f'<div class="ct-results">{table}{"".join(certificates)}</div>'


def _none(command: str, lang: str) -> str:
    return f"<p>{text('results.none', lang, command=f'<code>{escape(command)}</code>')}</p>"


def _best(benchmark: dict[str, Any]) -> dict[str, Any]:
    own = [row for row in benchmark["rows"] if not row["vendor"]] or benchmark["rows"]
    return min(own, key=lambda row: row["median_us"])


def _vendor(benchmark: dict[str, Any]) -> dict[str, Any] | None:
    rows = [row for row in benchmark["rows"] if row["vendor"]]
    return min(rows, key=lambda row: row["median_us"]) if rows else None


def _rate(row: dict[str, Any], benchmark: dict[str, Any]) -> str:
    if row["value"] is None:
        return f"{number(row['median_us'])} µs"
    return f"{number(row['value'])} {escape(benchmark['unit'])}"


def _share(value: float | None) -> str:
    return "–" if value is None else percent(value)


def _date(entry: dict[str, Any]) -> str:
    return escape(entry["certificate"]["recorded_at"][:10])


def _mark(entry: dict[str, Any], lang: str) -> str:
    files = gpu_results.changed(entry)
    if not files:
        return ""
    words = text("results.changed", lang, files=", ".join(files))
    return f' <abbr title="{escape(words)}">†</abbr>'


def _size(size: dict[str, Any]) -> str:
    """'4096' for a cube, else '4096 × 1024 × 512'."""
    values = list(dict.fromkeys(size.values()))
    return str(values[0]) if len(values) == 1 else " × ".join(map(str, size.values()))


def _choice(choice: dict[str, Any]) -> str:
    """Numbers of a choice, in short: 'bm=128 bn=256 ...'."""
    return " ".join(f"{key}={value}" for key, value in choice.items())


def _chart(ladder: str, gpus: list[dict[str, Any]], lang: str) -> str:
    """The best rung and the vendor's library of each GPU over the sizes, where the sizes are cubes or lengths."""
    lines: dict[str, list[tuple[float, float]]] = {}
    unit = gpus[0]["scoreboards"][ladder]["contests"][0]["benchmark"]["unit"]
    for gpu in gpus:
        name = gpu["gpu"]["name"].removeprefix("NVIDIA ").removeprefix("GeForce ")
        for contest in gpu["scoreboards"][ladder]["contests"]:
            extents = {value for value in contest["size"].values() if isinstance(value, int)}
            bench = contest["benchmark"]
            if len(extents) != 1 or bench["unit"] != unit:
                continue
            x, vendor = extents.pop(), _vendor(bench)
            for row, who in (
                (_best(bench), text("results.best", lang)),
                (vendor, vendor and vendor["name"]),
            ):
                if row and row["value"] is not None:
                    lines.setdefault(f"{name}: {who}", []).append((x, row["value"]))
    if not any(len(line) > 1 for line in lines.values()):
        return ""
    title = text("results.chart", lang)
    result = {
        "title": title,
        "x": {"name": text("results.size", lang), "unit": ""},
        "y": {"name": text("results.rate", lang), "unit": unit},
        "lines": {name: sorted(line) for name, line in lines.items()},
        "limit": None,
    }
    return (
        f'<figure class="ct-bench"><figcaption>{escape(title)}</figcaption>'
        f'<div class="ct-scroll" tabindex="0">{series_svg(result, lang)}</div></figure>'
    )


def _details(gpu: str, board: dict[str, Any], lang: str) -> str:
    """All numbers of one GPU, folded away: rungs downwards, sizes to the right; then its certificate."""
    contests = board["contests"]
    unit = contests[0]["benchmark"]["unit"]
    names = dict.fromkeys(row["name"] for one in contests for row in one["benchmark"]["rows"])
    tables = [{row["name"]: row for row in one["benchmark"]["rows"]} for one in contests]
    head = [
        f"{text('results.rung', lang)} ({escape(unit)})",
        *(escape(_size(one["size"])) for one in contests),
    ]
    rows = []
    for name in names:
        cells = [table.get(name) for table in tables]
        vendor = next(row for row in cells if row)["vendor"]
        label = escape(name) + (f" ({text('benchmark.vendor', lang)})" if vendor else "")
        values = [number(row["value"] or row["median_us"]) if row else "–" for row in cells]
        rows.append([label, *values])
    out = "".join(
        f"<li>{escape(name)}: {escape(why)}</li>" for name, why in board["left_out"].items()
    )
    left_out = f"<p>{text('results.left_out', lang)}</p><ul>{out}</ul>" if out else ""
    return (
        f'<details class="ct-numbers"><summary>{escape(gpu)}</summary>{table_html(head, rows)}{left_out}</details>'
        f"{certificate_html(board['certificate'], lang)}"
    )
