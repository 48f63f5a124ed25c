"""Nothing before its time: a term of the glossary is used on no main path before the chapter that introduces it.

Looked at are the prose, and every CUDA identifier, qualifier and pragma in the code; one that the glossary lacks is
found too. Folds may use what they like.

    python -m cudatut.site lint
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cudatut import catalog, paths
from cudatut.site import contents, glossary, lint, main_path
from cudatut.site.contents import Part
from cudatut.site.lint import Finding

# What belongs to CUDA in a kernel's text. Names with two underscores at both ends that Python has are left out.
_CODE = re.compile(
    r"""
      (?<![\w.])(?:threadIdx|blockIdx|blockDim|gridDim)\.[yz]\b
    | (?<![\w.])(?:threadIdx|blockIdx|blockDim|gridDim|warpSize)\b
    | (?<![\w.])__(?!name__|main__|file__|init__|future__|doc__|dict__|version__|call__|getitem__)[a-z]\w*
    | \#\s*pragma\s+\w+
    | (?<![\w.])atomic[A-Z]\w*
    | (?<![\w.])(?:u?(?:char|short|int|long|longlong)|float|double|half|bfloat16)[234]\b
    | (?<![\w.])make_\w+?[234]\b
    | (?<![\w.])(?:fmaf|fma|clock64|clock)(?=\s*\()
    | (?<![\w.])(?:volatile|template|constexpr|reinterpret_cast|asm)\b
    | (?<![\w.])extern\s+"C"
    | (?<![\w.])(?:cg|cooperative_groups)::\w+
    """,
    re.VERBOSE,
)
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)[^)]*\)")
_INLINE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_SNIPPET = re.compile(r'-{2,}8<-{2,}\s+"([\w./-]+?)(?::([\w-]+))?"')
_MATH = re.compile(r"(?<![\\$])(\$\$?)(?=\S)(.+?)(?<=\S)\1")
_ATTRIBUTES = re.compile(r"\{:?[^}]*\}|\{\{.*?\}\}|<[^>]+>")
_BRACKETS = re.compile(r"\s*[（(].*?[)）]\s*")
# Titles of documents are not ours to choose.
_UNREAD = {"sources"}


@dataclass(frozen=True)
class _Term:
    name: str
    rank: int  # of the chapter that introduces it
    chapter: str


class Terms:
    """The terms and code words of the glossary, each with the rank of its chapter in the book."""

    def __init__(self, entries: Iterable[dict[str, Any]], parts: tuple[Part, ...]):
        order = [f"{c.part}/{c.id}" for part in parts for c in part.chapters]
        self.rank = {name: number for number, name in enumerate(order)}
        self.code: dict[str, _Term] = {}
        self._words: dict[str, dict[str, _Term]] = {"en": {}, "zh": {}}
        for entry in entries:
            if "chapter" not in entry:
                continue
            term = _Term(entry["en"], self.rank[entry["chapter"]], entry["chapter"])
            for word in entry.get("code", ()):
                self.code[_code_word(word)] = term
            for lang, words in self._words.items():
                for word in (entry[lang], *(entry.get("also", {}).get(lang, ()))):
                    plain = _BRACKETS.sub("", word).strip()
                    if lang == "zh" and (len(plain) < 2 or plain.isascii()):
                        continue
                    words.setdefault(plain.lower(), term)
        self._pattern = {
            "en": re.compile(
                r"(?<![\w-])(?:"
                + "|".join(map(re.escape, sorted(self._words["en"], key=len, reverse=True)))
                + r")(?:s|es)?(?![\w-])",
                re.IGNORECASE,
            ),
            "zh": re.compile(
                "|".join(map(re.escape, sorted(self._words["zh"], key=len, reverse=True)))
            ),
        }

    def in_prose(self, text: str, lang: str) -> Iterator[_Term]:
        """Terms that a text uses, the longest first where one is part of another."""
        words = self._words[lang]
        for match in self._pattern[lang].finditer(text):
            found = match[0].lower()
            for form in (found, found.removesuffix("s"), found.removesuffix("es")):
                if form in words:
                    yield words[form]
                    break

    def in_code(self, text: str) -> Iterator[tuple[str, _Term | None]]:
        """CUDA's words in a text of code, each with its term or None."""
        for match in _CODE.finditer(_without_comments(text)):
            word = _code_word(match[0])
            yield word, self.code.get(word)


def _code_word(text: str) -> str:
    word = re.sub(r"\s+", " ", text).replace("# pragma", "#pragma")
    return re.sub(r"\.z$", ".y", word)


def _without_comments(text: str) -> str:
    return re.sub(r"//.*|/\*.*?\*/", "", text)


def findings(docs: Path, lang: str, only: Iterable[str] = ()) -> list[Finding]:
    """Uses before their time, and code words without an entry, of all written chapters or of `only` these.

    docs: the folder that holds contents.yml, glossary.yml and the languages' folders.
    """
    parts = contents.load(docs / "contents.yml")
    terms = Terms(glossary.load(docs / "glossary.yml"), parts)
    wanted = set(only)
    found = []
    for chapter in (c for part in parts for c in part.chapters if c.written):
        name = f"{chapter.part}/{chapter.id}"
        path = docs / lang / chapter.page
        if (not wanted or name in wanted) and path.is_file():
            found += _of_page(path.read_text(encoding="utf-8"), name, lang, terms)
    return found


def _of_page(markdown: str, name: str, lang: str, terms: Terms) -> list[Finding]:
    file = f"docs/{lang}/{name}.md"
    rank = terms.rank[name]
    _, body, offset = lint.split_front_matter(markdown)
    said: set[str] = set()
    found = []

    def note(line: int, key: str, message: str) -> None:
        if key not in said:  # the first use is enough
            said.add(key)
            found.append(Finding(file, line, message))

    def code(line: int, text: str) -> None:
        for word, term in terms.in_code(text):
            if term is None:
                note(line, word, f"`{word}` stands in no entry of docs/glossary.yml (code: [...])")
            elif term.rank > rank:
                note(line, word, f"`{word}` is used here and introduced in {term.chapter}")

    for line in main_path.lines(body):
        at = line.number + offset
        if line.section in _UNREAD:
            continue
        if line.kind == "prose":
            text = _MATH.sub(" ", line.text)
            for inline in _INLINE.finditer(text):
                code(at, inline[2])
            text = _INLINE.sub(" ", text)
            text = _LINK.sub(lambda m: " " if ".md" in m[2] else m[1], text)
            for term in terms.in_prose(_ATTRIBUTES.sub(" ", text), lang):
                if term.rank > rank:
                    note(
                        at,
                        term.name,
                        f"'{term.name}' is used here and introduced in {term.chapter}",
                    )
        elif line.kind == "code":
            for text in _shown(line.text, line.info):
                code(at, text)
    return found


def _shown(line: str, info: str) -> list[str]:
    """The code that one line of a fence puts on the page."""
    kind = info.split()[:1]
    if kind == ["example"] and "#" in line:
        example, _, cell = line.strip().partition("#")
        return [] if 'source="none"' in info else [_cells(example).get(cell, "")]
    if kind == ["exercise"]:
        chapter, _, number = line.strip().rpartition(" ")
        given = _cells(f"{chapter}_solutions").get(f"given-{number}", "")
        return [given, _cells(f"{chapter}{catalog.EXERCISES}").get(f"stub-{number}", "")]
    if kind == ["python"] and "exec=" in info:
        return []
    if match := _SNIPPET.search(line):
        return [_region(match[1], match[2])]
    return [line]


@cache
def _cells(example: str) -> dict[str, str]:
    """The code cells of an example's .py by their titles; none where there is no such file."""
    path = paths.examples_dir() / f"{example}.py"
    return catalog.cells(path) if path.is_file() else {}


def _region(file: str, region: str | None) -> str:
    path = paths.examples_dir() / file
    if not path.is_file():
        return ""
    text = path.read_text(encoding="utf-8")
    if region is None:
        return text
    match = re.search(
        rf"--8<-- \[start:{re.escape(region)}\]\n(.*?)^[^\n]*--8<-- \[end:{re.escape(region)}\]",
        text,
        re.DOTALL | re.MULTILINE,
    )
    return match[1] if match else ""
