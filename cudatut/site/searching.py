"""What the search index is made of: words and what programs printed, not the numbers of tables and the labels of drawings.

Whoever is in trouble types what the terminal said, so the recorded outputs are searched too.

Material's search reads a page tag by tag, drawings and colored code too: a fifth of a build. It is
given a page that has only what is searched.

A field of its own, `keywords`, holds the terms and code words that a chapter introduces, with their synonyms, and what
a page's front matter says that readers ask for who do not know its words (`search: {words: [nan, wrong result]}`), each
as one token that nobody types: `§sharedmemory`. docs/theme/js/search.js makes the same of what a reader types and looks it
up beside the words, so that the chapter that introduces a term comes first, however often others use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from cudatut.errors import CudatutError
from cudatut.site import glossary

# Ours, by their class; none of them contains another of its kind.
_UNSEARCHED = re.compile(
    r'<(?P<tag>figure|table|aside|ul(?= class="ct-code")|p(?= class="ct-(?:time|needs)")|pre(?= class="ct-diff))(?= class="ct-).*?</(?P=tag)>',
    re.DOTALL,
)
_SPAN = re.compile(r"</?span[^>]*>")
_FOLD_LINK = re.compile(r'<a class="headerlink"[^>]*>[^<]*</a>(?=</summary>)')
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]{2,}")


class SearchWordsError(CudatutError):
    """A page's front matter has search words that are none; the message quotes them."""


def searched(html: str) -> str:
    """A page's HTML without our tables, drawings, certificates, lists of code, times to read, GPUs needed, spans of colored code."""
    return _SPAN.sub("", _FOLD_LINK.sub("", _UNSEARCHED.sub("", html)))


def token(words: str) -> str:
    """A term's name in the field of keywords, as `key` in search.js makes it.

    Letters and digits only, and Chinese in hexadecimal, or the search would cut it into words.
    """
    letters = re.sub(r"[\W_]+", "", words.lower())
    return "§" + "".join(c if c.isascii() else f"{ord(c):x}" for c in letters)


def asked(meta: Mapping[str, Any]) -> list[str]:
    """The `words` that a page's front matter has under `search`; none where it has none.

    Raises SearchWordsError for anything but a list of words.
    """
    search = meta.get("search") or {}
    words = search.get("words", []) if isinstance(search, dict) else None
    if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
        raise SearchWordsError(
            f"search: {search!r} in the front matter has no list of words; write {{words: [nan, wrong result]}}"
        )
    return words


def add_keywords(
    entries: list[dict[str, Any]],
    terms: Iterable[dict[str, Any]],
    lang: str,
    words: Mapping[str, Iterable[str]] | None = None,
) -> None:
    """Give the entries of pages, not of their sections, the field of keywords: the terms that each chapter introduces.

    words: by address of a page, what else readers look for who need it.
    """
    introduced = {url: [token(word) for word in asked] for url, asked in (words or {}).items()}
    for term in terms:
        if "chapter" in term:
            tokens = introduced.setdefault(f"{term['chapter']}/", [])
            tokens += [token(word) for word in glossary.words(term, lang)]
    for entry in entries:
        if keywords := introduced.get(entry["location"]):
            entry["keywords"] = " ".join(dict.fromkeys(keywords))


def segment(lang: str, terms: Iterable[dict[str, Any]]) -> None:
    """Have Material cut the Chinese sentences of Chinese pages into words, and leave English pages as they are.

    English search does not cut at the marks between the words, and so would find none; nor need jieba read its dictionary
    for the few Chinese words there, which takes half a second.
    """
    from material.plugins.search import plugin

    plugin.jieba = taught(terms) if lang == "zh" else None


def taught(terms: Iterable[dict[str, Any]]) -> Any:
    """jieba, which cuts Chinese sentences into words, keeping the glossary's terms whole."""
    import jieba

    for term in terms:
        for word in (term["zh"], *term.get("also", {}).get("zh", ())):
            for run in _HAN.findall(word):
                jieba.add_word(run)
    return jieba
