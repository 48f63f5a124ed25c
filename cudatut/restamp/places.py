"""Where the file of a recording lay at a commit: until November 2026 beside its example, or in results/."""

from cudatut.history import History
from cudatut.recording import Recording


def of(one: Recording) -> list[str]:
    """The paths that its file has had, relative to the root of the repository, today's first."""
    before = one.file.replace("recordings/", "results/", 1)
    return [one.file, before if one.slim else f"examples/{one.name}.ipynb"]


def text(one: Recording, past: History, commit: str) -> bytes | None:
    """Its file as it was at a commit; None if it was not there."""
    found = (past.text(commit, path) for path in of(one))
    return next((text for text in found if text is not None), None)


def changes(one: Recording, past: History, at: str = "HEAD") -> list[str]:
    """The commits that changed its file, `at` or before it, the last one first."""
    return past.changes(*of(one), at=at)
