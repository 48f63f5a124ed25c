"""The files `docs/labels/*.yml`, merged: what the labels of results are in Chinese.

    blocks per SM: 每个 SM 的线程块数
    "grid {}, block {}": "网格 {}，线程块 {}"   # {} stands for a number or a word that varies
    _same: [grid-stride, cuBLAS]                # names that stay as they are
    _units: {cycles: 个周期}                    # units, as they stand behind a value

A label made of several parts, as in `blocks, n = 33: time`, needs no entry of its own where each of its parts has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

_SAME, _UNITS = "_same", "_units"
_HOLE = re.compile(r"\{(\d*)\}")
# What a {} stands for: (3, 1), [1, 2], 64 x 64 or a word.
_VARIES = r"(\([^()]*\)|\[[^\[\]]*\]|[\d.,]+(?: [x×] [\d.,]+)+|\S+?)"
_CODE = re.compile(r"`[^`]*`")
# A word of letters; what has digits, underscores, dots or capitals inside is an identifier.
_TOKEN = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
_IDENTIFIER = re.compile(r"[\d_.]|[a-z][A-Z]")
_ENGLISH = re.compile(r"[a-z]{3}")
_BETWEEN_CHINESE = re.compile(r"(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])")
_JOINTS = {", ": "，", ": ": "：", "; ": "；", " / ": " / "}


@dataclass(frozen=True)
class Template:
    """An entry with {}: `sign` is what a label must hold to be worth a look at `pattern`."""

    sign: str
    pattern: re.Pattern[str]
    chinese: str


@dataclass
class Labels:
    """The merged files: `words` label -> Chinese, `templates` for those with {}, `same` names, `units`; what is wrong with them."""

    words: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    templates: list[Template] = field(default_factory=list)
    same: re.Pattern[str] | None = None
    problems: list[str] = field(default_factory=list)
    _known: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict, repr=False)

    def chinese(self, label: str) -> str:
        """The label in Chinese; itself where it has no English words, or no entry."""
        return self._look_up(label)[0]

    def lacking(self, label: str) -> tuple[str, ...]:
        """The parts of a label that need an entry and have none."""
        return self._look_up(label)[1]

    def unit(self, unit: str) -> str:
        """A unit behind a value in Chinese: its entry among the units, else that among the labels."""
        return self.units.get(unit) or self.chinese(unit)

    def _look_up(self, label: str) -> tuple[str, tuple[str, ...]]:
        if label not in self._known:
            self._known[label] = self._joined(label)
        return self._known[label]

    def _whole(self, part: str) -> tuple[str, tuple[str, ...]] | None:
        """Chinese and what it lacks, by an entry for all of `part`; None where English words have no entry."""
        if part in self.words:
            return self.words[part], ()
        found = None
        for template in self.templates:
            match = template.sign in part and template.pattern.fullmatch(part)
            if not match:
                continue
            holes = [self._hole(word) for word in match.groups()]
            shown = _filled(template.chinese, [hole or "" for hole in holes])
            lacking = tuple(
                w for w, hole in zip(match.groups(), holes, strict=True) if hole is None
            )
            if not lacking:
                return _BETWEEN_CHINESE.sub("", shown), ()
            found = found or (part, lacking)
        return found or (None if self._english(part) else (part, ()))

    def _hole(self, word: str) -> str | None:
        """What a word that varies is in Chinese; None if it is an English one without entry."""
        if word in self.words:
            return self.words[word]
        return None if self._english(word) else word

    def _joined(self, label: str) -> tuple[str, tuple[str, ...]]:
        """A label put together from the entries of its parts, each as long as there is one."""
        parts, first = _parts(label), 0
        shown, lacking = "", []
        while first < len(parts):
            for end in range(len(parts), first, -2):
                known = self._whole("".join(parts[first:end]))
                if known and not known[1]:
                    break
            chinese, without = known or (parts[first], (parts[first],))
            lacking += without
            shown += chinese + (_JOINTS[parts[end]] if end < len(parts) else "")
            first = end + 1
        return (label, tuple(lacking)) if lacking else (shown, ())

    def _english(self, text: str) -> bool:
        """Whether English words remain when code, identifiers and names that stay are taken away."""
        if not _ENGLISH.search(text):
            return False
        bare = _CODE.sub(" ", text)
        if self.same:
            bare = self.same.sub(" ", bare)
        return any(
            _ENGLISH.search(word) and not _IDENTIFIER.search(word) for word in _TOKEN.findall(bare)
        )


def _parts(label: str) -> list[str]:
    """A label cut at commas, colons, semicolons and slashes outside brackets and code: part, joint, part ..."""
    found, depth, code, start, i = [], 0, False, 0, 0
    while i < len(label):
        sign = label[i]
        code ^= sign == "`"
        depth += (sign in "([") - (sign in ")]")
        joint = next((j for j in _JOINTS if label.startswith(j, i)), None)
        if joint and depth <= 0 and not code:
            found += [label[start:i], joint]
            start = i = i + len(joint)
        else:
            i += 1
    return [*found, label[start:]]


def _filled(template: str, words: list[str]) -> str:
    """A template with its {} replaced in order, {0} {1} by number."""
    order = iter(words)
    return _HOLE.sub(lambda hole: words[int(hole[1])] if hole[1] else next(order), template)


@cache
def load(folder: Path) -> Labels:
    """The labels of all files in a folder (none where there is no such folder), read once.

    What is wrong in a file is in `problems`, each naming its file; the rest is there.
    """
    labels, origin = Labels(), {}
    same: dict[str, str] = {}
    for path in sorted(folder.glob("*.yml")):
        name = f"docs/labels/{path.name}"
        try:
            entries = list(_entries(path))
        except ValueError as error:
            labels.problems.append(f"{name}: {error}")
            continue
        for kind, label, chinese in entries:
            if kind == _SAME:
                same.setdefault(label, name)
                continue
            holes = len(_HOLE.findall(label))
            if kind != _UNITS and holes != _wanted(chinese):
                labels.problems.append(
                    f"{name}: '{label}' has {holes} {{}}, and '{chinese}' other ones"
                )
                continue
            where = labels.units if kind == _UNITS else labels.words
            before = origin.setdefault((kind, label), name)
            if where.setdefault(label, chinese) != chinese:
                labels.problems.append(
                    f"'{label}' is '{where[label]}' in {before} and '{chinese}' in {name}: write it once"
                )
    for label in same.keys() & labels.words.keys():
        if labels.words[label] != label:
            labels.problems.append(
                f"'{label}' is '{labels.words[label]}' in {origin['', label]} and stays as it is in {same[label]}: decide"
            )
    labels.same = _names(same)
    patterns = [label for label in labels.words if _HOLE.search(label)]
    # The one with most words of its own fits best.
    for label in sorted(patterns, key=lambda label: -len(_HOLE.sub("", label))):
        pieces = _HOLE.split(label)[::2]
        pattern = re.compile(_VARIES.join(map(re.escape, pieces)))
        labels.templates.append(Template(max(pieces, key=len), pattern, labels.words.pop(label)))
    return labels


def _wanted(chinese: str) -> int:
    """How many words a translation's {} take; -1 for {} and {0} side by side."""
    holes = _HOLE.findall(chinese)
    if not any(holes):
        return len(holes)
    return len(set(holes)) if set(holes) == set(map(str, range(len(set(holes))))) else -1


