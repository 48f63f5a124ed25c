"""Nothing before its time: a term of the glossary is used on no main path before the chapter that introduces it, and
there it is.

Looked at are the prose, and every CUDA identifier, qualifier and pragma in the code; one that the glossary lacks is
found too. Folds may use what they like.

    python -m cudatut.site lint
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from cudatut import catalog, paths
from cudatut.finding import Finding
from cudatut.site import contents, glossary, lint, main_path, references
from cudatut.site.contents import Part
from cudatut.site.glossary import Term
from cudatut.site.main_path import Line

# What belongs to CUDA in a kernel's text. Names with two underscores at both ends that Python has are left out.
_CODE = re.compile(
    r"""
      (?<![\w.])(?:threadIdx|blockIdx|blockDim|gridDim)\b(?:\.[yz]\b)?
    | (?<![\w.])__(?!name__|main__|file__|init__|future__|doc__|dict__|version__|call__|getitem__|del__)[a-z]\w*
    | \#\s*pragma\s+\w+
    | (?<![\w.])atomic[A-Z]\w*
    | (?<![\w.])(?:u?(?:char|short|int|long|longlong)|float|double|half|bfloat16)[234]\b
    | (?<![\w.])make_\w+?[234]\b
    | (?<![\w.])(?:fmaf|fma|clock64|clock)(?=\s*\()
    | (?<![\w.])(?:warpSize|volatile|template|constexpr|reinterpret_cast|asm)\b
    | (?<![\w.])extern\s+"C"
    | (?<![\w.])(?:cg|cooperative_groups)::\w+
    """,
    re.VERBOSE,
)
# Links to other pages name what these introduce.
_LINK = re.compile(r"\[[^\]]*\]\([^)\s]*\.md[^)]*\)")
_COMMENT = re.compile(r"//.*|/\*.*?\*/")
_ADDRESS = re.compile(r"\]\([^)\s]*\)")
_SNIPPET = re.compile(r'-{2,}8<-{2,}\s+"([\w./-]+?)(?::([\w-]+))?"')
# Titles of documents are not ours to choose.
_UNREAD = {"sources"}


class Terms:
    """The terms and code words of the glossary that a chapter introduces, and the ranks of the chapters in the book."""

    def __init__(self, entries: Iterable[Term], parts: tuple[Part, ...], lang: str):
        order = [chapter.name for chapter in contents.chapters(parts)]
        self.rank = {name: number for number, name in enumerate(order)}
        introduced = [entry for entry in entries if "chapter" in entry]
        self.code = {_word(word): entry for entry in introduced for word in entry.get("code", ())}
        self.prose = glossary.Finder(introduced, lang)

    def used(self, line: Line, chapter: str | None = None) -> Iterator[tuple[str, Term | None]]:
        """The terms and words of CUDA in a line of the main path of a chapter, each with its entry or None.

        Ordinary words count in the chapter that introduces their term: elsewhere they may mean something else.
        """
        code = []
        if line.kind == "prose":
            code = [span[2] for span in references.CODE_SPAN.finditer(line.text)]
        elif line.kind == "code":
            code = _shown(line.text, line.info)
        for text in code:
            for found in _CODE.finditer(_COMMENT.sub("", text)):
                word = _word(found[0])
                yield f"`{word}`", self.code.get(word)
        if line.kind == "prose":
            for found in self.prose.pattern.finditer(lint.prose(_LINK.sub(" ", line.text))):
                if term := self.prose.term(found, chapter=chapter):
                    yield f"'{term['en']}'", term


def _word(text: str) -> str:
    """A word of code as the glossary has it."""
    word = re.sub(r"\s+", " ", text).replace("# pragma", "#pragma")
    return re.sub(r"\.z$", ".y", word)


def findings(
    docs: Path, lang: str, parts: tuple[Part, ...] | None = None, only: str = ""
) -> list[Finding]:
    """Uses before their time, and code words without an entry, of all written chapters, or of the chapter `only`.

    docs: the folder that holds contents.yml, glossary.yml and the languages' folders. parts: another table of contents.
    """
    parts = parts or contents.load(docs / "contents.yml")
    terms = Terms(glossary.load(docs / "glossary.yml", parts), parts, lang)
    found = []
    for name, markdown in _pages(docs, lang, parts):
        if only in ("", name):
            found += of_page(markdown, name, lang, terms)
    return found


def _pages(docs: Path, lang: str, parts: tuple[Part, ...]) -> Iterator[tuple[str, str]]:
    """Name and Markdown of each written chapter that has a page in this language."""
    for chapter in contents.chapters(parts):
        path = docs / lang / chapter.page
        if chapter.written and path.is_file():
            yield chapter.name, path.read_text("utf-8", "replace")


def of_page(markdown: str, name: str, lang: str, terms: Terms) -> list[Finding]:
    """Findings of one chapter, the first use of each word."""
    found: dict[str, Finding] = {}
    for line in main_path.lines(markdown):
        for word, entry in terms.used(line, name) if line.section not in _UNREAD else ():
            if entry is None:
                message = f"{word} stands in no entry of docs/glossary.yml: add it to that of its term, code: [...]"
            elif terms.rank[entry["chapter"]] > terms.rank[name]:
                message = f"{word} is used here and introduced in {entry['chapter']}: say it without, or in a fold"
            else:
                continue
            found.setdefault(word, Finding(f"docs/{lang}/{name}.md", line.number, message))
    return list(found.values())


def unintroduced(
    docs: Path, lang: str, parts: tuple[Part, ...] | None = None, only: str = ""
) -> list[Finding]:
    """Terms that stand nowhere in the chapter that the glossary names for them; of all chapters, or of `only`.

    On its main path; in its folds where the term is on no main path at all. Its name counts, also as code or in a link,
    or one of its code words. docs, parts: as for `findings`.
    """
    parts = parts or contents.load(docs / "contents.yml")
    entries = glossary.load(docs / "glossary.yml", parts)
    terms = Terms(entries, parts, lang)
    pages = dict(_pages(docs, lang, parts))

    @cache
    def main(name: str) -> set[str]:
        return _told(main_path.lines(pages[name]), pages[name], name, terms)

    @cache
    def whole(name: str) -> set[str]:
        return _told(_all_lines(pages[name]), pages[name], name, terms)

    found = []
    for entry in entries:
        word, name = entry["id"], entry.get("chapter")
        if name not in pages or only not in ("", name) or word in main(name):
            continue
        folded = word in whole(name)
        if folded and not any(word in main(other) for other in pages):
            continue
        said = (
            f"'{word}' is introduced in {name}, but docs/{lang}/{name}.md does not have it"
            f"{' outside its folds' if folded else ''}: name another chapter, or write it there"
        )
        found.append(Finding("docs/glossary.yml", 0, said))
    return found


def _told(lines: Iterable[Line], markdown: str, name: str, terms: Terms) -> set[str]:
    """The ids of the terms in these lines of a chapter."""
    here = glossary.meanings(markdown)
    found = set()
    for line in lines:
        if line.section in _UNREAD:
            continue
        found |= {entry["id"] for _, entry in terms.used(line, name) if entry}
        if line.kind == "prose":
            code = " ".join(span[2] for span in references.CODE_SPAN.finditer(line.text))
            text = lint.prose(_ADDRESS.sub("]", line.text)) + " " + code
            matches = terms.prose.pattern.finditer(text)
            found |= {term["id"] for one in matches if (term := terms.prose.term(one, here, name))}
    return found


def _all_lines(markdown: str) -> Iterator[Line]:
    """Those of the folds, too."""
    return main_path.lines(re.sub(r"(?m)^( *)\?\?\?", r"\1!!!", markdown))


def _shown(line: str, info: str) -> list[str]:
    """The code that one line of a fence puts on the page."""
    kind = info.split()[:1]
    if kind == ["example"] and "#" in line:
        example, _, cell = line.strip().partition("#")
        return [] if 'source="none"' in info else [_cells(example).get(cell, "")]
    if kind == ["exercise"]:
        chapter, _, number = line.strip().rpartition(" ")
        given = _cells(f"{chapter}{catalog.SOLUTIONS}").get(f"given-{number}", "")
        return [given, _cells(f"{chapter}{catalog.EXERCISES}").get(f"stub-{number}", "")]
    if kind == ["python"] and "exec=" in info:
        return []
    if match := _SNIPPET.search(line):
        return [_region(match[1], match[2])]
    return [line]


@cache
def _cells(example: str) -> dict[str, str]:
    """The code cells of an example's .py by their titles; none where there is no such file."""
    path = catalog.path_of(example)
    return catalog.cells(path) if path.is_file() else {}


def _region(file: str, region: str | None) -> str:
    path = paths.examples_dir() / file
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if region is None:
        return text
    start, end = f"--8<-- [start:{region}]", f"--8<-- [end:{region}]"
    return text.partition(start)[2].partition(end)[0]
