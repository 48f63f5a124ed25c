"""The glossary (docs/glossary.yml): checked, as a page, as words to search for, and as definitions on hover.

An entry has `id`, the term in both languages, what it `means`, and optionally

    chapter: start/which_thread                  the chapter that introduces it
    explained: tensor/tensor_cores               where none introduces it before it is used: the one that the search shows
    code: [threadIdx, blockIdx]                  identifiers, qualifiers and pragmas introduced with it
    also: {en: [block], zh: [块]}                 synonyms and other spellings
    ordinary: [padding, 填充]                     those of its words that mean something else as often

An ordinary word is taken for the term in the chapter that introduces it, and on pages whose front matter says so:
`terms: {填充: padding}`. A page on which a word has another meaning says so in its front matter, `terms: {block: kv-block}`: the word, and the id of
the term; with `terms: {block: null}` the word means none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from cudatut import yaml_text
from cudatut.errors import CudatutError
from cudatut.site import contents, locale, state
from cudatut.site.contents import Part

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_KEYS = {"id", "en", "zh", "chapter", "explained", "code", "also", "ordinary", "means"}
_INTRODUCED = {
    "en": 'Introduced in <a href="{url}">{title}</a>',
    "zh": '首次讲解：《<a href="{url}">{title}</a>》',
}

Term = dict[str, Any]


class GlossaryError(CudatutError):
    """docs/glossary.yml is wrong; the message names the term."""


def load(path: Path, parts: tuple[Part, ...] | None = None) -> list[Term]:
    """The terms, checked: unique ids, both languages, sorted by id, chapters that are there, code words named once.

    parts: the table of contents; without it, that of docs/contents.yml beside the glossary.
    """
    import yaml

    try:
        terms = yaml_text.load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise GlossaryError(f"{path}: {error}") from error
    parts = parts or contents.load(path.with_name("contents.yml"))
    chapters = {chapter.name for chapter in contents.chapters(parts)}
    before, code = "", dict[str, str]()
    for term in terms:
        name = term.get("id")
        if not isinstance(name, str) or not _ID.fullmatch(name) or name <= before:
            raise GlossaryError(
                f"{path}: id {name!r} after {before!r}: ids are of a-z, 0-9 and -, unique and sorted"
            )
        before = name
        for fault in _faults(term, chapters):
            raise GlossaryError(f"{path}: '{name}' {fault}")
        for word in term.get("code", ()):
            if code.setdefault(word, name) != name:
                raise GlossaryError(
                    f"{path}: `{word}` stands in the code of '{code[word]}' and of '{name}'; leave it in one"
                )
    return terms


def _faults(term: Term, chapters: set[str]) -> Iterator[str]:
    """What is wrong with an entry, to be read behind its id."""
    if unknown := sorted(term.keys() - _KEYS):
        yield f"has {', '.join(unknown)}, which means nothing here"
    means, chapter = term.get("means") or {}, term.get("chapter")
    for lang in locale.LANGUAGES:
        if not isinstance(term.get(lang), str) or not isinstance(means.get(lang), str):
            yield f"lacks its term or meaning in {lang}"
    if chapter is not None and chapter not in chapters:
        yield f"is introduced in {chapter!r}, which docs/contents.yml does not have"
    if (explained := term.get("explained")) is not None and explained not in chapters:
        yield f"is explained in {explained!r}, which docs/contents.yml does not have"
    if None not in (chapter, explained):
        yield "has a chapter that introduces it, and needs no other one in explained"
    if chapter is None and term.get("code"):
        yield "has code words and names no chapter for them"
    also = term.get("also", {})
    if not isinstance(also, dict) or not also.keys() <= set(locale.LANGUAGES):
        yield "has other synonyms than {en: [...], zh: [...]} in also"
        return
    lists = (("code", term.get("code", [])), ("ordinary", term.get("ordinary", [])))
    for where, found in (*lists, *also.items()):
        if not isinstance(found, list) or not all(isinstance(word, str) and word for word in found):
            yield f"must have a list of words in {where}"
            return
    if all(isinstance(term.get(lang), str) for lang in locale.LANGUAGES):
        names = [name for lang in locale.LANGUAGES for name in _names(term, lang)]
        if unknown := [word for word in term.get("ordinary", ()) if word not in names]:
            yield f"has ordinary words that are none of its names: {', '.join(unknown)}"


def forms(text: str) -> list[str]:
    """The words that a term is known by: "fused multiply-add (FMA)" is also "FMA"."""
    match = re.fullmatch(r"(.+?)\s*[(（](.+?)[)）]", text)
    return [match[1], match[2]] if match else [text]


def _names(term: Term, lang: str) -> list[str]:
    """A term and its synonyms in one language."""
    return [*forms(term[lang]), *term.get("also", {}).get(lang, ())]


def names(term: Term, lang: str) -> list[str]:
    """The names of a term that a reader of `lang` knows, its synonyms too; a Chinese reader knows the English ones."""
    return list(dict.fromkeys([*_names(term, lang), *_names(term, "en")]))


def words(term: Term, lang: str) -> list[str]:
    """All that a reader of `lang` may look for to find a term: its names, and its code words behind those in `lang`."""
    return list(dict.fromkeys([*_names(term, lang), *term.get("code", ()), *names(term, lang)]))


def markdown(
    terms: list[Term] | None = None, lang: str | None = None, parts: tuple[Part, ...] | None = None
) -> str:
    """The page of the glossary (or of `terms`): one heading a term, so that each can be linked and searched for."""
    parts = parts or contents.load()
    lang = lang or locale.current()
    written = {one.name: one for one in contents.chapters(parts) if one.written}
    lines = []
    listed = terms or load(state.current().docs.parent / "glossary.yml", parts)
    for term in sorted(listed, key=_by_pinyin) if lang == "zh" else listed:
        title = " · ".join(dict.fromkeys([term[lang], term["en"], term["zh"]]))
        lines += [f"## {title} {{ #{term['id']} }}", "", term["means"][lang], ""]
        if term.get("code"):
            lines += [", ".join(f"`{word}`" for word in term["code"]), ""]
        if chapter := written.get(term.get("chapter", "")):
            url = state.current().link(f"{term['chapter']}/")
            lines += [_INTRODUCED[lang].format(url=url, title=escape(chapter.title[lang])), ""]
    return "\n".join(lines)


# The first of the common characters whose pinyin begins with each letter, in the order of GB 2312; no word begins with I, U or V.
_FIRST = dict(
    zip("ABCDEFGHJKLMNOPQRSTWXYZ", "啊芭擦搭蛾发噶哈击喀垃妈拿哦啪期然撒塌挖昔压匝", strict=True)
)


def letters(terms: Iterable[Term], lang: str) -> list[tuple[str, str]]:
    """The letters with which terms begin, in the order of the page, each with the id of its first term; "A-Z" for the Latin words
    on the Chinese page. A list of all terms beside the page would be as heavy as the page.
    """
    found: dict[str, str] = {}
    for term in sorted(terms, key=_by_pinyin) if lang == "zh" else terms:
        found.setdefault(_letter(term, lang), term["id"])
    return list(found.items())


def _letter(term: Term, lang: str) -> str:
    if lang != "zh":
        return term["id"][0].upper()
    word = _by_pinyin(term)
    if word[:1] < b"\xb0":
        return "A–Z"
    return max(
        (one for one, first in _FIRST.items() if first.encode("gb18030") <= word[:2]), default="A"
    )


def toc(terms: Iterable[Term], lang: str, title: str) -> list[dict[str, Any]]:
    """The table of contents of the glossary's page, its letters, as Markdown's toc extension has it."""
    entries = [
        {"level": 2, "id": first, "name": letter, "children": []}
        for letter, first in letters(terms, lang)
    ]
    return [{"level": 1, "id": "top", "name": title, "children": entries}]


def _by_pinyin(term: Term) -> bytes:
    """Latin letters first, then by pinyin, in whose order GB 2312 has the common characters."""
    return term["zh"].lower().encode("gb18030")


def meanings(markdown: str) -> dict[str, str | None]:
    """What a page's front matter says that words mean: `terms: {block: kv-block}`."""
    import yaml

    front = re.match(r"---[ \t]*\n(.*?)\n---[ \t]*\n", markdown, re.DOTALL)
    return (yaml.safe_load(front[1]) or {}).get("terms") or {} if front else {}


