"""Conditions of sentences: what a comparison in words says of the numbers, once for both languages.

    The kernel is about as fast as the copy{{ holds like-the-copy }}.

`docs/conditions/<page>.yml` has, by name, what has to hold:

    like-the-copy: 0.95 <= start/x#bench["kernel"].median_us / start/x#bench["copy"].median_us <= 1.05
    most-of-the-time: start/x#parts["copies"].of_total > 0.5
    ahead-everywhere: [a condition, another one]
    registers-are-near: "no measurement: a register belongs to the SM"

The book's own recording has to satisfy it, or a strict build fails. On another GPU, and where the book was built with a
reader's numbers, the sentence says that it is not so there, and how it is instead.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from html import escape
from pathlib import Path

import yaml

from cudatut import yaml_text
from cudatut.errors import CudatutError
from cudatut.finding import Finding
from cudatut.recording import Recording
from cudatut.site import comparing, references, state
from cudatut.site.locale import LANGUAGES, text
from cudatut.site.missing import MissingOutputError

FOLDER = "conditions"
# What stands in the place of a condition where a sentence compares nothing that was measured.
NONE = "no measurement: "

_HOLDS = re.compile(r"\{\{\s*holds\s+([^\s}]+)\s*\}\}")
# Without digits: the lints read those between braces as typed numbers.
_NAME = re.compile(r"[a-z]+(?:-[a-z]+)*")
_COMPARED = re.compile(r"\s*(<=|>=|<|>)\s*")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class BadConditionError(CudatutError):
    """A condition that cannot be read, is not there, or does not hold; the message says which and what to do."""


@dataclass(frozen=True)
class Condition:
    """That the value of an expression over recordings lies within bounds: each an operator and a number, `> 0.5`."""

    expression: str
    bounds: tuple[tuple[str, float], ...]

    def holds(self, value: float) -> bool:
        return all(_OPERATORS[sign](value, bound) for sign, bound in self.bounds)

    def is_trivial(self, value: float) -> bool:
        """Whether it would still hold with the sides of the ratio exchanged, with half of the value and with twice of it."""
        return value == 0 or all(map(self.holds, (1 / value, value / 2, 2 * value)))

    def __str__(self) -> str:
        return " and ".join(f"{sign} {bound:g}" for sign, bound in self.bounds)


@dataclass(frozen=True)
class Named:
    """What a page's file has under a name: conditions that all have to hold, or why there is none."""

    conditions: tuple[Condition, ...] = ()
    reason: str = ""


# --- reading -------------------------------------------------------------------------------------


def file_of(page: str, docs: Path) -> Path:
    """The conditions of a page, such as `basics/coalescing.md`. docs: the folder of all languages."""
    return (docs / FOLDER / page).with_suffix(".yml")


def shown(page: str) -> str:
    """The same, as messages name it."""
    return f"docs/{FOLDER}/{page.removesuffix('.md')}.yml"


def read(said: str) -> Condition:
    """The condition that a text says. Raises BadConditionError."""
    signs = list(_COMPARED.finditer(references.masked(said)))
    cuts = [0, *(place for sign in signs for place in sign.span()), len(said)]
    parts = [said[start:end].strip() for start, end in zip(cuts[::2], cuts[1::2])]
    at = next((number for number, part in enumerate(parts) if references.refers(part)), -1)
    numbers = [part for number, part in enumerate(parts) if number != at]
    one_way = len({sign[1][0] for sign in signs}) == 1
    between = len(signs) == 1 or (len(signs) == 2 and at == 1)
    if at < 0 or not one_way or not between or not all(map(_NUMBER.fullmatch, numbers)):
        raise BadConditionError(
            f"'{said}' is no condition: write `a / b > 1`, `a / b < 1` or `0.95 <= a / b <= 1.05`, where a and b are "
            'references such as start/x#bench["copy"].median_us'
        )
    bounds = []
    for number, sign in enumerate(signs):
        left = number < at  # the bound stands on the left
        bound = float(parts[number if left else number + 1])
        bounds.append((_TURNED[sign[1]] if left else sign[1], bound))
    return Condition(parts[at], tuple(bounds))


def of_file(path: Path) -> dict[str, Named]:
    """The conditions of a page by name; none where there is no file. Raises BadConditionError naming what is wrong."""
    return _of_file(path, path.stat().st_mtime_ns) if path.is_file() else {}


