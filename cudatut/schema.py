"""JSON read as annotations say: for each annotation a function is made once, and then called for thousands of values.

Dataclasses are made of objects; a TypedDict stays a dictionary. `Annotated[str, rule]` is a text of which `rule` is true.
"""

import math
import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, reduce
from typing import Annotated, Any, NotRequired, is_typeddict

LARGEST_INTEGER = 2**64  # no count of anything that a GPU does reaches it
Count = Annotated[int, lambda number: number > 0]

Reader = Callable[[Any], Any]
_NOTHING = object()


class Misfit(ValueError):
    """A value that is not what its annotation says; the message names it by the path that leads to it."""

    def __init__(self, value: Any = _NOTHING):
        self._value, self._path = value, ""

    def inside(self, step: str) -> "Misfit":
        """The same, seen from the value that this one is a part of."""
        self._path = step + self._path
        return self

    def __str__(self) -> str:
        said = "missing" if self._value is _NOTHING else short(self._value)
        return f"{self._path.lstrip('.')} is {said}"


def short(value: Any) -> str:
    """A value as an error message shows it, cut at 60 characters."""
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _reader(annotation: Any) -> Reader:
    """A function that returns what JSON holds as the annotation says, dataclasses made; it raises Misfit.

    True is no number, NaN and infinity are none either. Keys that an object does not declare are left alone.
    """
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return reduce(_ruled, filter(callable, inner[1:]), reader(inner[0]))
    if origin is NotRequired:
        return reader(inner[0])
    if origin in (types.UnionType, typing.Union):
        return _one_of([reader(one) for one in inner])
    if isinstance(annotation, type) and is_dataclass(annotation):
        return _object(annotation, _declared(annotation))
    if is_typeddict(annotation):
        kinds, required = (
            typing.get_type_hints(annotation, include_extras=True),
            annotation.__required_keys__,
        )
        return _object(dict, [(key, reader(kind), key in required) for key, kind in kinds.items()])
    if origin is list:
        return _list(reader(inner[0]))
    if origin is tuple:
        return _tuple([reader(one) for one in inner])
    if origin is dict:
        return _dict(*map(reader, inner))
    if annotation in (int, float):
        return _number((int, annotation))
    return _plain(annotation)


reader: Callable[[Any], Reader] = cache(_reader)  # declared, since to mypy a class is not Hashable


def _ruled(read_value: Reader, rule: Callable[[Any], Any]) -> Reader:
    def read(value: Any) -> Any:
        if not rule(found := read_value(value)):
            raise Misfit(value)
        return found

    return read


def _one_of(choices: list[Reader]) -> Reader:
    def read(value: Any) -> Any:
        for choice in choices:
            try:
                return choice(value)
            except Misfit:
                continue
        raise Misfit(value)

    return read


Declared = list[
    tuple[str, Reader, bool]
]  # of an object: names, what reads them, and whether they have to be there


def _declared(cls: Any) -> Declared:
    return [
        (one.name, reader(one.type), one.default is MISSING and one.default_factory is MISSING)
        for one in fields(cls)
    ]


def _object(make: Callable[..., Any], declared: Declared) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Misfit(value)
        found = {}
        for name, read_field, required in declared:
            try:
                if name in value:
                    found[name] = read_field(value[name])
                elif required:
                    raise Misfit
            except Misfit as error:
                raise error.inside(f".{name}") from None
        return make(**found)

    return read


def _list(read_item: Reader) -> Reader:
    def read(value: Any) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise Misfit(value)
        found: list[Any] = []
        try:
            for one in value:
                found.append(read_item(one))
        except Misfit as error:
            # Rows are called by their names, other values by their numbers.
            number, wrong = len(found), value[len(found)]
            called = wrong.get("name", number) if isinstance(wrong, dict) else number
            raise error.inside(f"[{called!r}]") from None
        return found

    return read


def _tuple(items: list[Reader]) -> Reader:
    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)) or len(value) != len(items):
            raise Misfit(value)
        found: list[Any] = []
        try:
            for read_item, one in zip(items, value):
                found.append(read_item(one))
        except Misfit as error:
            raise error.inside(f"[{len(found)}]") from None
        return tuple(found)

    return read


def _dict(read_key: Reader, read_item: Reader) -> Reader:
    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Misfit(value)
        found = {}
        for key, one in value.items():
            try:
                found[read_key(key)] = read_item(one)
            except Misfit as error:
                raise error.inside(f"[{key!r}]") from None
        return found

    return read


def _number(kinds: tuple[type, ...]) -> Reader:
    def read(value: Any) -> int | float:
        number = isinstance(value, kinds) and not isinstance(value, bool)
        # Integers in Python have no end, and no float goes beyond 1e308.
        if number and (
            abs(value) < LARGEST_INTEGER if isinstance(value, int) else math.isfinite(value)
        ):
            return value
        raise Misfit(value)

    return read


def _plain(kind: type) -> Reader:
    def read(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        raise Misfit(value)

    return read
