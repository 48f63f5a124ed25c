"""The page 'Claims we ran': every claim that a recorded example settled, in the page's language."""

from __future__ import annotations

from html import escape

from cudatut import catalog, recording
from cudatut.site.locale import current, text
from cudatut.site.render import format_claim_value, verdict_html


def claims() -> list[tuple[str, dict]]:
    """All recorded claims as (example name, result), by example and by their order in it.

    Raises ValueError for an id that is used twice, and as `recording.require_good`.
    """
    found: list[tuple[str, dict]] = []
    for example in catalog.examples():
        recorded = recording.require_good(example.name)
        for cell in recorded.cells:
            results = recorded.results(cell.title) if cell.kind == "code" else []
            found += [(example.name, result) for result in results if result["kind"] == "claim"]
    ids = [result["id"] for _, result in found]
    twice = sorted({one for one in ids if ids.count(one) > 1})
    if twice:
        raise ValueError(
            f"claims need ids of their own, but these are used twice: {', '.join(twice)}"
        )
    return found


def table(base: str = "") -> str:
    """Return the claims as an HTML table. base: from the page to the site's root, '' or '../'."""
    lang = current()
    head = ("statement", "source", "predicted", "measured", "verdict", "chapter")
    cells = "".join(f'<th scope="col">{text(f"claim.{column}", lang)}</th>' for column in head)
    rows = "".join(_row(name, claim, lang, base) for name, claim in claims())
    return (
        '<div class="ct-scroll" tabindex="0"><table class="ct-table ct-claims">'
        f"<thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(example: str, claim: dict, lang: str, base: str) -> str:
    chapter = example.removesuffix("_solutions")
    values = "".join(
        f"<td>{format_claim_value(claim, key, lang)}</td>" for key in ("predicted", "measured")
    )
    return (
        f'<tr id="{escape(claim["id"])}"><th scope="row">{escape(claim["statement"][lang])}</th>'
        f"<td>{escape(claim['source'])}</td>{values}<td>{verdict_html(claim['verdict'], lang)}</td>"
        f'<td><a href="{base}examples/{example}/">{escape(chapter)}</a></td></tr>'
    )
