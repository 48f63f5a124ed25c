"""The glossary (docs/glossary.yml): checked, as a page, as words to search for, and as definitions on hover.

An entry has `id`, the term in both languages, what it `means`, and optionally

    chapter: start/which_thread                  the chapter that introduces it
    code: [threadIdx, blockIdx]                  identifiers, qualifiers and pragmas introduced with it
    also: {en: [block], zh: [块]}                 synonyms and other spellings
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from cudatut.errors import CudatutError
from cudatut.site import contents, locale, state
from cudatut.site.contents import Part

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_KEYS = {"id", "en", "zh", "chapter", "code", "also", "means"}
_INTRODUCED = {"en": "Introduced in", "zh": "首次讲解："}


class GlossaryError(CudatutError):
    """docs/glossary.yml is wrong; the message names the term."""


def load(path: Path | None = None, parts: tuple[Part, ...] | None = None) -> list[dict[str, Any]]:
    """The terms, checked: unique ids, both languages, sorted by id, chapters that are there, code words named once.

    parts: the table of contents; without it, that of docs/contents.yml beside the glossary, where there is one.
    """
    import yaml

    if path is None:
        path = state.current().docs.parent / "glossary.yml"
    try:
        terms = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise GlossaryError(f"{path}: {error}") from error
    if parts is None and (table := path.with_name("contents.yml")).is_file():
        parts = contents.load(table)
    chapters = None
    if parts is not None:
        chapters = {f"{chapter.part}/{chapter.id}" for part in parts for chapter in part.chapters}
    seen: set[str] = set()
    code: dict[str, str] = {}
    for term in terms:
        name = term.get("id")
        if not isinstance(name, str) or not _ID.fullmatch(name) or name in seen:
            raise GlossaryError(f"{path}: id {name!r} must be unique, of a-z, 0-9 and -")
        seen.add(name)
        _check(term, chapters, path)
        for word in term.get("code", ()):
            if word in code:
                raise GlossaryError(
                    f"{path}: `{word}` stands in the code of '{code[word]}' and of '{name}'; leave it in one"
                )
            code[word] = name
    names = [term["id"] for term in terms]
    for before, after in pairwise(names):
        if before > after:
            raise GlossaryError(f"{path}: '{after}' stands after '{before}'; sort by id")
    return terms


def _check(term: dict[str, Any], chapters: set[str] | None, path: Path) -> None:
    name = term["id"]
    if unknown := sorted(term.keys() - _KEYS):
        raise GlossaryError(f"{path}: '{name}' has {', '.join(unknown)}, which means nothing here")
    means = term.get("means") or {}
    for lang in locale.LANGUAGES:
        if not isinstance(term.get(lang), str) or not isinstance(means.get(lang), str):
            raise GlossaryError(f"{path}: '{name}' lacks its term or meaning in {lang}")
    chapter = term.get("chapter")
    if chapter is not None and chapters is not None and chapter not in chapters:
        raise GlossaryError(
            f"{path}: '{name}' is introduced in {chapter!r}, which docs/contents.yml does not have"
        )
    also = term.get("also", {})
    if not isinstance(also, dict) or not also.keys() <= set(locale.LANGUAGES):
        raise GlossaryError(f"{path}: '{name}': write also as {{en: [...], zh: [...]}}")
    for where, words in (("code", term.get("code", [])), *also.items()):
        if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
            raise GlossaryError(f"{path}: '{name}': {where} must be a list of words")
    if term.get("code") and chapter is None:
        raise GlossaryError(f"{path}: '{name}' has code words and names no chapter for them")


def forms(text: str) -> list[str]:
    """The words that a term is known by: "fused multiply-add (FMA)" is also "FMA"."""
    match = re.fullmatch(r"(.+?)\s*[(（](.+?)[)）]", text)
    return [match[1], match[2]] if match else [text]


def words(term: dict[str, Any], lang: str) -> list[str]:
    """All that a reader of `lang` may look for to find a term: itself, its synonyms, its code words.

    A Chinese reader knows the English words too.
    """
    found = [*forms(term[lang]), *term.get("also", {}).get(lang, ()), *term.get("code", ())]
    if lang != "en":
        found += [*forms(term["en"]), *term.get("also", {}).get("en", ())]
    return list(dict.fromkeys(found))


def markdown(
    terms: list[dict[str, Any]] | None = None,
    lang: str | None = None,
    parts: tuple[Part, ...] | None = None,
) -> str:
    """One heading per term, so that each can be linked and searched for."""
    parts = contents.load() if parts is None else parts
    terms = load(parts=parts) if terms is None else terms
    lang = locale.current() if lang is None else lang
    chapters = {
        f"{chapter.part}/{chapter.id}": chapter for part in parts for chapter in part.chapters
    }
    out = []
    for term in terms:
        if lang == "zh":
            title = term["zh"] if term["en"] == term["zh"] else f"{term['zh']} · {term['en']}"
        else:
            title = term["en"] if term["en"] == term["zh"] else f"{term['en']} · {term['zh']}"
        lines = [f"## {title} {{ #{term['id']} }}", "", term["means"][lang]]
        if term.get("code"):
            lines += ["", ", ".join(f"`{word}`" for word in term["code"])]
        chapter = chapters.get(term.get("chapter", ""))
        if chapter and chapter.written:
            url = state.current().link(f"{chapter.part}/{chapter.id}/")
            where = f'<a href="{url}">{escape(chapter.title[lang])}</a>'
            where = f"《{where}》" if lang == "zh" else f" {where}"
            lines += ["", f"{_INTRODUCED[lang]}{where}"]
        out.append("\n".join(lines) + "\n")
    return "\n".join(out)


# --- definitions on hover -----------------------------------------------------------------------------------------------

_TAG = re.compile(r"""(<(?:[^<>"']|"[^"]*"|'[^']*')*>)""")
_NAME = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
# What no definition is put into: headings, what is a link or a button, code, drawings, formulas, results.
_CLOSED = {
    *("h1", "h2", "h3", "h4", "h5", "h6", "a", "abbr", "button", "summary", "label", "dfn"),
    *("code", "pre", "kbd", "samp", "svg", "math", "script", "style", "figure", "nav"),
}


class Hover:
    """Puts the definition of a term at its first occurrence on a page: a link into the glossary, with a title.

    A link, not <abbr>: it can be reached with the keyboard and tapped on a telephone.
    """

    def __init__(self, terms: list[dict[str, Any]], lang: str):
        self._of: dict[str, dict[str, Any]] = {}
        self._lang = lang
        for term in terms:
            for text in (term[lang], *term.get("also", {}).get(lang, ())):
                for word in forms(text):
                    if lang == "zh" and not word.isascii() and len(word) < 2:
                        continue  # 流 is in 流程, 块 in 一块
                    self._of.setdefault(word.lower(), term)
        longest_first = sorted(self._of, key=len, reverse=True)
        plural = "(?:s|es)?"
        self._term = re.compile(
            "|".join(
                rf"(?<![\w-]){re.escape(word)}{plural}(?![\w-])"
                if word.isascii()
                else re.escape(word)
                for word in longest_first
            )
            or r"(?!)",
            re.IGNORECASE
            | re.ASCII,  # 线程束warp: a Chinese character is no part of an English word
        )

    def _find(self, word: str) -> dict[str, Any]:
        word = word.lower()
        for form in (word, word.removesuffix("s"), word.removesuffix("es")):
            if form in self._of:
                return self._of[form]
        raise KeyError(word)

    def put(self, html: str, glossary: str) -> str:
        """`html` with a definition at each term's first occurrence in its prose; `glossary` is the page's address."""
        seen: set[str] = set()

        def define(match: re.Match) -> str:
            term = self._find(match[0])
            if term["id"] in seen:
                return match[0]
            seen.add(term["id"])
            means = escape(term["means"][self._lang].replace("`", ""))
            return (
                f'<a class="ct-term" href="{glossary}#{term["id"]}" title="{means}">{match[0]}</a>'
            )

        out, inside = [], []
        for piece, is_tag in _pieces(html):
            if not is_tag:
                out.append(piece if inside else self._term.sub(define, piece))
                continue
            out.append(piece)
            if not (name := _NAME.match(piece)):
                continue
            tag = name[2].lower()
            if inside:
                # Only what is of the kind that closed it can open it again.
                if tag == inside[-1][0] and not piece.endswith("/>"):
                    if name[1]:
                        inside[-1][1] -= 1
                        if not inside[-1][1]:
                            inside.pop()
                    else:
                        inside[-1][1] += 1
            elif not name[1] and not piece.endswith("/>") and (tag in _CLOSED or _ours(piece)):
                inside.append([tag, 1])
        return "".join(out)


def _ours(tag: str) -> bool:
    """Whether a tag opens a result, a table of numbers or a formula."""
    return bool(re.search(r'class="(?:[^"]* )?(?:ct-|arithmatex|highlight)', tag))


def _pieces(html: str) -> Iterator[tuple[str, bool]]:
    for number, piece in enumerate(_TAG.split(html)):
        if piece:
            yield piece, bool(number % 2)