# --- terms in prose ------------------------------------------------------------------------------


def _one_of(words: Iterable[str]) -> str:
    """A regular expression for any of the words, the longest that fits, which looks at each letter once.

    As a list, `warp|warp size|...`, each word would be tried at each place of a page: ten times as long.
    """
    tree: dict[str, Any] = {}
    for word in words:
        node = tree
        for letter in word:
            node = node.setdefault(letter, {})
        node[""] = None  # a word ends here

    def pattern(node: dict[str, Any]) -> str:
        longer = [re.escape(letter) + pattern(after) for letter, after in node.items() if letter]
        if not longer:
            return ""
        return f"(?:{'|'.join(longer)})" + ("?" if "" in node else "")

    return pattern(tree) or "(?!)"


class Finder:
    """Finds terms and their synonyms in prose, the longest where one is part of another; English ones as whole words."""

    def __init__(self, terms: Iterable[Term], lang: str):
        self.lang = lang
        self.terms = {term["id"]: term for term in terms}
        self._ordinary = {
            word.lower() for term in self.terms.values() for word in term.get("ordinary", ())
        }
        self._of: dict[str, Term] = {}
        for term in self.terms.values():
            for name in _names(term, lang):
                if lang == "en" or name.isascii() or len(name) > 1:  # 流 is in 流程, 块 in 一块
                    self._of.setdefault(name.lower(), term)
        ascii_names = [name for name in self._of if name.isascii()]
        others = [name for name in self._of if not name.isascii()]
        # Where one of each fits, the other one is longer: it goes on where the ASCII name ends.
        # ASCII: in 线程束warp a Chinese character is no part of an English word.
        self.pattern = re.compile(
            rf"{_one_of(others)}|(?<![\w-]){_one_of(ascii_names)}(?:s|es)?(?![\w-])",
            re.IGNORECASE | re.ASCII,
        )

    def term(
        self,
        found: re.Match,
        here: Mapping[str, str | None] | None = None,
        chapter: str | None = None,
    ) -> Term | None:
        """The term that a match of `pattern` shows, or None.

        here: what words mean on this page: the ids of their terms, or None where they mean no term.
        chapter: the name of the chapter in which it stands; in the one that introduces a term, its ordinary words mean it.
        """
        word = found[0].lower()
        forms = (word, word.removesuffix("s"), word.removesuffix("es"))
        form = next(form for form in forms if form in self._of)
        if here and form in here:
            return self.terms.get(here[form])
        term = self._of[form]
        if form in self._ordinary and (chapter is None or term.get("chapter") != chapter):
            return None
        return term


