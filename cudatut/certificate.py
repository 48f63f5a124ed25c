"""The form of what a recording says of its making, its birth certificate: text that pages, paths and commands are made of.

So a name is one plain word after the other, a hash is a hash, and a number is one that can be. Whether it is true is
asked elsewhere: `cudatut.agreement`, `cudatut.provenance`.
"""

import datetime
import math
import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from cudatut import catalog, instrument, results, schema
from cudatut.tool import SANITIZERS

SCHEMA = 1
# A path that stays below the folder that it is relative to: no part of it begins with a dot.
_FILE = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_HASH = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_MADE_AT = re.compile(r"unknown|[0-9a-f]{7,64}(?:-dirty)?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", re.ASCII)
_CAPABILITY = re.compile(r"\d{1,2}\.\d", re.ASCII)
_VERSION = re.compile(r"[0-9A-Za-z][\w.+!-]*", re.ASCII)
_WORD = re.compile(r"[\w.-]+", re.ASCII)

Fits = Callable[[Any], bool]


def read(found: Any, name: str, path: PurePath) -> dict[str, Any]:
    """The metadata of a recording of this example in this file, as it is. Raises ValueError saying what is wrong with it."""
    if not isinstance(found, dict):
        raise ValueError("it is not a notebook that cudatut made (it has no metadata of its own)")
    if type(found.get("schema")) is not int or found["schema"] != SCHEMA:
        shown = results.short(found.get("schema"))
        raise ValueError(f"its schema is {shown}, and this cudatut reads schema {SCHEMA}")
    _require(found, _REQUIRED)
    _require(found["gpu"], _GPU, "gpu")
    _require(found, {key: fits for key, fits in _LATER.items() if key in found})
    if not _time(found["recorded_at"]):
        shown = results.short(found["recorded_at"])
        raise ValueError(f"its recorded_at is no time in UTC: {shown}")
    if found["name"] != name:
        raise ValueError(f"it is the recording of another example, {found['name']}")
    if catalog.script_in(name, found["sources"]) is None:
        raise ValueError(f"its sources lack the script of {name}")
    if unknown := set(found.get("meanings", ())) - set(found["sources"]):
        raise ValueError(f"it has the meaning of {min(unknown)}, which is none of its sources")
    for entry in found["sanitizers"]:
        tool = results.read(entry)
        if not isinstance(tool, results.Sanitizer) or tool.tool not in SANITIZERS:
            raise ValueError(f"its metadata has {results.short(entry)} among the sanitizers")
    if (found.get("slim") is True) != (path.suffix == ".json"):
        raise ValueError(
            "only the results of another GPU, in recordings/, are slim, and all of them"
        )
    return found


def _require(found: dict[str, Any], wanted: dict[str, Fits], inside: str = "") -> None:
    """Raises ValueError that names the first value which is not there, or does not fit."""
    for key, fits in wanted.items():
        if not fits(value := found.get(key)):
            where = f"{inside}.{key}" if inside else key
            raise ValueError(f"its metadata has {where} = {results.short(value)}")


# --- what a value has to be ------------------------------------------------------------------------


def _matches(pattern: re.Pattern[str]) -> Fits:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _text(value: Any) -> bool:
    """Words on one line."""
    return isinstance(value, str) and value.isprintable() and bool(value.strip())


def _count(least: int) -> Fits:
    return lambda value: type(value) is int and least <= value < schema.LARGEST_INTEGER


def _mapping(key: Fits, value: Fits) -> Fits:
    return lambda found: (
        isinstance(found, dict) and all(key(k) and value(v) for k, v in found.items())
    )


def _list(entry: Fits) -> Fits:
    return lambda found: isinstance(found, list) and all(map(entry, found))


def _or_none(fits: Fits) -> Fits:
    return lambda value: value is None or fits(value)


def _object(**wanted: Fits) -> Fits:
    """An object that has these values; what it has besides is left alone."""
    return lambda found: isinstance(found, dict) and all(f(found.get(k)) for k, f in wanted.items())


def _time(value: str) -> bool:
    if not _TIME.fullmatch(value):
        return False
    try:
        datetime.datetime.fromisoformat(value)
    except ValueError:  # the 99th of a month
        return False
    return True


def _seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 1e9 and math.isfinite(value)


_file, _hash, _commit, _word = map(_matches, (_FILE, _HASH, _COMMIT, _WORD))
_same_as_accepted = _object(ground=_text, was=_hash, now=_or_none(_hash), **{"as": _or_none(_file)})

_REQUIRED: dict[str, Fits] = {
    "name": _file,
    "title": lambda value: (
        isinstance(value, dict)
        and set(value) == set(catalog.LANGUAGES)
        and all(map(_text, value.values()))
    ),
    "requires": _matches(catalog.ARCH),
    "sources": _mapping(_file, _hash),
    "gpu": lambda value: isinstance(value, dict),
    "toolchain": _mapping(_word, _or_none(_matches(_VERSION))),
    "recorded_at": lambda value: isinstance(value, str),
    "commit": _matches(_MADE_AT),
    "duration_s": _seconds,
    "sanitizers": lambda value: isinstance(value, list),
}
_GPU: dict[str, Fits] = {
    "name": _text,
    "compute_capability": _matches(_CAPABILITY),
    "memory_bytes": _count(1),
    "sm_count": _count(1),
    "driver": _matches(_VERSION),
}
# What some recordings have besides: those made before it was recorded lack it.
_LATER: dict[str, Fits] = {
    "digest": _hash,
    "meanings": _mapping(_file, _hash),
    "kernels": _list(
        _object(
            file=_or_none(_file),
            name=_text,
            defines=_list(_text),
            options=_list(_text),
            arch=_matches(catalog.ARCH),
            code=_hash,
        )
    ),
    "instrument": _object(
        numbers=_mapping(lambda key: key in instrument.ASPECTS, _count(1)),
        files=_mapping(_file, _or_none(_hash)),
    ),
    "rivals": _mapping(_text, _text),
    "launched": _mapping(_text, _list(_text)),
    "restamped": _list(
        _object(**{"from": _commit, "to": _commit, "files": _mapping(_file, _same_as_accepted)})
    ),
}
