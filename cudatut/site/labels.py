"""Labels of results in Chinese: titles, rows, columns, checks, lines and axes, which examples record in English.

The translations stand in `docs/labels/*.yml` (see `label_files`). The strict Chinese build refuses a label with English
words for which there is no entry; `python -m cudatut.site.labels` prints those as lines to fill in.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any

from cudatut import catalog, recording
from cudatut.errors import CudatutError
from cudatut.recording import Recording
from cudatut.site import contents
from cudatut.site.contents import Part
from cudatut.site.label_files import Labels, load
from cudatut.site.localize import current, relabeled

_NUMBERS = re.compile(r"\d[\d.,]*(?: [x×] \d[\d.,]*)*")


def lacking(records: Iterable[Recording], labels: Labels) -> dict[str, dict[str, tuple[str, str]]]:
    """What needs an entry and has none: file -> {label, numbers as {}: (a whole label, the cell that shows it)}."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    parts = contents.load()
    for record in records:
        file = file_of(record.name, parts)
        meant = labels.of(record.name)
        for cell in record.cells:
            for result in cell.results():
                for label, without in _lacking(result, meant):
                    entry = _NUMBERS.sub("{}", without)
                    place = (label, f"{record.name}#{cell.title}")
                    found.setdefault(file, {}).setdefault(entry, place)
    return found


def _lacking(result: dict[str, Any], labels: Labels) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []

    def word(label: str) -> str:
        found.extend((label, without) for without in labels.lacking(label))
        return label

    def unit(label: str) -> str:
        return label if label in labels.units else word(label)

    relabeled(result, word, unit)
    return found


def problems(lang: str, records: Iterable[Recording]) -> list[str]:
    """What a strict build in `lang` refuses: faults of the files, and each label of the recordings that lacks an entry."""
    if lang == "en":
        return []
    load.cache_clear()  # a build that is repeated sees what has changed
    labels = current()
    said = list(labels.problems)
    for file, entries in lacking(records, labels).items():
        for entry, (label, cell) in entries.items():
            inside = "" if entry == label else f" (as in '{label}')"
            said.append(f"{cell}: the label '{entry}'{inside} has no Chinese; add it to {file}")
    return said


def file_of(example: str, parts: Iterable[Part]) -> str:
    """Where the labels of an example stand: those of its chapter in one file, docs/labels/start_errors.yml."""
    chapter = contents.chapter_of(example, parts)
    name = chapter.name if chapter else example
    return f"docs/labels/{name.replace('/', '_')}.yml"


def main(names: list[str]) -> int:
    """Print what `names` (all without any) lack, as lines of the files in which they belong; 1 if anything."""
    records = []
    for example in catalog.examples(drafts=True):
        if example.name.startswith(tuple(names) or ""):
            try:
                records.append(recording.load(example.name))
            except CudatutError as error:
                print(f"# {error}")
    labels = current()
    for problem in labels.problems:
        print(f"# {problem}")
    found = lacking(records, labels)
    for file, entries in found.items():
        print(f"\n# {file}")
        for entry, (_, cell) in entries.items():
            print(f'{json.dumps(entry, ensure_ascii=False)}: ""  # {cell}')
    return 1 if found or labels.problems else 0


if __name__ == "__main__":
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    sys.exit(main(sys.argv[1:]))
