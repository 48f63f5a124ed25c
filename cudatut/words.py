"""What commands and errors say to a reader, in English or Chinese: the choice of the language, and the table `words.yml`.

The language is that of $CUDATUT_LANG, which `--lang` sets for this process and its children, else that of the locale, else
English. A module takes the section of the table that it speaks from, and says a sentence by its key:

    _say = words.section("device")
    raise NoGpuError(_say("no driver", library="libcuda.so.1"))
"""

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from cudatut import yaml_text

LANGUAGES = ("en", "zh")
VARIABLE = "CUDATUT_LANG"
_LOCALE = (
    "LC_ALL",
    "LC_MESSAGES",
    "LANG",
)  # the first that is set counts, as for every program (POSIX)
_PRIMARY, _CHINESE = 0x3FF, 0x04  # of a language identifier of Windows: LANG_CHINESE in winnt.h


class Say(Protocol):
    """Says a sentence of one section: its key, another language than the reader's if any, and the values in it."""

    def __call__(self, key: str, lang: str | None = None, /, **values: Any) -> str: ...


def section(name: str) -> Say:
    """What says the sentences of a section of words.yml. The table is read when the first one is said."""

    def say(key: str, lang: str | None = None, /, **values: Any) -> str:
        return table()[name][key][LANGUAGES.index(lang or language())].format(**values)

    return say


def language() -> str:
    """The reader's language, "en" or "zh"."""
    for variable in (VARIABLE, *_LOCALE):
        if named := os.environ.get(variable):
            return "zh" if named.lower().startswith(("zh", "chinese")) else "en"
    return "zh" if os.name == "nt" and _windows_is_chinese() else "en"


@cache
def _windows_is_chinese() -> bool:
    import ctypes

    return ctypes.CDLL("kernel32").GetUserDefaultUILanguage() & _PRIMARY == _CHINESE


def use(lang: str) -> None:
    """Speak this language from here on, in this process and in those that it starts."""
    os.environ[VARIABLE] = lang


def printable() -> None:
    """On a console with a code page of its own (cp1252), characters that it lacks are escapes rather than a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


@cache
def table() -> dict[str, dict[str, list[str]]]:
    """words.yml: section -> key -> the sentence in each of LANGUAGES."""
    return yaml_text.load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))
