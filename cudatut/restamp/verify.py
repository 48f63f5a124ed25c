"""Whether the restamps of a recording are such as `cudatut.restamp.accept` makes.

`problems` tells by the hashes that git has, `compiled` by the machine code. Each restamp is made again: from the recording
as git has it from before, which must have measured the same.
"""

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from cudatut.errors import CudatutError
from cudatut.history import History
from cudatut.recording import Recording
from cudatut.restamp import accept, machine_code, older, places, steps
from cudatut.restamp.machine_code import Compiler
from cudatut.restamp.trees import tree


def problems(one: Recording, past: History) -> list[str]:
    """What is wrong with a recording's restamps, and with what it says its sources mean; empty where nothing is."""
    try:
        return list(_problems(one, past))
    except (LookupError, TypeError, AttributeError, ValueError, CudatutError) as error:
        return [f"what it says of its restamps has not the form that restamp gives it ({error!r})"]


def _problems(one: Recording, past: History) -> Iterator[str]:
    steps_taken, start = list[steps.Step](), one
    for made in _made_again(one, past):
        yield from made.problems
        if made.problems or not made.step or not made.old:
            return
        steps_taken.append(made.step)
        start = start if start is not one else made.old
    if steps_taken and steps_taken[-1].after["sources"] != one.metadata["sources"]:
        yield "its sources are not those that its last restamp leads to"
        return
    # Where a source has changed since, it counts what the recording says that it meant.
    known = sorted(set(one.rewritten()) & set(one.metadata.get("meanings", ())))
    if known:
        yield from _meant_otherwise(one, known, past)
    if known or steps_taken:
        yield from _counted_by_text(start, past)


def _meant_otherwise(one: Recording, names: list[str], past: History) -> Iterator[str]:
    if (then := accept.base(one, past)) is None:
        yield f"no commit has its sources as it has them, so what {', '.join(names)} meant is not known"
        return
    meanings = older.meanings(one.metadata, then, names)
    for name in names:
        if meanings.get(name) != one.metadata["meanings"][name]:
            yield f"{name} did not mean at {then.commit[:12]} what the recording says, or its text counts"


def _counted_by_text(one: Recording, past: History) -> Iterator[str]:
    """Sources of which a recording says what they mean, and said nothing when it was made: somebody reads their text.

    An older recording says nothing of any; of its sources `older` tells.
    """
    if "kernels" not in one.metadata:
        return
    for commit in reversed(places.changes(one, past)):
        try:
            first = places.at(one, past, commit)
        except CudatutError:  # of an example that was called otherwise
            continue
        if first and places.measured_the_same(first, one):
            said = set(one.metadata.get("meanings", ())) - set(first.metadata.get("meanings", ()))
            yield from (f"{name} counted by its text when it was recorded" for name in sorted(said))
            return


def compiled(
    recordings: Iterable[Recording],
    past: History,
    say: Callable[[str], None] = lambda line: None,
    seconds: float = math.inf,
    seed: int = 0,
) -> list[str]:
    """Compile, at both commits, each kernel whose restamp says that its machine code is the same, and compare again.

    Of recordings without `problems`. `say` hears a line for each restamp. seconds: none is begun after so long; they are
    drawn by the seed, and `say` hears how many were left. Raises CudatutError where the compiler that they name is not
    here, or a commit's kernels cannot be compiled.
    """
    groups: dict[tuple[str, str], list[tuple[str, str, steps.Step]]] = {}
    for one in recordings:
        for made in _made_again(one, past):
            if (step := made.step) and step.change.code:
                ends = step.then.commit, step.now.commit
                groups.setdefault(ends, []).append((one.file, made.name, step))
    drawn = sorted(groups)
    random.Random(seed).shuffle(drawn)
    count, left = 0, sum(map(len, groups.values()))
    compiler, found, began = Compiler(past), list[str](), time.monotonic()
    if seconds == math.inf:
        _expect(compiler, (step for group in groups.values() for _, _, step in group))
    for ends in drawn:
        if time.monotonic() - began > seconds:
            break
        _expect(compiler, (step for _, _, step in groups[ends]))
        for file, name, step in groups[ends]:
            wrong = machine_code.differences(*step.parts, compiler)
            found += [f"{file}: {name}: {reason}" for reason in wrong]
            count, left = count + 1, left - 1
            say(f"{count}: {file}: {'; '.join(wrong) or 'the same code'}")
    if left:
        say(
            f"{count} restamps were compared, drawn by the seed {seed}; {left} were not, for want of time"
        )
    return found


