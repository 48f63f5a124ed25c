"""Accept that sources of recordings changed without effect, and write into each recording what was accepted and why.

A recording keeps the commit at which it was measured. Under `restamped` it lists each time that its sources were found
to be equal in effect at a later commit: from which commit to which, each file, its hashes before and after, and the
ground (see `cudatut.restamp.grounds`). Nothing of what was measured is touched.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudatut import recording
from cudatut.errors import CudatutError
from cudatut.files import write_whole
from cudatut.history import History, NoHistory, history
from cudatut.recording import Recording
from cudatut.restamp import machine_code, places, steps, todays
from cudatut.restamp.machine_code import Compiler
from cudatut.restamp.trees import Tree, tree


@dataclass(frozen=True)
class Outcome:
    """What became of one recording: `refused` says why it still needs a GPU, each reason naming a file."""

    name: str
    path: Path
    grounds: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def restamp(
    recordings: Iterable[Recording], say: Callable[[str], None] = lambda line: None
) -> list[Outcome]:
    """Restamp each of these recordings whose sources changed without effect since it was made; those that did not are left.

    Also writes into older recordings what their sources mean, and into notebooks the text that their sources and results
    have now. `say` hears a line for each outcome. Raises CudatutError where there is no history, or where examples/ holds
    what no commit has; then nothing is written.
    """
    past = _history()
    now, compiler, outcomes = tree(past, past.commit("HEAD")), Compiler(past), []
    plans = [_plan(one, past, now) for one in recordings]
    for plan in plans:
        if step := plan.compared:
            compiler.expect(*step.parts)
    for plan in plans:
        outcome = _carried_out(plan, compiler)
        if outcome.grounds or outcome.refused:
            say(f"{outcome.name}: {'; '.join(outcome.refused) or ', '.join(outcome.grounds)}")
            outcomes.append(outcome)
    return outcomes


def _history() -> History:
    """The history, if it has all that lies in examples/. Raises CudatutError."""
    try:
        past = history()
    except NoHistory as error:
        reason = f"restamp compares with the commits that recordings name, and {error}"
        raise CudatutError(reason) from error
    changed = [name for name in past.changed("examples") if not name.endswith(".ipynb")]
    if changed:
        more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
        named = ", ".join(changed[:5]) + more
        raise CudatutError(
            f"commit first what you changed, so that recordings can name it: {named}"
        )
    return past


@dataclass(frozen=True)
class _Plan:
    """What is to be done with a recording, unless it is `refused`: the `step`, if its sources changed; else the `metadata`
    that it gets, and in words what is new in it.
    """

    one: Recording
    refused: tuple[str, ...] = ()
    step: steps.Step | None = None
    metadata: dict[str, Any] | None = None
    says: tuple[str, ...] = ()

    @property
    def compared(self) -> steps.Step | None:
        """The step, where machine code has to be the same."""
        return self.step if not self.refused and self.step and self.step.change.code else None


def _plan(one: Recording, past: History, now: Tree) -> _Plan:
    if one.edited():
        return _Plan(one, ("it was edited: its digest differs",))
    if one.rewritten():
        return _plan_step(one, past, now)
    metadata = steps.known(one.metadata, base(one, past) or now, one.metadata["sources"])
    if metadata["meanings"] != one.metadata.get("meanings"):
        return _Plan(one, metadata=metadata, says=("what its sources mean is written down",))
    due = todays.due(one)
    return _Plan(one, metadata=one.metadata, says=due) if due else _Plan(one)


def _plan_step(one: Recording, past: History, now: Tree) -> _Plan:
    if past.text(now.commit, one.file) != one.path.read_bytes().replace(b"\r\n", b"\n"):
        reason = f"commit {one.file} first, so that its restamp can be compared with it"
        return _Plan(one, (reason,))
    then = base(one, past)
    if then is None:
        reason = "and no commit has its sources as they were then"
        return _Plan(one, (f"it was recorded at {one.metadata['commit']}, {reason}",))
    step = steps.take(one.metadata, one.shows_lines(), then, now)
    grounds = tuple(sorted(set(step.change.grounds.values())))
    return _Plan(one, tuple(step.change.refused), step, step.after, grounds)


def _carried_out(plan: _Plan, compiler: Compiler) -> Outcome:
    one, refused = plan.one, plan.refused
    try:
        if step := plan.compared:
            refused = tuple(machine_code.differences(*step.parts, compiler))
        if plan.metadata and not refused:
            _write(one, plan.metadata)
    except CudatutError as error:
        refused = (str(error),)
    except OSError as error:
        refused = (f"{one.file} cannot be written: {error.strerror}",)
    return Outcome(one.name, one.path, () if refused else plan.says, refused)


def base(one: Recording, past: History, at: str = "HEAD") -> Tree | None:
    """The commit at which a recording's sources were last known to be equal in effect; None where no commit has them.

    One that was made from files that no commit had is compared with a commit (`at` or before it) that brought it.
    """
    if stamps := one.metadata.get("restamped"):
        commits: Sequence[str | None] = [past.commit(stamps[-1]["to"])]
    elif commit := past.commit(one.metadata["commit"]):
        commits = [commit]
    else:
        commits = places.changes(one, past, at)
    trees = (tree(past, commit) for commit in commits if commit)
    return next((then for then in trees if has_sources(one.metadata, then)), None)


def has_sources(metadata: dict[str, Any], then: Tree) -> bool:
    """Whether a tree has the sources of a recording as it ran them."""
    return all(then.sha256(name) == sha for name, sha in metadata["sources"].items())


def _write(one: Recording, metadata: dict[str, Any]) -> None:
    """Put the recording in its place again, with these metadata and the text of today, signed anew, in one step.

    Raises CudatutError where that would change what was measured, and OSError.
    """
    import nbformat

    from cudatut.to_notebook import raw

    notebook = json.loads(one.path.read_text(encoding="utf-8"))
    notebook["metadata"]["cudatut"] = {key: metadata[key] for key in metadata if key != "digest"}
    todays.renew(one, notebook)
    written = nbformat.from_dict(notebook)
    made = recording.parse(one.name, one.path, raw(written))
    if made.measurement() != one.measurement():
        raise CudatutError(f"{one.file} would say otherwise what was measured: this is a bug")
    written.metadata["cudatut"]["digest"] = made.digest()
    write_whole(one.path, raw(written))
