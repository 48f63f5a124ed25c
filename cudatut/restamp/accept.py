"""Accept that sources of recordings changed without effect, and write into each recording what was accepted and why.

A recording keeps the commit at which it was measured. Under `restamped` it lists each time that its sources were found
to be equal in effect at a later commit: from which commit to which, each file, its hashes before and after, and the
ground (see `cudatut.restamp.grounds`). Nothing of what was measured is touched.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudatut import catalog, paths, recording
from cudatut.errors import CudatutError
from cudatut.files import write_whole
from cudatut.fingerprint import meaning
from cudatut.history import History, NoHistory, git, history
from cudatut.recording import Recording
from cudatut.restamp import grounds, machine_code
from cudatut.restamp.trees import Compiler, tree


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

    Also writes into older recordings what their sources mean, and into notebooks the text that their sources have now.
    Raises CudatutError where there is no history, or where examples/ holds what no commit has.
    """
    try:
        past = history()
    except NoHistory as error:
        raise CudatutError(
            f"restamp compares with the commits that recordings name, and {error}"
        ) from error
    root = paths.examples_dir()
    if changed := git(root, "status", "--porcelain", "--untracked-files=all", "--", "."):
        files = [
            line[3:] for line in changed.splitlines() if not line.endswith((".ipynb", ".json"))
        ]
        if files:
            raise CudatutError(
                f"commit what you changed first, so that a recording can name it: {', '.join(files[:5])}"
            )
    head, compiler, outcomes = past.commit("HEAD"), Compiler(past), []
    for one in recordings:
        try:
            outcome = _restamp(one, past, head, compiler)
        except CudatutError as error:
            outcome = Outcome(one.name, one.path, refused=(str(error),))
        if outcome.grounds or outcome.refused:
            say(f"{outcome.name}: {'; '.join(outcome.refused) or ', '.join(outcome.grounds)}")
            outcomes.append(outcome)
    return outcomes


def _restamp(one: Recording, past: History, head: str, compiler: Compiler) -> Outcome:
    if one.edited():
        return Outcome(one.name, one.path, refused=("it was edited: its digest differs",))
    metadata, said = json.loads(json.dumps(one.metadata)), []
    base = past.commit(metadata.get("restamped", [{"to": metadata["commit"]}])[-1]["to"])
    if base is None and not one.rewritten():
        base = head  # recorded from files that no commit had; they are those of today
    if base is None:
        reason = f"it was recorded at {metadata['commit']}, which is no commit to compare with"
        return Outcome(one.name, one.path, refused=(reason,))
    then, now = tree(past, base), tree(past, head)
    if "meanings" not in metadata:
        metadata["meanings"] = meanings_then(metadata["sources"], then)
        said.append("what its sources mean is written down")
    if one.rewritten():
        change = grounds.judge(metadata, one.shows_lines(), then, now)
        reasons = change.refused
        if change.code and not reasons:
            reasons = machine_code.differences(
                metadata, change.code, change.now, compiler, base, head
            )
        if reasons:
            return Outcome(one.name, one.path, refused=tuple(reasons))
        _accept(metadata, change, base, head, now)
        said += sorted(set(change.grounds.values()))
    notebook = _with_todays_text(one, metadata)
    if said or notebook is not None:
        _write(one, metadata, notebook)
        said = said or ["its text is today's"]
    return Outcome(one.name, one.path, tuple(said))


def meanings_then(sources: dict[str, str], then: Any) -> dict[str, str]:
    """What the sources of an older recording meant, without those that its code read as text (`grounds.read_as_text`)."""
    texts = grounds.read_as_text(sources, then)
    found = {
        name: meaning.meaning_hash(name, then[name])
        for name, sha in sources.items()
        if name not in texts and name in then and meaning.text_hash(then[name]) == sha
    }
    return {name: sha for name, sha in found.items() if sha}


def _accept(
    metadata: dict[str, Any], change: grounds.Change, base: str, head: str, now: Any
) -> None:
    """Write into the metadata of a recording what was accepted, and what its sources are now."""
    sources, meanings = metadata["sources"], metadata["meanings"]
    files = {}
    for name, ground in change.grounds.items():
        target = change.now[name]
        entry = {"ground": ground, "was": sources.pop(name)}
        was_known = meanings.pop(name, None)
        if target is not None:
            entry["now"] = sources[target] = meaning.text_hash(now[target])
            if target != name:
                entry["as"] = target
            if was_known and (means := meaning.meaning_hash(target, now[target])):
                meanings[target] = means
        files[name] = entry
    added = grounds.included(sources, now) - set(sources) if change.code else set()
    for name in added:
        sources[name] = meaning.text_hash(now[name])
        if means := meaning.meaning_hash(name, now[name]):
            meanings[name] = means
    entry = {"from": base, "to": head, "files": files}
    if added:
        entry["added"] = sorted(added)
    metadata.setdefault("restamped", []).append(entry)
    metadata["sources"] = dict(sorted(sources.items()))
    metadata["meanings"] = dict(sorted(meanings.items()))


def _with_todays_text(one: Recording, metadata: dict[str, Any]) -> list[Any] | None:
    """The cells of a notebook with the text of its .py today and the outputs that it has; None where they are the same.

    Its title, too, is what the header says today.
    """
    from cudatut.record.notebook import install_cell, notebook_of

    example = catalog.get(one.name)
    metadata |= {"title": example.title, "requires": example.requires}
    if one.slim:
        return None
    raw = {cell["id"]: cell for cell in json.loads(one.path.read_text(encoding="utf-8"))["cells"]}
    cells = [install_cell(example), *notebook_of(example).cells]
    known = {cell.title: cell.source for cell in one.cells}
    if {cell.id: cell.source for cell in cells if cell.id != recording.INSTALL_CELL} == {
        title: source for title, source in known.items() if title != recording.INSTALL_CELL
    }:
        return None
    for cell in cells:
        if cell.cell_type == "code" and cell.id in raw:
            cell.outputs = raw[cell.id]["outputs"]
            cell.execution_count = raw[cell.id]["execution_count"]
    return cells


def _write(one: Recording, metadata: dict[str, Any], cells: list[Any] | None) -> None:
    """Put the recording in its place again, signed anew, in one step."""
    import nbformat

    notebook = nbformat.reads(one.path.read_text(encoding="utf-8"), as_version=4)
    if cells is not None:
        notebook.cells = [nbformat.from_dict(cell) for cell in cells]
    metadata.pop("digest", None)
    notebook.metadata["cudatut"] = metadata
    raw = lambda: (nbformat.writes(notebook, version=4).rstrip("\n") + "\n").encode()  # noqa: E731
    notebook.metadata["cudatut"]["digest"] = recording.parse(one.name, one.path, raw()).digest()
    write_whole(one.path, raw())
