"""The birth certificate of recordings: where they ran, on what code, with which instrument, and beside which rivals."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from cudatut.recording import DIRTY, Recording
from cudatut.site import locale, localize, state
from cudatut.site.charts import number
from cudatut.site.locale import text
from cudatut.site.localize import current as labels
from cudatut.site.localize import localized
from cudatut.site.render import code_html, folded, label_html

# Grounds on which a changed file was accepted (cudatut/restamp/grounds.py), in the order in which they are told.
_GROUNDS = ("code", "meaning", "moved")


def certificate_html(records: Sequence[Recording], lang: str) -> str:
    """Return the birth certificates of the recordings on one page as folds in language `lang`; "" for none.

    The first line says GPU and date; opened, it lists driver, CUDA, PyCUDA, commit and the rest of each. What a recording
    does not say, such as an older one the instrument, has no line.
    """
    if not records:
        return ""
    with locale.using(lang):
        body = "".join(_certificate(one, named=len(records) > 1) for one in records)
        how = f'<a href="{state.current().link("book/")}">{text("certificate.how")}</a>'
        # An element of its own around the folds: the search leaves it out.
        return (
            f'<aside class="ct-made"><details class="ct-certificate"><summary>{recorded_on(records)}</summary>'
            f"<p>{text('certificate.title', how=how)}</p>{body}</details></aside>"
        )


def recorded_on(records: Iterable[Recording]) -> str:
    """The GPUs of these recordings, and the day of the newest, as HTML."""
    several = list(records)
    gpus = " / ".join(dict.fromkeys(one.gpu for one in several))
    newest = max(_moment(one.metadata) for one in several)
    return text("certificate.summary", gpu=escape(gpus), date=newest[:10])


def _certificate(record: Recording, named: bool) -> str:
    one = record.metadata
    gpu, tools = one["gpu"], one["toolchain"]
    joint = text("certificate.joint")
    # All of them: a recording with an error is refused before.
    clean = joint.join(escape(entry["tool"]) for entry in one["sanitizers"])
    passed = f'<span class="ct-pass">{text("certificate.clean", tools=clean)}</span>'
    detail = text(
        "certificate.gpu_detail",
        name=gpu["name"],
        cc=gpu["compute_capability"],
        sm=gpu["sm_count"],
        memory=f"{gpu['memory_bytes'] / 2**30:.1f} GiB",
    )
    with localize.of(one["name"]):
        kernels = _kernels(record)
    rivals = (f"{name} {version}" for name, version in one.get("rivals", {}).items())
    rows = {
        "example": code_html(one["name"]) if named else "",
        "gpu": escape(detail),
        "driver": escape(gpu["driver"]),
        **{
            key: escape(tools.get(key) or "")
            for key in ("cuda", "nvcc", "pycuda", "python", "numpy")
        },
        "rivals": escape(joint.join(rivals)),
        "kernels": kernels,
        "recorded": _moment(one),
        "commit": _commit(one) + "".join(map(_restamp, one.get("restamped", []))),
        "instrument": joint.join(_numbers(one.get("instrument", {}))),
        "duration": text("certificate.seconds", value=number(one["duration_s"])),
        "sanitizers": passed if clean else "",
    }
    cells = "".join(
        f"<dt>{text(f'certificate.{key}')}</dt><dd>{value}</dd>"
        for key, value in rows.items()
        if value
    )
    return f"<dl>{cells}</dl>"


def _moment(one: dict[str, Any]) -> str:
    moment = dt.datetime.fromisoformat(one["recorded_at"]).astimezone(dt.UTC)
    return moment.strftime("%Y-%m-%d %H:%M UTC")


# --- the code ------------------------------------------------------------------------------------


def _commit(one: dict[str, Any]) -> str:
    """At which commit it was measured, and at which its sources were last found to be equal in effect."""
    made, restamped = one["commit"], one.get("restamped", [])
    if not made:
        return ""
    shown = _short(made.removesuffix(DIRTY)) if made != "unknown" else text("certificate.unknown")
    if made.endswith(DIRTY):
        uncommitted = f'<span class="ct-note">{text("certificate.uncommitted")}</span>'
        shown = text("certificate.dirty", commit=shown, uncommitted=uncommitted)
    if not restamped:
        return shown
    return text("certificate.equal", made=shown, equal=_short(restamped[-1]["to"]))


def _short(commit: str) -> str:
    return code_html(commit[:12])


def _restamp(one: dict[str, Any]) -> str:
    """What changed between two commits without effect, folded away: the files by the ground on which they were accepted."""
    files = one["files"]
    known = dict.fromkeys([*_GROUNDS, *(file["ground"] for file in files.values())])
    groups = [
        (_ground(ground), names)
        for ground in known
        for names in _files({n: file for n, file in files.items() if file["ground"] == ground})
    ]
    groups.append((text("certificate.added"), list(map(code_html, one.get("added", [])))))
    items = "".join(
        f"<li>{text('certificate.told', what=what, names=text('certificate.joint').join(names))}</li>"
        for what, names in groups
        if names
    )
    span = {"then": _short(one["from"]), "now": _short(one["to"])}
    summary = text("certificate.changed", count=len(files), **span)
    return folded(summary, f"<ul>{items}</ul>")


def _ground(ground: str) -> str:
    return text(f"certificate.grounds.{ground}") if ground in _GROUNDS else code_html(ground)


def _files(files: dict[str, dict[str, Any]]) -> Iterator[list[str]]:
    """Lists of files: of those that went into another folder together and kept their names, then all others."""
    into: dict[str, list[str]] = {}
    for name, entry in files.items():
        folder, _, last = entry.get("as", "").rpartition("/")
        if folder and last == name.rpartition("/")[2]:
            into.setdefault(folder, []).append(name)
    together = {folder: names for folder, names in into.items() if len(names) > 1}
    for folder, names in together.items():
        *most, last = map(code_html, names)
        yield [*most, f"{last} → {code_html(f'{folder}/')}"]
    told = {name for names in together.values() for name in names}
    yield [_file(name, entry) for name, entry in files.items() if name not in told]


def _file(name: str, entry: dict[str, Any]) -> str:
    """The name of a file, and what became of it where it has another one now, or none."""
    if "now" not in entry:
        return text("certificate.gone", name=code_html(name))
    moved = f" → {code_html(entry['as'])}" if "as" in entry else ""
    return code_html(name) + moved


# --- the measuring -------------------------------------------------------------------------------


def _numbers(instrument: dict[str, Any]) -> Iterator[str]:
    """Each aspect of the instrument with its number, such as 'timing 1'."""
    known = locale.words(locale.current())["certificate"]["aspects"]
    for aspect, number_ in instrument.get("numbers", {}).items():
        yield escape(f"{known.get(aspect, aspect)} {number_}")


def _kernels(record: Recording) -> str:
    """The kernels that rivals launched, folded away: by rival, and for each set of kernels the contests it took part in."""
    lang = locale.current()
    launched: dict[str, dict[tuple[str, ...], dict[str, None]]] = {}
    for result in (result for cell in record.cells for result in cell.results()):
        if result["kind"] != "benchmark" or not any(row.get("kernels") for row in result["rows"]):
            continue
        contest = localized(result, lang)
        for row in contest["rows"]:
            if row.get("kernels"):
                contests = launched.setdefault(row["name"], {})
                contests.setdefault(tuple(row["kernels"]), {})[contest["name"] or ""] = None
    # Those of rivals that were measured otherwise, in turns of a chapter's own.
    for name, kernels in record.metadata.get("launched", {}).items():
        sets = launched.get(rival := name if lang == "en" else labels().chinese(name), {})
        told = {kernel for one in sets for kernel in one}
        if rest := tuple(kernel for kernel in kernels if kernel not in told):
            launched.setdefault(rival, sets)[rest] = {}
    names = {name for sets in launched.values() for kernels in sets for name in kernels}
    items = "".join(
        f"<li>{label_html(rival)}<ul>{''.join(map(_contests, sets.values(), sets))}</ul></li>"
        for rival, sets in launched.items()
    )
    summary = text("certificate.launched", count=len(names))
    return folded(summary, f"<ul>{items}</ul>") if launched else ""


def _contests(contests: Iterable[str], kernels: Iterable[str]) -> str:
    joint = text("certificate.joint")
    shown = joint.join(map(label_html, filter(None, contests)))
    names = joint.join(map(code_html, kernels))
    return f"<li>{text('certificate.told', what=shown, names=names) if shown else names}</li>"
