"""The page 'Claims we ran': every claim that a recorded example settled, in the page's language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from cudatut import yaml_text
from cudatut.recording import Recording
from cudatut.results import GAIN, LEAD, SHARE, VERDICTS
from cudatut.site import contents, localize, notebooks, state
from cudatut.site.certificate import recorded_on
from cudatut.site.contents import Chapter, Part, chapter_of
from cudatut.site.locale import current, text
from cudatut.site.render import claim_control, claim_place, claim_sides, claim_value, verdict_html


@dataclass(frozen=True)
class Settled:
    """A claim, the recording and the cell that settled it, and the chapter that tells of it, if there is one."""

    claim: dict
    record: Recording
    cell: str
    part: Part | None
    chapter: Chapter | None


def settled(records: Iterable[Recording], parts: tuple[Part, ...]) -> list[Settled]:
    """All claims in `records`, in the order of the book and, within a chapter, of the example's cells.

    Raises ValueError for an id that two claims share.
    """
    found = []
    for record in records:
        part = next((part for part in parts if record.name.startswith(f"{part.id}/")), None)
        chapter = chapter_of(record.name, parts)
        found += [
            Settled(result, record, cell.title, part, chapter)
            for cell in record.cells
            for result in cell.results()
            if result["kind"] == "claim"
        ]
    several = [id for id, n in Counter(one.claim["id"] for one in found).items() if n > 1]
    if several:
        raise ValueError(
            f"claims need ids of their own, but these are used twice: {', '.join(sorted(several))}"
        )

    def place(one: Settled) -> tuple[float, float, str]:
        return (
            parts.index(one.part) if one.part else len(parts),
            one.part.chapters.index(one.chapter) if one.part and one.chapter else float("inf"),
            one.record.name,
        )

    return sorted(found, key=place)  # stable: within an example the cells' order stays


def table(but: Sequence[str] = ()) -> str:
    """The claims of the recordings as HTML: a line of totals, a table grouped by part, and where it was run.

    but: ids of parts that count in the totals and stand in a table of their own, by `table_of`.
    """
    found, gone = _standing()
    return table_html(found, [one for one in found if _id(one) not in but]) + _withdrawn(gone)


def table_of(part: str) -> str:
    """The claims of one part as a table alone."""
    rows = _table([one for one in _standing()[0] if _id(one) == part])
    return f'<div class="ct-claims-page">{rows}</div>'


def _standing() -> tuple[list[Settled], dict[str, dict[str, str]]]:
    """The claims that stand, and those that docs/claims.yml withdraws: id -> why, by language."""
    path = state.current().docs.parent / "claims.yml"
    gone = yaml_text.load(path.read_text(encoding="utf-8"))["withdrawn"] if path.exists() else {}
    found = settled(notebooks.recorded(), contents.load())
    return [one for one in found if one.claim["id"] not in gone], gone


def _withdrawn(gone: dict[str, dict[str, str]]) -> str:
    if not gone:
        return ""
    rows = "".join(f"<li>{escape(why[current()])}</li>" for why in gone.values())
    return f"<p>{text('claim.withdrawn')}</p><ul>{rows}</ul>"


def _id(one: Settled) -> str | None:
    return one.part.id if one.part else None


_COLUMNS = ("statement", "expected", "measured", "control", "verdict", "chapter")


def table_html(found: list[Settled], listed: list[Settled] | None = None) -> str:
    """The totals of `found` and a table of those that are `listed` (None: all), as HTML in the page's language."""
    where = ""
    if found:
        records = (one.record for one in found)
        where = f'<p class="ct-claims__where">{recorded_on(records)}</p>'
    rows = _table(found if listed is None else listed)
    return f'<div class="ct-claims-page"><p>{_totals(found)}</p>{rows}{where}</div>'


def _table(found: list[Settled]) -> str:
    heads = "".join(f'<th scope="col">{text(f"claim.{column}")}</th>' for column in _COLUMNS)
    bodies = "".join(_part(part, group) for part, group in groupby(found, lambda one: one.part))
    return f'<table class="ct-table ct-claims"><thead><tr>{heads}</tr></thead>{bodies}</table>'


def _totals(found: list[Settled]) -> str:
    counts = Counter(one.claim["verdict"] for one in found)
    each = text("claim.joint").join(
        f"{verdict_html({'verdict': verdict})} {counts[verdict]}"
        for verdict in VERDICTS
        if counts[verdict]
    )
    rule = text("claim.rule", gain=f"{GAIN:.0%}", lead=f"{LEAD:.0%}", share=f"{SHARE:.0%}")
    return f"{text('claim.totals', count=len(found), each=each)} {rule}"


def _part(part: Part | None, group: Iterable[Settled]) -> str:
    heading = ""
    if part:
        heading = (
            f'<tr class="ct-claims__part"><th colspan="6" scope="rowgroup">'
            f"{escape(part.title[current()])}</th></tr>"
        )
    rows = []
    for one in group:
        with localize.of(one.record.name):
            rows.append(_row(one))
    return f"<tbody>{heading}{''.join(rows)}</tbody>"


def _row(one: Settled) -> str:
    lang, claim, link = current(), one.claim, state.current().link
    where = link(f"examples/{one.record.name}/#cell-id={one.cell}")
    told = escape(one.record.metadata["title"][lang])
    if one.chapter and one.chapter.written:
        url = link(f"{one.chapter.part}/{one.chapter.id}/")
        told = f'<a href="{url}">{escape(one.chapter.title[lang])}</a>'
    control = escape(claim["control"]["what"][lang])
    cells = (
        claim_value(claim, "expected"),
        _measured(claim),
        f"{claim_control(claim)} <small>{control}</small>",
        verdict_html(claim),
        f'{told} <a class="ct-claims__code" href="{where}">{text("claim.code")}</a>',
    )
    # On a narrow screen a row becomes a list, and each value carries the name of its column.
    named = "".join(
        f'<td data-column="{text(f"claim.{column}")}">{cell}</td>'
        for column, cell in zip(_COLUMNS[1:], cells)
    )
    return (
        f'<tr id="{escape(claim["id"])}"><th scope="row">{escape(claim["statement"][lang])} '
        f'<span class="ct-claims__source">{escape(claim["source"])}, {claim_place(claim)}</span></th>'
        f"{named}</tr>"
    )


def _measured(claim: dict) -> str:
    """What came out on each side of a condition, and how it was found."""
    return "<br>".join(f"{value} <small>{what}</small>" for what, value in claim_sides(claim))
