"""On what ground a file of a recording may have changed: the same meaning, another place, the same machine code.

Judged from one commit to another, from what git has of both: so whoever makes a restamp and whoever looks at one later
apply the same rule.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
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


def read_as_text(sources: Iterable[str], then: Mapping[str, bytes]) -> set[str]:
    """The sources of an older recording that its Python may have read as text, comments and all, rather than compiled.

    Where the code says which file it reads, that one; else all files that the same code names; and where it names none of
    the sources, every kernel file.
    """
    found, kernels = set(), {name for name in sources if name.endswith(meaning.CUDA)}
    for name in (one for one in sources if one.endswith(".py") and one in then):
        strings = [_strings(node) for node in _reading(ast.parse(then[name]))]
        everywhere = _strings(ast.parse(then[name])) if strings else set()
        for said in strings:
            elsewhere = any(one.startswith(("/", ".")) for one in said)  # "/proc/...", ".ptx"
            exact = _named(said, sources)
            named = exact or ([] if elsewhere else _named(everywhere, sources) or kernels)
            found |= {one for one in named if one != name}
    return found | included(found, then)


def _reading(tree: ast.AST) -> Iterator[ast.AST]:
    """The expressions whose text a program reads: a path, or a kernel of which it asks for the source."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=read, attr="read_text" | "read_bytes")):
                yield read
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=read, attr="source"))):
                yield read  # kernel.source.replace(...)
            case ast.Call(func=ast.Name(id="open"), args=[read, *mode]) if "b" not in _mode(mode):
                yield read
            case ast.Call(func=ast.Attribute(attr="getsource"), args=[read, *_]):
                yield read


def _mode(arguments: list[ast.expr]) -> str:
    match arguments:
        case [ast.Constant(value=str(mode)), *_]:
            return mode
    return "r"


def _strings(tree: ast.AST) -> set[str]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {node.value for node in nodes if isinstance(node.value, str)}


def _named(strings: Iterable[str], sources: Iterable[str]) -> list[str]:
    """The sources that strings name, by their paths or as examples."""
    strings = set(strings)
    return [name for name in sources if {name, name.removesuffix(".py")} & strings]


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
