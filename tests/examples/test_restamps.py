"""The restamps of the book's own recordings are such as `restamp` makes: by the hashes that git has, and by the compiler."""

import pytest

from cudatut import recording
from cudatut.history import NoHistory, history
from cudatut.restamp import verify
from cudatut.restamp.grounds import CODE

SECONDS = 60  # for the compiler, where it has nothing in its cache


@pytest.fixture
def past():
    try:
        return history()
    except NoHistory as error:
        pytest.skip(f"restamps are compared with the commits that they name, and {error}")


def test_by_hashes(past):
    problems = [
        f"{one.path}: {line}" for one in recording.every() for line in verify.problems(one, past)
    ]
    assert not problems, "\n".join(problems)


def test_by_machine_code(past, compiler, monkeypatch, record_property):
    """As many as there is time for, drawn by the commit: all where the compiler has made them before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(compiler.folder.parent))
    drawn, said = int(past.commit("HEAD")[:8], 16), []
    problems = verify.compiled(recording.every(), past, said.append, SECONDS, drawn)
    record_property("compared", said)
    assert not problems, "\n".join(problems)
    assert len(said) > 0 or not any(map(_by_code, recording.every()))


def _by_code(one):
    """Whether a restamp of this recording says of a kernel that its machine code is the same."""
    files = (file for step in one.metadata.get("restamped", ()) for file in step["files"].values())
    return any(file["ground"] == CODE for file in files)