# A tag; of what no definition is put into, whole elements where they hold many tags and none of their own kind.
_WHOLE = ("svg", "pre", "math", "script", "style")
_PIECES = [
    *(rf"<{kind}\b.*?</{kind}>" for kind in _WHOLE),
    r"""<(?:[^<>"']|"[^"]*"|'[^']*')*>""",
]
_TAG = re.compile(f"({'|'.join(_PIECES)})", re.DOTALL)
_ENDS = ("/>", *(f"</{kind}>" for kind in _WHOLE))
_NAME = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
# What no definition is put into: headings, what is a link or a button, code, drawings, formulas, results.
_CLOSED = {
    *("h1", "h2", "h3", "h4", "h5", "h6", "a", "abbr", "button", "summary", "label", "dfn"),
    *("code", "pre", "kbd", "samp", "svg", "math", "script", "style", "figure", "nav"),
}
_OURS = re.compile(r'class="(?:[^"]* )?(?:ct-|arithmatex|highlight)')


class Hover(Finder):
    """Puts the definition of a term at its first occurrence on a page: a link into the glossary, with a title.

    A link, not <abbr>: it can be reached with the keyboard and tapped on a telephone.
    """

    def put(
        self,
        html: str,
        glossary: str,
        here: Mapping[str, str | None] | None = None,
        chapter: str | None = None,
    ) -> str:
        """`html` with a definition at each term's first occurrence in its prose; `glossary` is the page's address.

        here: words that mean another term on this page, with its id, or no term, with None. chapter: as for `term`.
        Raises GlossaryError for an id that is not there.
        """
        if unknown := {one for one in (here or {}).values() if one is not None} - {*self.terms}:
            raise GlossaryError(
                f"terms: {', '.join(sorted(unknown))} is no id of docs/glossary.yml"
            )
        seen: set[str] = set()

        def define(found: re.Match) -> str:
            if (term := self.term(found, here, chapter)) is None:
                return found[0]
            name, means = term["id"], escape(term["means"][self.lang].replace("`", ""))
            if name in seen:
                return found[0]
            seen.add(name)
            return f'<a class="ct-term" href="{glossary}#{name}" title="{means}">{found[0]}</a>'

        out = []
        # The kind of element that no definition is put into, and how many are open.
        closed, depth = "", 0
        for number, piece in enumerate(_TAG.split(html)):
            is_tag = number % 2
            if not is_tag and not depth:
                piece = self.pattern.sub(define, piece)
            out.append(piece)
            if not is_tag or piece.endswith(_ENDS) or not (tag := _NAME.match(piece)):
                continue
            end, kind = tag[1], tag[2].lower()
            # Only what is of the kind that closed it can open it again.
            if depth and kind == closed:
                depth += -1 if end else 1
            elif not depth and not end and (kind in _CLOSED or _OURS.search(piece)):
                closed, depth = kind, 1
        return "".join(out)
