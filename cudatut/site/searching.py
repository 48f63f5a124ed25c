"""What the search knows: words and what programs printed, not the numbers of tables and the labels of drawings.

Whoever is in trouble types what the terminal said, so the recorded outputs are searched too.

Material's search reads a page tag by tag, drawings and colored code too: a fifth of a build. It is given a page that has
only what is searched. Its plugin writes the index; the search itself is docs/theme/js/searching.js, a worker in the place of
Material's.

Beside its text, a page has the names of the terms that it introduces, with their synonyms, what docs/search.yml says that
readers type who need it, and what its front matter says (`search: {words: [nan, wrong result]}`): a chapter that introduces
a term comes first, however often others use it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from cudatut import yaml_text
from cudatut.errors import CudatutError
from cudatut.site import glossary, locale

# Ours, by their class; none of them contains another of its kind.
_UNSEARCHED = re.compile(
    r'<(?P<tag>figure|table|aside|ul(?= class="ct-code")|p(?= class="ct-(?:time|needs)")|pre(?= class="ct-diff))(?= class="ct-).*?</(?P=tag)>',
    re.DOTALL,
)
_SPAN = re.compile(r"</?span[^>]*>")
_FOLD_LINK = re.compile(r'<a class="headerlink"[^>]*>[^<]*</a>(?=</summary>)')


class SearchWordsError(CudatutError):
    """A page's front matter or docs/search.yml has search words that are none; the message quotes them."""


def searched(html: str) -> str:
    """A page's HTML without our tables, drawings, certificates, lists of code, times to read, GPUs needed, spans of colored code."""
    return _SPAN.sub("", _FOLD_LINK.sub("", _UNSEARCHED.sub("", html)))


def asked(meta: Mapping[str, Any]) -> list[str]:
    """The `words` that a page's front matter has under `search`; none where it has none.

    Raises SearchWordsError for anything but a list of words.
    """
    search = meta.get("search") or {}
    words = search.get("words", []) if isinstance(search, dict) else None
    return _words(words, f"search: {search!r} in the front matter")


def asked_for(path: Path, chapters: Collection[str]) -> dict[str, dict[str, list[str]]]:
    """What docs/search.yml says that readers type: by language, by the address of the page that helps.

    Raises SearchWordsError for a chapter that is not there, and for anything but lists of words.
    """
    import yaml

    try:
        said = yaml_text.load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SearchWordsError(f"{path}: {error}") from error
    found: dict[str, dict[str, list[str]]] = {lang: {} for lang in locale.LANGUAGES}
    for name, by_lang in said.items():
        if name not in chapters:
            raise SearchWordsError(f"{path}: docs/contents.yml has no chapter {name!r}")
        if not isinstance(by_lang, dict) or by_lang.keys() != found.keys():
            raise SearchWordsError(f"{path}: {name} needs words in {' and '.join(found)}")
        for lang, words in by_lang.items():
            found[lang][f"{name}/"] = _words(words, f"{path}: {name}: {lang}: {words!r}")
    return found


def _words(words: object, what: str) -> list[str]:
    if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
        raise SearchWordsError(f"{what} has no list of words; write words as [nan, wrong result]")
    return words


def complete(
    entries: list[dict[str, Any]],
    terms: Iterable[dict[str, Any]],
    lang: str,
    words: Mapping[str, Iterable[str]],
    parts: Mapping[str, str],
) -> None:
    """Give the entries of pages, not of their sections, what the search knows of them beside their text.

    `keywords`: lists of names that mean the same, of the terms that the page introduces (or, where no chapter does, explains);
    `asked`: what readers ask for who need it (`words`, by address); `part`: the title of the part whose chapter it is
    (`parts`, by address).
    """
    introduced: dict[str, list[list[str]]] = {}
    for term in terms:
        if chapter := term.get("chapter") or term.get("explained"):
            lists = introduced.setdefault(f"{chapter}/", [])
            lists.append(glossary.names(term, lang))
            lists += [[code] for code in term.get("code", ())]
    for url, asked in words.items():
        same = [word.split(" = ") for word in asked if " = " in word]
        introduced.setdefault(url, []).extend(same)
    for entry in entries:
        if keywords := introduced.get(entry["location"]):
            entry["keywords"] = keywords
        if asked := dict.fromkeys(words.get(entry["location"], ())):
            entry["asked"] = [word for word in asked if " = " not in word]
        if part := parts.get(entry["location"]):
            entry["part"] = part


def leave_whole() -> None:
    """Have Material's plugin leave Chinese sentences as they are, also where jieba is there to cut them into words."""
    from material.plugins.search import plugin

    plugin.jieba = None
