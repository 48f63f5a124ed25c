"""On what ground a file of a recording may have changed: the same meaning, another place, the same machine code.

Judged from one commit to another, from what git has of both: so whoever makes a restamp and whoever looks at one later
apply the same rule.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from cudatut import catalog
from cudatut.fingerprint import meaning
from cudatut.gpu.signature import kernels, parameters
from cudatut.restamp import moves
from cudatut.restamp.includes import included
from cudatut.restamp.trees import Tree

# Each says more than the next one.
MEANING, MOVED, CODE = GROUNDS = ("meaning", "moved", "code")

_PROGRAM = re.compile(r"^[^/*\n]*\bmain\s*\(", re.M)
_OWN_PLACE = re.compile(rb"\b__(?:file|FILE)__\b")


@dataclass
class Change:
    """How the files of a recording changed: for each what it is called `now` (None: gone), on which ground, or why not.

    The keys are the names that the files had then.
    """

    now: dict[str, str | None] = field(default_factory=dict)
    grounds: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    @property
    def code(self) -> list[str]:
        """The files whose machine code has to be the same."""
        return [name for name, ground in self.grounds.items() if ground == CODE]


def judge(metadata: Mapping[str, Any], shows_lines: bool, then: Tree, now: Tree) -> Change:
    """What became of the files of a recording between two trees of examples.

    metadata: of the recording, as it was before. shows_lines: see `Recording.shows_lines`. A file is moved where it is
    gone and a new one is what it was.
    """
    sources = metadata["sources"]
    differ = differing(sources, now)
    if unknown := [name for name in differ if then.sha256(name) != sources[name]]:
        return Change(refused=[f"{name} was another file at the commit named" for name in unknown])
    judged = _Judge(metadata, differ, then, now)
    if shows_lines and (others := [name for name in differ if not judged.lines_stay(name)]):
        reason = "changed, and outputs show the numbers of its lines"
        return Change(refused=[f"{name} {reason}" for name in others])
    return judged.change()


def differing(sources: Mapping[str, str], now: Tree) -> list[str]:
    """The sources of a recording whose text is another in a tree, or that are gone there."""
    return [name for name, sha in sources.items() if now.sha256(name) != sha]


class _Judge:
    """Compares the files that `differ` (of known text then) and, where some moved, those that name them."""

    def __init__(self, metadata: Mapping[str, Any], differ: list[str], then: Tree, now: Tree):
        self._sources, self._meanings = metadata["sources"], metadata.get("meanings", {})
        self._example = metadata["name"]
        self._differ, self._then, self._now = differ, then, now
        self._moved = moves.found(then, now, [name for name in differ if name not in now])
        self._placed: dict[tuple[str, str], moves.Placed] = {}
        programs = {name for name in self._sources if self._is_program(name)}
        self._programs = included(programs, then) if programs else set()

    def change(self) -> Change:
        found = Change()
        for name in self._differ:
            target = name if name in self._now else self._moved.get(name)
            found.now[name] = target
            ground, reason = self._ground(name, target)
            if ground:
                found.grounds[name] = ground
            else:
                found.refused.append(f"{name} {reason}")
        if self._moved:
            self._judge_those_that_stayed(found)
        return found

    def lines_stay(self, name: str) -> bool:
        """Whether a file was moved alone, so that its lines have the numbers and, without a folder, the name that they had."""
        target = self._moved.get(name)
        if target is None:
            return False
        before, after = self._then[name], self._now[target]
        named = PurePosixPath(name).name == PurePosixPath(target).name
        if name.endswith(".py"):  # an import of what moved, too, has another text
            return (named or self._is_own(name, target)) and _lines(before) == _lines(after)
        return named and before == after

    def _is_own(self, *names: str) -> bool:
        """Whether a file by each of these names is the script of the example, which is called by the example's name."""
        return {catalog.name_in(one) for one in names} == {self._example}

    def _judge_those_that_stayed(self, found: Change) -> None:
        """Where something moved, the files that kept their text must still mean those that they meant."""
        stayed = [name for name in self._naming(self._moved) if name not in self._differ]
        astray = [name for name in stayed if not self._same(name, name)]
        found.refused += [
            f"{name} names a file that is elsewhere now" for name in astray if name.endswith(".py")
        ]
        if any(name.endswith(meaning.CUDA) for name in astray):
            for name in self._moved:
                if found.grounds.get(name) == MOVED and name.endswith(meaning.CUDA):
                    found.grounds[name] = CODE

    def _ground(self, name: str, target: str | None) -> tuple[str | None, str]:
        """The ground on which a file may have changed, or None and why there is none."""
        if target is None:
            return (CODE, "") if self._may_be_compared(name, None) else (None, "is gone")
        if target != name and (reason := self._cannot_move(name)):
            return None, reason
        same_text = self._then.sha256(name) == self._now.sha256(target)
        if not same_text and name not in self._meanings:
            return None, "changed, and its text counts: somebody reads it"
        if target == name and self._means_the_same(name):
            return MEANING, ""
        if self._same(name, target):
            return MOVED, ""
        if self._may_be_compared(name, target):
            return CODE, ""
        return None, "means something else"

    def _means_the_same(self, name: str) -> bool:
        if self._now.meaning(name) != self._meanings.get(name):
            return False
        return not self._moved or self._same(name, name)

    def _same(self, name: str, target: str) -> bool:
        """Whether a source means, apart from where files lie, what it (or what it became) means now."""
        before, after = self._place(name, self._then), self._place(target, self._now)
        if self._then.sha256(name) == self._now.sha256(target) and before.names == after.names:
            return True
        return before.meaning is not None and before.meaning == after.meaning

    def _place(self, name: str, tree: Tree) -> moves.Placed:
        key = (tree.commit, name)
        if key not in self._placed:
            moved = self._moved if tree is self._then else {}
            self._placed[key] = moves.placed(name, tree, moved)
        return self._placed[key]

    def _cannot_move(self, name: str) -> str:
        """Why a program could not find a file, or would see that it lies elsewhere; "" where neither can be."""
        text = self._then[name]
        target = self._moved[name]
        # __FILE__ in what nvcc is given is its name, as it is called in its folder; in a header also its folder's.
        same_name = name.endswith(".cu") and PurePosixPath(name).name == PurePosixPath(target).name
        if _OWN_PLACE.search(text) and not same_name:
            return "moved, and looks at its own place"
        if (called := _called(name, text)) is not None:
            return "" if _called(target, text) == called else "moved, and is called otherwise now"
        if self._is_own(name, target):
            return ""
        known = (self._place(one, self._then).names for one in self._naming([name]))
        return "" if any(target in names for names in known) else "moved, and no source names it"

    def _naming(self, files: Iterable[str]) -> list[str]:
        """The sources that may name one of these files: whoever does has the file's name without its folder and ending."""
        words = {PurePosixPath(name).stem.encode() for name in files}
        texts = {name: self._then[name] for name in self._sources if name in self._then}
        return [name for name, text in texts.items() if any(word in text for word in words)]

    def _may_be_compared(self, name: str, target: str | None) -> bool:
        """Whether a file that means something else can be the same to a GPU: nothing else may see how it changed."""
        if not name.endswith(meaning.CUDA) or name not in self._meanings:
            return False
        if name in self._programs or (target and self._is_program(target)):
            return False  # code of the host, too
        try:
            before, after = _seen(self._then, name), _seen(self._now, target)
        except ValueError:  # it does not end
            return False
        return all(after.get(key) == value for key, value in before.items())

    def _is_program(self, name: str) -> bool:
        texts = (_text(tree, name) for tree in (self._then, self._now))
        return name.endswith(meaning.CUDA) and any(map(_PROGRAM.search, texts))


