"""Where a recording says that it comes from, laid beside the history: its commit, its date, and its sources there."""

import datetime
from collections.abc import Iterator
from functools import cache

from cudatut import agreement, catalog
from cudatut.fingerprint.meaning import text_hash
from cudatut.history import History
from cudatut.recording import DIRTY, Recording

_CLOCKS_DIFFER = 3600  # seconds, between the machine that commits and the one with the GPU


def problems(recording: Recording, past: History) -> Iterator[str]:
    """Where a recording says what the history does not."""
    metadata = recording.metadata
    if metadata["commit"] == "unknown":
        yield "it does not say at which commit it was made (CUDATUT_COMMIT says it where there is no git)"
        return
    named = [metadata["commit"].removesuffix(DIRTY)]
    named += [entry["to"] for entry in metadata.get("restamped", ())]
    commits = [commit for name in named if (commit := past.commit(name)) is not None]
    for name in named:
        if (commit := past.commit(name)) is None:
            yield f"it names the commit {name}, and there is none of this name"
        elif not past.is_ancestor(commit):
            yield f"it names the commit {name}, which the present one does not come from"
    if len(commits) < len(named):
        return
    made, latest = commits[0], commits[-1]
    recorded_at = datetime.datetime.fromisoformat(metadata["recorded_at"])
    if recorded_at.timestamp() < past.time(made) - _CLOCKS_DIFFER:
        committed = datetime.datetime.fromtimestamp(past.time(made), datetime.UTC)
        yield f"it was recorded at {metadata['recorded_at']}, before its commit was made ({committed.isoformat()})"
    if recording.dirty and len(commits) == 1:
        return
    for file, sha256 in metadata["sources"].items():
        if (there := _hash_at(past, latest, file)) != sha256:
            what = "is not there" if there is None else "is another"
            yield f"it was made from examples/{file}, which {what} at the commit {latest[:12]}"
    own = catalog.script_in(recording.name, metadata["sources"])
    if own in recording.rewritten() and (text := past.text(latest, f"examples/{own}")):
        # Without effect, or it would be stale. So its cells are not those of today's text, but still those of that.
        example, as_text = catalog.get(recording.name), text.replace(b"\r\n", b"\n").decode()
        for problem in agreement.unlike(example, as_text, recording.cells, recording.slim):
            yield f"it has not the cells of its commit {latest[:12]}: {problem}"


@cache
def _hash_at(past: History, commit: str, file: str) -> str | None:
    text = past.text(commit, f"examples/{file}")
    return None if text is None else text_hash(text)
