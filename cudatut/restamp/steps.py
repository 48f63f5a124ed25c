"""One step of a restamp: what becomes of a recording from one commit to a later one, without its machine code.

Whoever makes a restamp takes the step and compares the machine code where the step says so; whoever looks at one later
takes the same step again.
"""

import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from cudatut.fingerprint.meaning import CUDA
from cudatut.restamp import grounds, older
from cudatut.restamp.includes import included
from cudatut.restamp.trees import Tree


@dataclass(frozen=True)
class Step:
    """How the files changed from the tree `then` to `now`; `entry` is what the recording says of it, `before` and `after`
    are its metadata.
    """

    change: grounds.Change
    before: dict[str, Any]
    after: dict[str, Any]
    then: Tree
    now: Tree

    @property
    def entry(self) -> dict[str, Any]:
        """{"from", "to", "files": {file: {"ground", "was", "now"?, "as"?}}, "added"?}."""
        return self.after["restamped"][-1]

    @property
    def parts(self) -> tuple[dict[str, Any], grounds.Change, Tree, Tree]:
        """What `machine_code.differences` asks for."""
        return self.before, self.change, self.then, self.now


def take(metadata: Mapping[str, Any], shows_lines: bool, then: Tree, now: Tree) -> Step:
    """The step of a recording from one tree to another.

    metadata: of the recording, before. shows_lines: see `Recording.shows_lines`. What `change.refused` says forbids it.
    """
    before = known(metadata, then, grounds.differing(metadata["sources"], now))
    change = grounds.judge(before, shows_lines, then, now)
    after = copy.deepcopy(before)
    sources, meanings = after["sources"], after["meanings"]
    # All go before any comes: two files may change places.
    was = {name: (sources.pop(name), meanings.pop(name, None)) for name in change.grounds}
    files = {}
    for name, ground in change.grounds.items():
        files[name] = {"ground": ground, "was": was[name][0]}
        if (target := change.now[name]) is not None:
            files[name]["now"] = sources[target] = now.sha256(target)
            if target != name:
                files[name]["as"] = target
            if was[name][1] and (means := now.meaning(target)):
                meanings[target] = means
    entry = {"from": then.commit, "to": now.commit, "files": files}
    if added := _added(after, change, now):
        entry["added"] = added
    after["restamped"] = [*after.get("restamped", ()), entry]
    for key in ("sources", "meanings"):
        after[key] = dict(sorted(after[key].items()))
    return Step(change, before, after, then, now)


def known(metadata: Mapping[str, Any], then: Tree, names: Collection[str]) -> dict[str, Any]:
    """The metadata of a recording with what its sources meant: of these, by today's rule, and of all where it says nothing.

    then: see `older.meanings`.
    """
    found = copy.deepcopy(dict(metadata))
    said = found.get("meanings")
    names = found["sources"] if said is None else names
    others = {name: sha for name, sha in (said or {}).items() if name not in names}
    found["meanings"] = dict(sorted((others | older.meanings(found, then, names)).items()))
    return found


def _added(after: dict[str, Any], change: grounds.Change, now: Tree) -> list[str]:
    """The headers that the kernels of a recording include now and did not before, which become its sources."""
    if not change.code:
        return []
    sources = after["sources"]
    added = sorted(included(sources, now) - set(sources))
    for name in added:
        sources[name] = now.sha256(name)
        if name.endswith(CUDA) and (means := now.meaning(name)):
            after["meanings"][name] = means
    return added
