"""Where the file of a recording lay at a commit: until November 2026 beside its example, or in results/.

A whole recording of one GPU becomes slim when another GPU's whole one takes its place: then it lay before as that file.
"""

from pathlib import PurePosixPath

from cudatut import recording
from cudatut.history import History
from cudatut.recording import Recording


def of(one: Recording) -> list[str]:
    """The paths that its file has had, relative to the root of the repository, today's first."""
    if not one.slim:
        return [one.file, f"examples/{one.name}.ipynb"]
    whole = PurePosixPath(one.file).with_suffix(".ipynb")
    return [one.file, str(whole), one.file.replace("recordings/", "results/", 1)]


def at(one: Recording, past: History, commit: str) -> Recording | None:
    """The recording as it was at a commit, whole perhaps; None if it was not there. Raises DamagedRecordingError."""
    for file in of(one):
        if (text := past.text(commit, file)) is not None:
            slim = PurePosixPath(file).suffix == ".json"
            path = one.path if slim == one.slim else one.path.with_suffix(".ipynb")
            return recording.parse(one.name, path, text)
    return None


def measured_the_same(old: Recording, one: Recording) -> bool:
    """Whether today's recording, `one`, says of what was measured no more and nothing else than an older state of it."""
    slimmed = one.slim and not old.slim
    return (old.slimmed() if slimmed else old).measurement() == one.measurement()


def changes(one: Recording, past: History, at: str = "HEAD") -> list[str]:
    """The commits that changed its file, `at` or before it, the last one first."""
    return past.changes(*of(one), at=at)