def _called(name: str, text: bytes) -> tuple[str, str] | None:
    """By which part and name the package finds a file, whatever folder that keeps such files in; None for most.

    A rung of a ladder, a ladder, and what is searched when one is tuned.
    """
    part, *folders, file = name.split("/")
    if folders not in ([], ["ladder"]):
        return None
    is_rung = name.endswith(".cu") and re.search(rb"^[ \t]*//[ \t]*@rung[ \t]+\d", text, re.M)
    return (part, file) if is_rung or file in ("ladder.py", "autotuning_space.py") else None


def _lines(text: bytes) -> tuple[int, list[tuple[int, int | None]]] | None:
    """How many lines a module has, and on which its statements stand; None for no Python."""
    try:
        nodes = ast.walk(ast.parse(text))
    except (SyntaxError, ValueError):
        return None
    stand = [(node.lineno, node.end_lineno) for node in nodes if isinstance(node, ast.stmt)]
    return text.count(b"\n"), stand


def _text(tree: Tree, name: str | None) -> str:
    return tree[name].decode("utf-8", "replace") if name and name in tree else ""


def _seen(tree: Tree, name: str | None) -> dict[str, Any]:
    """What Python reads of a kernel file: the comments that say how it is launched, and the parameters of each kernel.

    Raises ValueError for a literal or comment that does not end.
    """
    text = _text(tree, name)
    found: dict[str, Any] = {"comments": meaning.read_comments(text)}
    for kernel in (one.partition("<")[0] for one in kernels(text)):
        takes = parameters(text, kernel) or []
        found[kernel] = [(one.pointer, one.dtype or one.ctype) for one in takes]
    return found