@cache
def _of_file(path: Path, _changed: int) -> dict[str, Named]:
    try:
        found = yaml_text.load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadConditionError(f"it cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise BadConditionError("it is no list of `name: condition`")
    return {str(name): _named(str(name), said) for name, said in found.items()}


def _named(name: str, said: object) -> Named:
    if not _NAME.fullmatch(name):
        raise BadConditionError(f"the name '{name}': use a-z and - only")
    if isinstance(said, str) and said.startswith(NONE):
        return Named(reason=said.removeprefix(NONE).strip())
    many = said if isinstance(said, list) else [said]
    try:
        return Named(tuple(read(str(one)) for one in many))
    except BadConditionError as error:
        raise BadConditionError(f"{name}: {error}") from None


# --- on a page -----------------------------------------------------------------------------------


def replace(markdown: str, report: Callable[[Exception], None], line_offset: int = 0) -> str:
    """Markdown with what its sentences say besides in the place of their conditions: nothing where they hold.

    What is wrong is passed to `report` with its line; in a strict build this is also a sentence that the book's own numbers
    contradict.
    """

    def one(number: int, match: re.Match) -> str:
        if references.inside(references.CODE_SPAN, match):
            return match[0]
        try:
            return _html(match[1])
        except BadConditionError as error:
            report(BadConditionError(f"line {number + line_offset}: {error}"))
        except CudatutError as error:  # of the recording: said once, not for each of its numbers
            report(error)
        return ""

    return "\n".join(
        line if in_code else _HOLDS.sub(partial(one, number), line)
        for number, line, in_code in references.lines(markdown)
    )


def _html(name: str) -> str:
    build = state.current()
    file = shown(build.page)
    try:
        named = of_file(file_of(build.page, build.docs.parent)).get(name)
    except BadConditionError as error:
        raise BadConditionError(f"{file}: {error}") from None
    if named is None:
        raise BadConditionError(f"{{{{ holds {name} }}}}: {file} has no condition of this name")
    return "".join(_marks(named, name, file))


def _marks(named: Named, name: str, file: str) -> Iterator[str]:
    """Marks of the numbers that contradict a sentence: those of the book's own GPU, and those of others."""
    build, against = state.current(), dict[str, list[str]]()
    for one in named.conditions:
        try:
            value = _value(one.expression)
        except MissingOutputError:  # the sentence's numbers say so
            continue
        if not one.holds(value):
            if build.mode == "strict":
                raise BadConditionError(
                    f"this sentence says '{name}', which is {one} ({file}), and it is {said(value)}: "
                    "change the sentence in both languages, or its condition"
                )
            against.setdefault("", []).append(said(value))
        for gpu in _others(one):
            value = _value(one.expression, partial(_on, gpu))
            if not one.holds(value):
                against.setdefault(gpu, []).append(said(value))
    for gpu, values in against.items():
        yield _mark(values, gpu)


def _value(expression: str, record: Callable[[str], Recording] | None = None) -> float:
    found = references.value(expression, record)
    if isinstance(found, bool | str):
        raise BadConditionError(f"{expression} is {found!r}, and no number")
    return found


def _others(condition: Condition) -> list[str]:
    """The other GPUs of which everything is recorded that a condition refers to."""
    build = state.current()
    every = [
        {one.gpu for one in build.recordings(name)[1:]}
        for name in references.named(f"{{{{ {condition.expression} }}}}")
    ]
    return sorted(set.intersection(*every)) if every else []


def _on(gpu: str, example: str) -> Recording:
    return next(one for one in state.current().recordings(example) if one.gpu == gpu)


def _mark(values: list[str], gpu: str) -> str:
    """gpu: of which the reader sees it only after choosing it; "": always."""
    chosen = f" data-gpu='{escape(gpu)}' title='{escape(gpu)}' hidden" if gpu else ""
    words = text("condition.not_so", value=", ".join(values))
    return f"<span class='ct-not-so'{chosen}>{escape(words)}</span>"


def said(value: float) -> str:
    """A value as a reader is told it."""
    # From 999.5 on three digits would be 1e+03.
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


# --- rules ---------------------------------------------------------------------------------------


def findings(page: str, docs: Path) -> list[Finding]:
    """What is to be mended in a page's conditions: in their file, in its two languages, and in sentences without one."""
    file = shown(page)
    try:
        named = of_file(file_of(page, docs))
    except BadConditionError as error:
        return [Finding(file, 0, str(error))]
    found = []
    for lang in LANGUAGES:
        path, its = docs / lang / page, f"docs/{lang}/{page}"
        if not path.is_file():
            continue
        markdown = path.read_text("utf-8", "replace")
        used = dict[str, int]()
        for number, line, in_code in references.lines(markdown):
            if not in_code:
                used |= dict.fromkeys(_HOLDS.findall(line), number)
        for name, number in used.items():
            if name not in named:
                found.append(Finding(its, number, f"'{name}' is no condition of {file}: add it"))
        for name in named.keys() - used.keys():
            how = "write {{ holds NAME }} at the end of its sentence, or take it out"
            found.append(Finding(file, 0, f"{its} does not use '{name}': {how}"))
        for number, words in comparing.without_condition(markdown, lang):
            how = f"write {{{{ holds NAME }}}} before its full stop and NAME into {file}"
            said = f"this sentence compares ('{words}') and has no condition: {how}"
            found.append(Finding(its, number, said))
    return sorted(found)
