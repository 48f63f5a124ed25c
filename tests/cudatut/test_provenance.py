"""What a recording says of its commit, beside a history that is made up; beside a real one, test_status.py lays it."""

import datetime

import pytest

from cudatut import provenance, recording

NAME = "start/add"
FIRST, LATER, ELSEWHERE = "a" * 40, "b" * 40, "c" * 40
NOON = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)


class Past:
    """Two commits, and a third that the present one does not come from. files: of each the texts."""

    def __init__(self, **files):
        self.files = files

    def commit(self, name):
        known = (FIRST, LATER, ELSEWHERE)
        return next((one for one in known if name and one.startswith(name)), None)

    def is_ancestor(self, commit):
        return commit != ELSEWHERE

    def time(self, commit):
        return int(NOON.timestamp()) + 7200 * (commit != FIRST)

    def text(self, commit, path):
        return self.files.get(commit[0], {}).get(path.removeprefix("examples/"))


@pytest.fixture
def said(book):
    path = book.example(NAME)
    same = {f"{NAME}.py": path.read_bytes()}

    def problems(past=None, agree=True, **metadata):
        where = book.recorded(NAME, agree=agree)
        made = recording.parse(NAME, where, where.read_bytes())
        own = {"commit": FIRST, "recorded_at": NOON.isoformat()}
        made.metadata.update(own | metadata)
        return list(provenance.problems(made, past or Past(a=same, b=same)))

    return problems


def restamped(*commits):
    return [{"from": FIRST, "to": commit, "files": {}} for commit in commits]


def test_one_that_fits(said):
    assert said() == []
    assert said(commit=FIRST[:7]) == []
    assert said(restamped=restamped(FIRST, LATER)) == []


def test_each_commit_that_it_names_is_looked_up(said):
    assert said(commit="unknown") == [
        "it does not say at which commit it was made (CUDATUT_COMMIT says it where there is no git)"
    ]
    none = "it names the commit ddd, and there is none of this name"
    alien = f"it names the commit {ELSEWHERE}, which the present one does not come from"
    assert said(commit="ddd") == [none]
    assert said(commit=ELSEWHERE)[0] == alien
    assert said(restamped=restamped(LATER, "ddd", ELSEWHERE)) == [none, alien]
    # One that is not there has no date and no files: nothing more is said.
    assert said(commit="ddd", recorded_at="2026-11-01T00:00:00+00:00") == [none]


@pytest.mark.parametrize(("minutes", "told"), [(0, False), (-60, False), (-61, True), (90, False)])
def test_a_recording_is_made_after_its_commit(said, minutes, told):
    """Not after that of a restamp; the clocks of two machines differ by an hour at most."""
    at = (NOON + datetime.timedelta(minutes=minutes)).isoformat()
    before = f"it was recorded at {at}, before its commit was made ({NOON.isoformat()})"
    assert said(recorded_at=at) == ([before] if told else [])
    assert said(recorded_at=at, restamped=restamped(LATER)) == ([before] if told else [])


def test_its_sources_are_those_of_its_last_commit(said, book):
    same = {f"{NAME}.py": (book.root / f"{NAME}.py").read_bytes()}
    other = {f"{NAME}.py": b"x = 3\n"}
    gone = f"it was made from examples/{NAME}.py, which is not there at the commit"
    another = f"it was made from examples/{NAME}.py, which is another at the commit"
    assert said(Past(a=same)) == []
    assert said(Past()) == [f"{gone} {FIRST[:12]}"]
    assert said(Past(a=other)) == [f"{another} {FIRST[:12]}"]
    assert said(Past(a=other, b=same), restamped=restamped(LATER)) == []
    assert said(Past(a=same, b=other), restamped=restamped(LATER)) == [f"{another} {LATER[:12]}"]
    # Of uncommitted files no commit tells, unless a restamp has compared them since.
    assert said(Past(a=other), commit=f"{FIRST}-dirty") == []
    dirty = said(Past(a=other, b=other), commit=f"{FIRST}-dirty", restamped=restamped(LATER))
    assert dirty == [f"{another} {LATER[:12]}"]


def test_where_the_text_is_older_its_cells_are_those_of_the_commit(said, book):
    path = book.root / f"{NAME}.py"
    text = path.read_bytes()
    hashes = {f"{NAME}.py": recording.source_hash(path)}
    windows = text.replace(b"\n", b"\r\n")
    then, forged = Past(a={f"{NAME}.py": windows}), text.replace(b"x = 1", b"x = 2")
    path.write_bytes(text + b"# a comment\n")
    assert said(then, False, sources=hashes) == []
    # The text that the commit is said to have is another one: its hash, and one cell.
    assert said(Past(a={f"{NAME}.py": forged}), False, sources=hashes) == [
        f"it was made from examples/{NAME}.py, which is another at the commit {FIRST[:12]}",
        f"it has not the cells of its commit {FIRST[:12]}: what stands in the cell 'setup' is not what stands in {NAME}.py",
    ]
