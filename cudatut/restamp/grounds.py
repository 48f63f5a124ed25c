"""On what ground a file of a recording may have changed: the same meaning, another place, the same machine code.

Judged from one commit to another, from what git has of both: so whoever makes a restamp and whoever looks at one later
apply the same rule.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from cudatut.fingerprint import meaning
from cudatut.gpu import headers
from cudatut.restamp import moves

MEANING, MOVED, CODE = "meaning", "moved", "code"


@dataclass
class Change:
    """How the files of a recording changed: for each what it is called `now` (None: gone), on which ground, or why not.

    `code`: those whose machine code has to be compared.
    """

    now: dict[str, str | None] = field(default_factory=dict)
    grounds: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    @property
    def code(self) -> list[str]:
        """The files whose machine code has to be the same."""
        return [name for name, ground in self.grounds.items() if ground == CODE]


def judge(
    metadata: Mapping[str, Any],
    shows_lines: bool,
    then: Mapping[str, bytes],
    now: Mapping[str, bytes],
) -> Change:
    """What became of the files of a recording between two trees of examples.

    metadata: of the recording, as it was before. shows_lines: see `Recording.shows_lines`. A file is moved where it is
    gone and a new one is what it was.
    """
    sources, found = metadata["sources"], Change()
    differ = [
        name
        for name, sha in sources.items()
        if name not in now or meaning.text_hash(now[name]) != sha
    ]
    gone = {name: then[name] for name in differ if name not in now and name in then}
    known = frozenset(then)
    new = {name: now[name] for name in now if name not in known} if gone else {}
    moved = moves.found(gone, new)
    for name in differ:
        if name not in then or meaning.text_hash(then[name]) != sources[name]:
            found.refused.append(f"{name} was another file at the commit that is named")
            continue
        target = name if name in now else moved.get(name)
        found.now[name] = target
        ground = _ground(name, target, then, now, moved, metadata.get("meanings", {}))
        if shows_lines:
            found.refused.append(f"{name} changed, and outputs show the numbers of its lines")
        elif ground is None:
            what = "is gone" if target is None else "means something else"
            found.refused.append(f"{name} {what}")
        else:
            found.grounds[name] = ground
    return found


def _ground(
    name: str,
    target: str | None,
    then: Mapping[str, bytes],
    now: Mapping[str, bytes],
    moved: Mapping[str, str],
    meanings: Mapping[str, str],
) -> str | None:
    """The ground on which a file may have changed; None where there is none."""
    if target is not None:
        if meaning.text_hash(then[name]) == meaning.text_hash(now[target]):
            return MOVED
        if name not in meanings:  # its text counts
            return None
        if target == name and meanings[name] == meaning.meaning_hash(target, now[target]):
            return MEANING
        if moves.same(name, then[name], target, now[target], then, now, moved):
            return MOVED
    # A header may have become a part of another one.
    return CODE if name.endswith(meaning.CUDA) and name in meanings else None


# --- what an older recording depends on ----------------------------------------------------------

_READS_TEXT = re.compile(r"\.read_text\(|\.read_bytes\(|\bopen\(|getsource|\.source\b")


def read_as_text(sources: Iterable[str], then: Mapping[str, bytes]) -> set[str]:
    """The sources of an older recording that its Python may have read as text, comments and all, rather than compiled.

    What such a Python file names counts; of one that reads texts and names none of the sources, every kernel file does.
    """
    found = set()
    files = [name for name in sources if not name.endswith(".py")]
    for name in sources:
        if name.endswith(".py") and name in then:
            text = then[name].decode("utf-8", "replace")
            if _READS_TEXT.search(text):
                named = {one for one in sources if one != name and _is_named(one, text)}
                kernels = {one for one in named if one in files}
                found |= named | included(kernels, then) if kernels else named | set(files)
    return found


def _is_named(name: str, text: str) -> bool:
    """Whether a text names a file, as an example or by its path."""
    return f'"{name}"' in text or f'"{name.removesuffix(".py")}"' in text


def included(names: Iterable[str], files: Mapping[str, bytes]) -> set[str]:
    """The kernel files among these, and what they include of the examples, directly or not."""
    seen: set[str] = set()
    todo = [name for name in names if name.endswith(meaning.CUDA) and name in files]
    while todo:
        if (name := todo.pop()) not in seen:
            seen.add(name)
            folder = PurePosixPath(name).parent
            for quoted in headers.quoted(files[name].decode("utf-8", "replace")):
                places = (str(folder / quoted), quoted)
                todo += [place for place in places if place in files][:1]
    return seen