def _names(same: Iterable[str]) -> re.Pattern[str] | None:
    longest_first = sorted(same, key=len, reverse=True)
    if not longest_first:
        return None
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w-])")


def _entries(path: Path) -> Iterator[tuple[str, str, str]]:
    """(kind, label, Chinese) of each line of a file, kind "", "_same" or "_units"; every word is text, also `yes` and 1.

    Raises ValueError for what has another form, and for a label that stands twice.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=loader)
    except yaml.YAMLError as error:
        raise ValueError(f"it is no YAML: {' '.join(str(error).split())}") from error
    if root is None:
        return
    for key, value in _mapping(root, "the file"):
        if key == _SAME:
            if not isinstance(value, yaml.SequenceNode):
                raise ValueError(f"{_SAME} is a list of names")
            for item in value.value:
                yield _SAME, _text(item, _SAME), ""
        elif key == _UNITS:
            for unit, chinese in _mapping(value, _UNITS):
                yield _UNITS, unit, _text(chinese, unit)
        else:
            yield "", key, _text(value, key)


def _mapping(node: Any, where: str) -> list[tuple[str, Any]]:
    import yaml

    if not isinstance(node, yaml.MappingNode):
        raise ValueError(f"{where} has no lines of the form `label: 中文`")
    pairs = [(_text(key, where), value) for key, value in node.value]
    keys = [key for key, _ in pairs]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        raise ValueError(f"twice in the file: {', '.join(twice)}")
    return pairs


def _text(node: Any, where: str) -> str:
    if not isinstance(node.value, str) or not node.value.strip():
        raise ValueError(f"'{where}' needs text")
    return node.value