def _expect(compiler: Compiler, every: Iterable[steps.Step]) -> None:
    for step in every:
        compiler.expect(*step.parts)


@dataclass
class _Made:
    """A restamp of a recording, made again. `step` is None where that was not possible: then `problems` say why."""

    name: str
    problems: list[str]
    old: Recording | None = None  # as git has it from before
    step: steps.Step | None = None


def _made_again(one: Recording, past: History) -> Iterator[_Made]:
    """Each restamp of a recording, the first one first; after one that cannot be made again there is no next one."""
    entries, sources = one.metadata.get("restamped", []), None
    for number, entry in enumerate(entries, 1):
        made = _Made(f"its restamp {number}", [])
        made.problems += _make_again(made, one, entry, entries[: number - 1], sources, past)
        yield made
        if made.step is None:
            return
        sources = made.step.after["sources"]


def _make_again(
    made: _Made,
    one: Recording,
    entry: dict[str, Any],
    before: list[dict[str, Any]],
    sources: dict[str, str] | None,
    past: History,
) -> Iterator[str]:
    """Fill in `made`; yields what is wrong. before: the entries before this one; sources: those that they lead to."""
    for end in ("from", "to"):
        commit = past.commit(str(entry[end]))
        if commit is None or commit != entry[end] or not past.is_ancestor(commit):
            yield f"{made.name} goes {end} {entry[end]}, which is no commit before today's"
            return
    then, now = tree(past, entry["from"]), tree(past, entry["to"])
    old = made.old = places.at(one, past, now.commit)
    if old is None:
        yield f"{made.name} has no recording to start from: {now.commit[:12]} has none"
        return
    if not places.measured_the_same(old, one):
        yield f"{made.name} stands beside other results than those of {now.commit[:12]}"
    if old.metadata.get("restamped", []) != before:
        yield f"{made.name} follows others than at {now.commit[:12]}"
    if sources is not None and old.metadata["sources"] != sources:
        yield f"{made.name} begins with other sources than those that the one before leads to"
    base = accept.base(old, past, now.commit)
    if base is None or base.commit != then.commit:
        known = base.commit[:12] if base else "no commit"
        yield f"{made.name} goes from {then.commit[:12]}, but its sources were known at {known}"
        return
    step = steps.take(old.metadata, old.shows_lines(), then, now)
    yield from (f"{made.name}: {reason}" for reason in step.change.refused)
    yield from _otherwise(made.name, entry, step.entry)
    made.step = step


def _otherwise(name: str, said: dict[str, Any], made: dict[str, Any]) -> Iterator[str]:
    """How an entry differs from the one that is made again."""
    for file in sorted(set(said["files"]) | set(made["files"])):
        one, other = said["files"].get(file), made["files"].get(file)
        if other is None:
            yield f"{name} accepts {file}, which did not change"
        elif one is None:
            yield f"{name} leaves out {file}, which changed"
        elif one.get("ground") != other["ground"]:
            yield f"{name} accepts {file} on the ground {one.get('ground')!r}, which has only {other['ground']!r}"
        elif one != other:
            yield f"{name} has other hashes of {file} than git, or another place"
    rest = [{key: one[key] for key in one if key != "files"} for one in (said, made)]
    if rest[0] != rest[1]:
        yield f"{name} adds {said.get('added')}, and its kernels include {made.get('added')} besides"
