"""A table of what moved, in Markdown: for whoever has recorded, and for a pull request with new recordings."""

from __future__ import annotations

from collections.abc import Iterator

from cudatut import failures
from cudatut.errors import CudatutError
from cudatut.recording import Recording
from cudatut.site import references
from cudatut.site.moved import citations
from cudatut.site.moved.compared import Compared
from cudatut.site.moved.numbers import Move, moves, ratio
from cudatut.site.moved.section import ALL, HEAD, ROOM, Section
from cudatut.site.moved.snapshot import Snapshot


def report(compared: Compared, least: float, most: int | None = None) -> str:
    """What moved by more than `least` (0.02: two per cent), in at most `most` characters."""
    pages = citations.pages(compared.after)
    sections = [
        *_made(compared),
        *_failed(compared),
        *_sentences(compared, pages),
        *_results(compared, pages, least),
    ]
    text, left = f"# What moved\n\n{_summary(compared)}\n", 0
    for section in sections:
        room = None if most is None else most - ROOM - len(text)
        shown = section.markdown(room)
        if room is None or len(shown) < room:
            text += f"\n{shown}"
        else:
            left += 1
    return text + f"\n{left} more sections: {ALL}\n" if left else text


def _summary(compared: Compared) -> str:
    counts = {"measured anew": compared.pairs, "new": compared.new, "gone": compared.gone}
    told = [f"{len(found)} {what}" for what, found in counts.items() if found]
    return f"Recordings: {', '.join(told) or 'none was measured anew'}."


def _made(compared: Compared) -> Iterator[Section]:
    """On what was measured, where that is not as it was; and what is new, gone or unreadable."""
    machines: dict[tuple[str, str], list[str]] = {}
    for name, (old, new) in compared.pairs.items():
        if (was := _machine(old)) != (now := _machine(new)):
            machines.setdefault((was, now), []).append(name)
    if machines:
        rows: list[tuple[str, ...]] = [
            (was, now, _some(names)) for (was, now), names in machines.items()
        ]
        yield Section("Measured on something else", [], rows, ("before", "after", "recordings"))
    lists = {"New": compared.new, "Gone": compared.gone, "Cannot be read": compared.unread}
    for title, found in lists.items():
        if found:
            yield Section(title, [f"- {one}" for one in found])


def _machine(one: Recording) -> str:
    gpu, tools = one.metadata["gpu"], one.metadata["toolchain"]
    numbers = one.metadata.get("instrument", {}).get("numbers", {})
    measured = "".join(f", {aspect} {number}" for aspect, number in sorted(numbers.items()))
    return f"{gpu['name']}, driver {gpu['driver']}, CUDA {tools.get('cuda')}{measured}"


def _some(names: list[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _failed(compared: Compared) -> Iterator[Section]:
    """What could not be recorded on this machine, where its checkout is looked at."""
    if compared.after.commit is None and (names := failures.names()):
        reasons = ((failures.reason(name) or "").splitlines() for name in names)
        lines = [f"- {name}: {(why or ['no reason was kept'])[-1]}" for name, why in zip(names, reasons)]  # fmt: skip
        yield Section("Could not be recorded", lines)


def _sentences(compared: Compared, pages: citations.Pages) -> Iterator[Section]:
    """Each number of a sentence or a figure that reads otherwise than before."""
    cited: dict[str, list[citations.Citation]] = {}
    for one in pages.citations:
        if any(
            origin.partition("#")[0] in compared.changed for origin in references.origins(one.body)
        ):
            cited.setdefault(one.body, []).append(one)
    was, now = (citations.texts(side, cited) for side in (compared.before, compared.after))
    rows: list[tuple[str, ...]] = []
    for body, places in cited.items():
        (before, old), (after, new) = was[body], now[body]
        if before != after:
            words = citations.sentence(compared.after, places[0], before)
            times = _times(ratio(old, new))
            rows.append((f"`{body}`", f"{before} → {after}", times, _some([one.place for one in places]), words))  # fmt: skip
    lines = [
        f"Sentences and figures take {len(cited)} numbers from these recordings; {len(rows)} of them read otherwise. "
        "Does each sentence still hold?"
    ]
    if cited:
        yield Section("Sentences to read again", lines, rows, (*HEAD, "sentence"))


def _results(compared: Compared, pages: citations.Pages, least: float) -> Iterator[Section]:
    for name, (old, new) in compared.pairs.items():
        found = sorted(moves(name, old, new, least), key=lambda one: one.far, reverse=True)
        rows: list[tuple[str, ...]] = [
            (
                f"`{one.label}`",
                one.text(),
                _times(one.ratio),
                _some(pages.shown.get(_cell(one), [])),
            )
            for one in found
        ]
        if rows:
            values = "value" if len(rows) == 1 else "values"
            title = f"{name}: {len(rows)} {values} moved by more than {100 * least:.3g} %"
            yield Section(title, [], rows, folded=True)


def _cell(one: Move) -> str:
    """As pages name it, whichever GPU it is of."""
    return "/".join(one.cell.split("/")[-2:])


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3f}×"


def moved(before: str, after: str | None, names: frozenset[str], least: float, most: int | None) -> str:  # fmt: skip
    """The report on what moved from one commit to another, or to the checkout. Raises CudatutError for no commit."""
    try:
        return report(Compared(Snapshot(before), Snapshot(after), names), least, most)
    except OSError as error:
        raise CudatutError(f"{error.filename} cannot be read: {error.strerror}") from error
