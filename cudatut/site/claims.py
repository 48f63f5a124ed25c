"""The page 'Claims we ran': every claim that a recorded example settled, in the page's language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from itertools import groupby

from cudatut.recording import Recording
from cudatut.results import GAIN, LEAD, VERDICTS, validate
from cudatut.site import contents, missing, notebooks, state
from cudatut.site.contents import Chapter, Part
from cudatut.site.locale import current, text
from cudatut.site.render import claim_place, claim_value, verdict_html


@dataclass(frozen=True)
class Settled:
    """A claim, the example and cell that settled it, and the chapter that tells of it, if it is written."""

    claim: dict
    example: str
    title: dict[str, str]
    cell: str
    part: Part | None
    chapter: Chapter | None


def settled(records: Iterable[Recording], parts: tuple[Part, ...]) -> list[Settled]:
    """All claims in `records`, in the order of the book and, within a chapter, of the example's cells.

    Raises ValueError for an id that two claims share, and for a claim that is not whole.
    """
    order = [part.id for part in parts]
    found = []
    for record in records:
        part_id, stem = record.name.split("/", 1)
        part = next((p for p in parts if p.id == part_id), None)
        place, chapter = _chapter(part, stem)
        rank = (order.index(part_id) if part else len(order), place, record.name)
        for cell in record.cells:
            if cell.kind != "code":
                continue
            for result in record.results(cell.title):
                if result["kind"] == "claim":
                    validate(result)
                    one = Settled(
                        result, record.name, record.metadata["title"], cell.title, part, chapter
                    )
                    found.append((rank, one))
    found.sort(key=lambda item: item[0])  # stable: within an example the cells' order stays
    several = [id for id, n in Counter(one.claim["id"] for _, one in found).items() if n > 1]
    if several:
        raise ValueError(
            f"claims need ids of their own, but these are used twice: {', '.join(sorted(several))}"
        )
    return [one for _, one in found]


def _chapter(part: Part | None, stem: str) -> tuple[int, Chapter | None]:
    """The chapter of an example by its name (`naive_solutions` is of `naive`), and its place in the part.

    The chapter is None where the table of contents has none, or says that it is not written.
    """
    best = None
    for place, chapter in enumerate(part.chapters if part else ()):
        mine = stem == chapter.id or stem.startswith(f"{chapter.id}_")
        if mine and (best is None or len(chapter.id) > len(best[1].id)):
            best = place, chapter
    if best is None:
        return len(part.chapters) if part else 0, None
    return best[0], best[1] if best[1].written else None


def table() -> str:
    """The claims of the recordings as HTML: a line of totals, a table grouped by part, and where it was run.

    Recordings that may not be shown are left out here; the build has refused them already.
    """
    records = [r for r in notebooks.recorded() if not isinstance(r, missing.StandIn)]
    return table_html(settled(records, contents.load()), records)


def table_html(found: list[Settled], records: Iterable[Recording] = ()) -> str:
    """`found` as HTML in the page's language; `records` tell which GPUs ran them."""
    lang = current()
    head = ("statement", "expected", "measured", "control", "verdict", "chapter")
    cells = "".join(f'<th scope="col">{text(f"claim.{column}", lang)}</th>' for column in head)
    bodies = "".join(
        _part(part, list(group), lang) for part, group in groupby(found, key=lambda one: one.part)
    )
    return (
        f'<div class="ct-claims-page"><p>{_totals(found, lang)}</p>'
        f'<table class="ct-table ct-claims"><thead><tr>{cells}</tr></thead>{bodies}</table>'
        f"{_where(found, records, lang)}</div>"
    )


def _totals(found: list[Settled], lang: str) -> str:
    counts = Counter(one.claim["verdict"] for one in found)
    each = ("，" if lang == "zh" else ", ").join(
        f"{verdict_html({'verdict': verdict}, lang)} {counts[verdict]}"
        for verdict in VERDICTS
        if counts[verdict]
    )
    rule = text("claim.rule", lang, gain=f"{GAIN:.0%}", lead=f"{LEAD:.0%}")
    return f"{text('claim.totals', lang, count=len(found), each=each)} {rule}"


def _part(part: Part | None, group: list[Settled], lang: str) -> str:
    heading = ""
    if part:
        heading = (
            f'<tr class="ct-claims__part"><th colspan="6" scope="rowgroup">'
            f"{escape(part.title[lang])}</th></tr>"
        )
    return f"<tbody>{heading}{''.join(_row(one, lang) for one in group)}</tbody>"


def _row(one: Settled, lang: str) -> str:
    claim, link = one.claim, state.current().link
    where = link(f"examples/{one.example}/#cell-id={one.cell}")
    if one.chapter:
        url = link(f"{one.chapter.part}/{one.chapter.id}/")
        told = f'<a href="{url}">{escape(one.chapter.title[lang])}</a>'
    else:
        told = escape(one.title[lang])
    control = f"{claim_value(claim, 'control', lang)} <small>{escape(claim['control']['what'][lang])}</small>"
    named = [
        ("expected", claim_value(claim, "expected", lang)),
        ("measured", claim_value(claim, "measured", lang)),
        ("control", control),
        ("verdict", verdict_html(claim, lang)),
        (
            "chapter",
            f'{told} <a class="ct-claims__code" href="{where}">{text("claim.code", lang)}</a>',
        ),
    ]
    return (
        f'<tr id="{escape(claim["id"])}"><th scope="row">{escape(claim["statement"][lang])} '
        f'<span class="ct-claims__source">{escape(claim["source"])}, {claim_place(claim, lang)}</span></th>'
        # On a narrow screen a row becomes a list, and each value carries the name of its column.
        + "".join(
            f'<td data-column="{text("claim." + name, lang)}">{value}</td>' for name, value in named
        )
        + "</tr>"
    )


def _where(found: list[Settled], records: Iterable[Recording], lang: str) -> str:
    names = {one.example for one in found}
    metadata = [record.metadata for record in records if record.name in names]
    if not metadata:
        return ""
    gpus = " / ".join(dict.fromkeys(one["gpu"]["name"] for one in metadata))
    date = max(one["recorded_at"] for one in metadata)[:10]
    words = text("certificate.summary", lang, gpu=escape(gpus), date=date)
    return f'<p class="ct-claims__where">{words}</p>'
