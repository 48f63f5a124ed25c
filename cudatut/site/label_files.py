"""The files `docs/labels/*.yml`, merged: what the labels of results are in Chinese.

    blocks per SM: 每个 SM 的线程块数
    "grid {}, block {}": "网格 {}，线程块 {}"   # {} stands for a number or a word that varies
    _same: [grid-stride, cuBLAS]                # names that stay as they are
    _units: {cycles: 个周期}                    # units, as they stand behind a value
    _here: {blocks: 个 KV 块}                   # labels and units that mean something else in this file's chapter

A label made of several parts, as in `blocks, n = 33: time`, needs no entry of its own where each of its parts has one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_BASE: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_WORDS, _UNITS, _SAME, _HERE = "words", "_units", "_same", "_here"
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
# A joint inside code or brackets joins nothing: these are found first.
_JOINT = re.compile(
    r"`[^`]*`|[(\[](?:[^()\[\]]|[(\[][^()\[\]]*[)\]])*[)\]]"
    rf"|(?P<joint>{'|'.join(map(re.escape, _JOINTS))})"
)


@dataclass(frozen=True)
class Template:
    """An entry with {}: `sign` is what a label must hold to be worth a look at `pattern`."""

    sign: str
    pattern: re.Pattern[str]
    chinese: str


@dataclass
class Labels:
    """The merged files: `words` label -> Chinese, `templates` for those with {}, `same` names, `units`; what is wrong with them.

    here: by the name of a file, without `.yml`, what means something else in the results of its chapter.
    """

    words: dict[str, str]
    units: dict[str, str]
    templates: list[Template]
    same: re.Pattern[str]
    problems: list[str]
    here: dict[str, dict[str, str]]

    def __post_init__(self) -> None:
        self._look_up = cache(self._joined)  # the same few thousand labels again and again
        self.of = cache(self._of)

    def _of(self, example: str) -> Labels:
        """The labels as an example means them: `llm/paged_attention_claims` those of the file llm_paged_attention, too."""
        name = example.replace("/", "_")
        files = sorted(file for file in self.here if f"{name}_".startswith(f"{file}_"))
        if not files:
            return self
        own = {label: chinese for file in files for label, chinese in self.here[file].items()}
        return replace(self, words=self.words | own, units=self.units | own, here={})

    def chinese(self, label: str) -> str:
        """The label in Chinese; itself where it has no English words, or no entry."""
        return self._look_up(label)[0]

    def lacking(self, label: str) -> tuple[str, ...]:
        """The parts of a label that need an entry and have none."""
        return self._look_up(label)[1]

    def unit(self, unit: str) -> str:
        """A unit behind a value in Chinese: its entry among the units, else that among the labels."""
        return self.units.get(unit) or self.chinese(unit)

    def _joined(self, label: str) -> tuple[str, tuple[str, ...]]:
        """A label put together from the entries of its parts, each as long as there is one; and what lacks an entry."""
        parts = _parts(label)
        shown, lacking, first = "", [], 0
        while first < len(parts):
            for end in range(len(parts), first, -2):
                if (chinese := self._whole("".join(parts[first:end]))) is not None:
                    break
            else:
                chinese = parts[first]
                lacking.append(chinese)
            shown += chinese + (_JOINTS[parts[end]] if end < len(parts) else "")
            first = end + 1
        return (label, tuple(lacking)) if lacking else (shown, ())

    def _whole(self, part: str) -> str | None:
        """The Chinese of an entry for all of `part`, itself where it has no English words, or None."""
        if part in self.words:
            return self.words[part]
        for template in self.templates:
            if template.sign in part and (match := template.pattern.fullmatch(part)):
                varying = [word for word in map(self._word, match.groups()) if word is not None]
                if len(varying) == len(match.groups()):
                    return _BETWEEN_CHINESE.sub("", _filled(template.chinese, varying))
        return self._word(part)

    def _word(self, word: str) -> str | None:
        return self.words.get(word, None if self._english(word) else word)

    def _english(self, text: str) -> bool:
        """Whether English words remain when code, identifiers and names that stay are taken away."""
        words = _TOKEN.findall(self.same.sub(" ", _CODE.sub(" ", text)))
        return any(_ENGLISH.search(word) and not _IDENTIFIER.search(word) for word in words)


def _parts(label: str) -> list[str]:
    """A label cut at its joints: part, joint, part ..."""
    marked = _JOINT.sub(lambda found: f"\0{found[0]}\0" if found["joint"] else found[0], label)
    return marked.split("\0")


def _places(template: str) -> list[int]:
    """Which of the words that vary stand where: those of "{} {}" are 0 and 1, those of "{1} {0}" 1 and 0."""
    return [int(number or place) for place, number in enumerate(_HOLE.findall(template))]


def _filled(template: str, words: list[str]) -> str:
    places = iter(_places(template))
    return _HOLE.sub(lambda _: words[next(places)], template)


@cache
def load(folder: Path) -> Labels:
    """The labels of all files in a folder (none where there is no such folder), read once.

    What is wrong in a file is in `problems`, each naming its file; the rest is there.
    """
    problems, names = [], set()
    found: dict[str, dict[str, tuple[str, str]]] = {_WORDS: {}, _UNITS: {}}
    here: dict[str, dict[str, str]] = {}
    for path in sorted(folder.glob("*.yml")):
        file = f"docs/labels/{path.name}"
        try:
            entries = _entries(path)
        except ValueError as error:
            problems.append(f"{file}: {error}")
            continue
        for kind, label, chinese in entries:
            if kind == _HERE:
                here.setdefault(path.stem, {})[label] = chinese
                continue
            if kind == _SAME:
                kind = _WORDS
                names.add(label)
            holes = len(_HOLE.findall(label))
            if set(_places(chinese)) != set(range(holes)):
                problems.append(f"{file}: '{label}' has {holes} {{}}, and '{chinese}' other ones")
                continue
            before, there = found[kind].setdefault(label, (chinese, file))
            if before != chinese:
                problems.append(
                    f"'{label}' is '{before}' in {there} and '{chinese}' in {file}: write it once"
                )
    words, units = (
        {label: chinese for label, (chinese, _) in entries.items()} for entries in found.values()
    )
    # The one with most words of its own fits best.
    patterns = sorted(filter(_HOLE.search, words), key=lambda label: -len(_HOLE.sub("", label)))
    templates = []
    for label in patterns:
        pieces = _HOLE.split(label)[::2]
        pattern = re.compile(_VARIES.join(map(re.escape, pieces)))
        templates.append(Template(max(pieces, key=len), pattern, words.pop(label)))
    longest_first = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    same = re.compile(rf"(?<![\w-])(?:{longest_first or '(?!)'})(?![\w-])")
    return Labels(words, units, templates, same, problems, here)


class _Loader(_BASE):
    """Every word is text, also `yes` and 1. Raises ValueError for a label that stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        labels = [label.value for label, _ in node.value]
        if twice := sorted({label for label in labels if labels.count(label) > 1}):
            raise ValueError(f"twice in the file: {', '.join(twice)}")
        return super().construct_mapping(node, deep)


def _entries(path: Path) -> list[tuple[str, str, Any]]:
    """(kind, label, Chinese) of each line of a file; a name that stays is its own Chinese.

    Raises ValueError for what has another form.
    """
    try:
        words = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"it is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(words, dict):
        raise ValueError("the file has no lines of the form `label: 中文`")
    units, same, here = words.pop(_UNITS, {}), words.pop(_SAME, []), words.pop(_HERE, {})
    if not isinstance(units, dict) or not isinstance(here, dict) or not isinstance(same, list):
        raise ValueError(
            f"{_UNITS} and {_HERE} have lines of the form `unit: 中文`, and {_SAME} is a list"
        )
    lines = [(_WORDS, *line) for line in words.items()]
    lines += [(_UNITS, *line) for line in units.items()]
    lines += [(_HERE, *line) for line in here.items()]
    lines += [(_SAME, name, name) for name in same]
    for _, label, chinese in lines:
        if not isinstance(chinese, str) or not chinese.strip():
            raise ValueError(f"'{label}' needs text")
    if holes := [label for label in here if _HOLE.search(label)]:
        raise ValueError(f"{_HERE} takes whole labels, without {{}}: {', '.join(holes)}")
    return lines
