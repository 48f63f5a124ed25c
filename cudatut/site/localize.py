"""Results in the page's language: their labels and units translated, their numbers as they are."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from cudatut.results import KINDS
from cudatut.site import state
from cudatut.site.label_files import Labels, load


def current() -> Labels:
    """The labels of the book that is being built."""
    return load(state.current().docs.parent / "labels")


def localized(result: dict[str, Any], lang: str) -> dict[str, Any]:
    """A result (schema v1) as a page in `lang` shows it: its labels translated, its numbers as they are."""
    if lang == "en":
        return result
    labels = current()
    return relabeled(result, labels.chinese, labels.unit)


def relabeled(
    result: dict[str, Any], word: Callable[[str], str], unit: Callable[[str], str] | None = None
) -> dict[str, Any]:
    """A copy of a result with every label passed through `word`, every unit behind a value through `unit` (default: word).

    Which of its fields are labels and units, its declaration says.
    """
    say = {"label": word, "unit": unit or word}

    def told(type_: Any, value: Any) -> Any:
        origin, inner = typing.get_origin(type_), typing.get_args(type_)
        if is_dataclass(type_):
            hints = {one.name: one.type for one in fields(type_)}
            return {key: told(hints.get(key), one) for key, one in value.items()}
        if origin is typing.Annotated:
            return say[inner[1]](value) if value else value
        if origin in (types.UnionType, typing.Union):
            # In JSON, a value of list[...] is a list, and one of Annotated[str, ...] a str.
            fits = [one for one in inner if isinstance(value, getattr(one, "__origin__", one))]
            return told(fits[-1], value) if fits else value
        if origin is list:
            return [told(inner[0], one) for one in value]
        if origin is dict:
            found = {told(inner[0], key): told(inner[1], one) for key, one in value.items()}
            # One translation for two lines would lose one.
            return found if len(found) == len(value) else value
        return value

    return told(KINDS[result["kind"]], result)
