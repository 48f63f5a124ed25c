"""English and Chinese are one book: same pages, heading ids, directives and addresses; only the prose differs."""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path

from cudatut.finding import Finding
from cudatut.site import lint, references
from cudatut.site.locale import LANGUAGES

_QUOTE = re.compile(r'quote "(.*?)" from .*')
_BOX = re.compile(r"(\?\?\?\+?|!!!)\s+(\w+(?: \w+)*)|===")
_ADDRESS = re.compile(r"\]\((https?://[^)\s]+)\)")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_CHINESE = 0.15  # of the characters of a Chinese page's prose, at least

# (line, what stands there): of two pages the second parts are compared.
Placed = list[tuple[int, tuple]]


def findings(page: str, docs: Path) -> list[Finding]:
    """What sets the two pages `page` (relative to docs/<language>) apart, and what either lacks."""
    files = {lang: f"docs/{lang}/{page}" for lang in LANGUAGES}
    paths = {lang: docs / lang / page for lang in LANGUAGES}
    absent = [lang for lang in LANGUAGES if not paths[lang].is_file()]
    if absent:
        how = "a page is written in both languages; write it"
        return [Finding(files[lang], 0, f"this page is not there: {how}") for lang in absent]
    texts = {lang: paths[lang].read_text("utf-8", "replace") for lang in LANGUAGES}
    found = _apart("heading", files, *(heading_ids(texts[lang]) for lang in LANGUAGES))
    found += _apart("directive", files, *(directives(texts[lang]) for lang in LANGUAGES))
    found += _addresses_apart(files, *(addresses(texts[lang]) for lang in LANGUAGES))
    for lang in LANGUAGES:
        found += _front(texts[lang], files[lang])
    if not is_chinese(texts["zh"]):
        found.append(Finding(files["zh"], 0, "its prose is not Chinese: write it in Chinese"))
    return found


def heading_ids(markdown: str) -> Placed:
    """The id of each heading; those without one are left to the lint."""
    return [(line, (name,)) for line, _, name in lint.headings(markdown) if name]


def directives(markdown: str) -> Placed:
    """Fences, whole where they are executed or quote code, boxes, and references, in page order.

    References inside one paragraph may come in another order: languages order a sentence differently.
    Of a quoted number only the digits count: unit and source are prose. A given one is prose altogether: each
    language may say it in words, or in another place.
    """
    found: Placed = []
    numbers: Placed = []
    for line_number, line, kind, info in references.scan(markdown):
        text = line.strip()
        if kind == "prose":
            prose = re.sub(r"`[^`]*`", "", line)
            for match in references.FIELD.finditer(prose):
                number = " ".join(match[1].split())
                if number.startswith("given "):
                    continue
                numbers.append((line_number, ("number", _QUOTE.sub(_digits, number))))
            box = _BOX.match(text)
            if box:
                found.append((line_number, ("box", box[1], box[2])))
            if text:
                continue
        found += _ordered(numbers)
        numbers = []
        if kind == "open":
            found.append((line_number, ("fence", info)))
        elif kind == "code" and (
            info.startswith(("example", "exercise")) or "exec=" in info or "8<" in text
        ):
            found.append((line_number, (info, text)))
    return found + _ordered(numbers)


def _ordered(numbers: Placed) -> Placed:
    return sorted(numbers, key=lambda number: number[1])


def _digits(match: re.Match) -> str:
    return "quote " + " ".join(re.findall(r"[\d.]+", match[1]))


def addresses(markdown: str) -> list[str]:
    """Pages elsewhere that a page links to."""
    return sorted(_ADDRESS.findall(markdown))


def is_chinese(markdown: str) -> bool:
    """Whether enough of a page's prose is written in Chinese characters."""
    prose = "".join(
        line
        for _, line, in_code in references.lines(markdown)
        if not in_code and not line.startswith(":::") and "options:" not in line
    )
    return len(_HAN.findall(prose)) > _CHINESE * len(prose)


def _apart(what: str, files: dict[str, str], english: Placed, chinese: Placed) -> list[Finding]:
    """The first place at which the two pages go different ways."""
    for en, zh in zip_longest(english, chinese):
        if en and zh and en[1] == zh[1]:
            continue
        same = f"give both pages the same {what}s in the same order"
        if zh is None:
            there = f"line {en[0]} of {files['en']}"
            said = f"the {what} '{_said(en)}' of {there} is missing here"
            return [Finding(files["zh"], 0, f"{said}: {same}")]
        there = (
            f"line {en[0]} of {files['en']} has '{_said(en)}'" if en else f"{files['en']} has none"
        )
        said = f"the {what} here is '{_said(zh)}', and {there} in its place"
        return [Finding(files["zh"], zh[0], f"{said}: {same}")]
    return []


def _said(placed: tuple[int, tuple]) -> str:
    return " ".join(str(part) for part in placed[1] if part)


def _addresses_apart(
    files: dict[str, str], english: list[str], chinese: list[str]
) -> list[Finding]:
    """A source that was corrected in one language is the old one in the other."""
    found = []
    for here, own, there, others in (
        ("en", english, "zh", chinese),
        ("zh", chinese, "en", english),
    ):
        for address in sorted({one for one in own if own.count(one) > others.count(one)}):
            said = f"it has no link to {address}, which {files[here]} has: give both pages the same"
            found.append(Finding(files[there], 0, said))
    return found


def _front(markdown: str, file: str) -> list[Finding]:
    front = [line for _, line, kind, _ in references.scan(markdown) if kind == "front"]
    return [
        Finding(file, 1, f"the front matter has no '{key}: ...': write it between two lines '---'")
        for key in ("title", "description")
        if not any(re.match(rf"{key}: \S", line) for line in front)
    ]
