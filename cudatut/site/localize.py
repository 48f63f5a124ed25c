"""Results in the page's language: their labels and units translated, their numbers as they are.

A word may mean one thing in most chapters and another in one, as `blocks` in that on the KV cache: whoever shows an
example's results says so, `with localize.of("llm/paged_attention"):`.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from functools import cache, partial
from typing import Any

from cudatut.results import KINDS
from cudatut.site import state
from cudatut.site.label_files import Labels, load

_example: ContextVar[str] = ContextVar("example", default="")


@contextmanager
def of(example: str) -> Iterator[None]:
    """Inside a with block, labels mean what they mean in this example."""
    before = _example.set(example)
    try:
        yield
    finally:
        _example.reset(before)


def current() -> Labels:
    """The labels of the book that is being built, as the example means them whose results are shown."""
    return load(state.current().docs.parent / "labels").of(_example.get())


def localized(result: dict[str, Any], lang: str) -> dict[str, Any]:
    """A result (schema v1) as a page in `lang` shows it: its labels translated, its numbers as they are."""
    if lang == "en":
        return result
    labels = current()
    return relabeled(result, labels.chinese, labels.unit)


def relabeled(
    result: dict[str, Any], word: Callable[[str], str], unit: Callable[[str], str] | None = None
) -> dict[str, Any]:
    """A result with every label passed through `word`, every unit behind a value through `unit` (default: word).

    Which of its fields are labels and units, its declaration says; what has none is the same object.
    """
    tell = _teller(KINDS[result["kind"]])
    return tell(result, {"label": word, "unit": unit or word}) if tell else result


Say = dict[str, Callable[[str], str]]  # how labels and units are said


def _teller_of(annotation: Any) -> Callable[[Any, Say], Any] | None:
    """What says the labels of a value of this annotation; None where it can have none."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        kind = inner[1]
        return lambda value, say: say[kind](value) if value else value
    if is_dataclass(annotation):
        told = {one.name: tell for one in fields(annotation) if (tell := _teller(one.type))}
        return partial(_fields, told) if told else None
    if not any(map(_teller, inner)):
        return None
    if origin in (types.UnionType, typing.Union):
        # In JSON, a value of list[...] is a list, and one of Annotated[str, ...] a str.
        choices = [(getattr(one, "__origin__", one), _teller(one)) for one in inner]
        return partial(_one_of, choices)
    if origin is list:
        tell = _teller(inner[0])
        return lambda value, say: [tell(one, say) for one in value]
    if origin is dict:
        return partial(_entries, *map(_teller, inner))
    return None


_teller: Callable[[Any], Any] = cache(_teller_of)  # declared as `cudatut.schema.reader` is


def _fields(told: dict[str, Any], value: dict[str, Any], say: Say) -> dict[str, Any]:
    return {key: told[key](one, say) if key in told else one for key, one in value.items()}


def _one_of(choices: list[tuple[type, Any]], value: Any, say: Say) -> Any:
    fits = [tell for kind, tell in choices if isinstance(value, kind)]
    return fits[-1](value, say) if fits and fits[-1] else value


def _entries(tell_key: Any, tell: Any, value: dict[str, Any], say: Say) -> dict[str, Any]:
    found = {
        tell_key(key, say) if tell_key else key: tell(one, say) if tell else one
        for key, one in value.items()
    }
    # One translation for two lines would lose one.
    return found if len(found) == len(value) else value
