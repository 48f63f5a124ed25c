"""Typed numbers between the braces of a page, and units that do not fit the reference before them.

`{{ 12.3 }} µs` is as typed as `12.3 µs`. Arithmetic may have the numbers that the page states, so that a reader can follow
it: `{{ 40 / 29.59 :.2f }} GB/s` after 29.59 ms was quoted. A time is recorded in microseconds and a share as a part of one:
`{{ x/y#bench["copy"].median_us :.1f }} ms` is wrong by a thousand.
"""

from __future__ import annotations

import re
from math import log10

from cudatut.site import references, told
from cudatut.site.plain import VALUE

_FIGURE = re.compile(r"(?<![\w.])\d+(?:[,_]\d+)*(?:\.\d+)?(?:[eE][+-]?\d+)?")
# Numbers that need no saying: single digits and powers of ten.
_ROUND = re.compile(r"\d|10*|\d?e\d+|1(?:\.0*)?e[+-]?\d+", re.I)
# What a field holds, and the units that stand behind it, by what it was multiplied with.
_UNITS = {
    "_us": {1e-6: "s|sec|seconds?|秒", 1e-3: "ms|毫秒", 1.0: "µs|μs|us|微秒", 1e3: "ns|纳秒"},
    "of_peak": {100.0: "%|％|per cent|percent"},
}
_BEHIND = {
    field: re.compile(rf"[\s\u00a0\u202f*]*({'|'.join(units.values())})(?![A-Za-z/])")
    for field, units in _UNITS.items()
}


def stated(markdown: str) -> set[float]:
    """The numbers that a page states in figures, in its quotes and code too, but not those of its arithmetic."""
    said = references.FIELD.sub(lambda field: f" {told.text_of(field[1])} ", markdown)
    return {_value(figure) for figure in _FIGURE.findall(said)}


def shown(field: re.Match, stated: set[float]) -> str:
    """What stands in a sentence for `{{ ... }}`: a typed number as that number, all else as a mark."""
    body = field[1]
    typed = references.literals(body)
    if not typed:
        return VALUE
    measured = references.refers(body)
    if measured:
        typed = [number for number in typed if "." in number]
    alone = not measured and re.fullmatch(r"[-+(]*[\d_.eE+-]+\)*", body.partition(":")[0].strip())
    if not alone and all(_is_stated(number, stated) for number in typed):
        return VALUE
    return typed[0] if measured or alone else _result(body)


def _is_stated(number: str, stated: set[float]) -> bool:
    return _ROUND.fullmatch(number) is not None or _value(number) in stated


def _value(figure: str) -> float:
    return float(figure.replace(",", "").replace("_", ""))


def _result(body: str) -> str:
    try:
        return references.formatted(body).strip()
    except references.BadReferenceError:
        return VALUE  # the build says what is wrong with it


def wrong_unit(field: re.Match) -> str | None:
    """The unit behind a reference, if it cannot be right."""
    for name, units in _UNITS.items():
        if (behind := _BEHIND[name].match(field.string, field.end())) is None:
            continue
        factor = references.factor(field[1], name)
        # Another factor than a power of ten makes another quantity: the time of one of 32 launches.
        if factor is None or factor <= 0 or not log10(factor).is_integer():
            continue
        right = next((unit for times, unit in units.items() if abs(factor / times - 1) < 1e-9), "")
        if re.fullmatch(right, behind[1]):
            return None
        return behind[1]
    return None
