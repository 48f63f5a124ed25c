"""What git keeps of the commits that recordings name."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from cudatut import history
from cudatut.errors import CudatutError
from cudatut.history import NoHistory


def past():
    history.history.cache_clear()
    return history.history()


def test_commits(repository, monkeypatch):
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-11-20T12:00:00+01:00")
    first, second = repository.commit(a="1\n"), repository.commit(a="2\n", b="3\n")
    known = past()
    assert known.commit("HEAD") == second
    assert known.commit(first[:7]) == first
    assert known.time(first) == 1795172400
    assert known.is_ancestor(first) and known.is_ancestor(second)
    assert not known.is_ancestor("0" * 40)
    repository.git("checkout", "-q", "-b", "other", first)
    elsewhere = repository.commit(a="4\n")
    repository.git("checkout", "-q", "main")
    assert known.commit(elsewhere) == elsewhere and not known.is_ancestor(elsewhere)


@pytest.mark.parametrize(
    "name",
    [
        "0" * 40,
        "",
        "unknown",
        "HEAD-dirty",
        "a b",
        "a\nHEAD",
        "--all",
        "HEAD:examples/a",
        "词",
        "^",
    ],
)
def test_what_is_no_commit(repository, name):
    """Whatever a recording may call its commit; and the next question gets its own answer."""
    head = repository.commit(a="1\n")
    known = past()
    assert known.commit(name) is None
    assert known.text(name, "examples/a") is None
    assert known.commit("HEAD") == head


def test_files(repository):
    text = "x = 1\r\n\n"
    first = repository.commit(**{"a b.py": text, "词.cu": "", "a\tb": "", "c": "gone\n"})
    second = repository.commit(c=None)
    known = past()
    assert known.text(first, "examples/a b.py") == text.encode()
    assert known.text(first, "examples/词.cu") == b""
    assert known.text(second, "examples/c") is None
    assert known.text(first, "examples") is None  # a folder
    assert set(known.files(first, "examples")) == {
        "examples/a b.py",
        "examples/词.cu",
        "examples/a\tb",
        "examples/c",
    }
    listed = known.files(second, "examples")
    assert known.blob(listed["examples/a b.py"]) == text.encode()
    assert known.files(first, "nothing") == {}
    assert known.changes("examples/c") == [second, first]
    assert known.changes("examples/c", at=first) == [first]
    assert known.changes("examples/d") == []
    assert known.changes("examples/c", "examples/a b.py", "examples/d") == [second, first]


def test_an_object_that_the_repository_lacks(repository):
    """Such as in a clone that leaves files to be fetched when they are asked for, without a network."""
    commit = repository.commit(a="1\n")
    blob = past().files(commit, "examples")["examples/a"]
    (repository.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(CudatutError, match=f"cannot read {blob} here"):
        past().blob(blob)


def test_what_is_not_committed(repository):
    repository.commit(a="1\n", b="1\n", c="1\n")
    known = past()
    assert known.changed("examples") == []
    root = repository.root / "examples"
    (root / "a").write_text("2\n")
    (root / "b").rename(root / "词 x")
    (repository.root / "elsewhere").write_text("")
    repository.git("rm", "-q", "--cached", "examples/c")
    wanted = {"examples/a", "examples/b", "examples/c", "examples/词 x"}
    assert set(known.changed("examples")) == wanted


def test_threads_share_one_process(repository):
    commits = [repository.commit(a=f"{n}\n" * 1000) for n in range(8)]
    known = past()
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(known.text, commit, "examples/a") for commit in commits * 20]
        found = [one.result() for one in asked]
    assert found == [f"{n}\n".encode() * 1000 for n in range(8)] * 20


def test_without_a_clone(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path / "examples"))
    (tmp_path / "examples").mkdir()
    with pytest.raises(NoHistory, match="no clone, or git is missing"):
        past()


def test_inside_another_repository(repository, monkeypatch):
    """As an installed copy whose environment lies in somebody's checkout."""
    inside = repository.root / "venv" / "examples"
    inside.mkdir(parents=True)
    repository.commit(a="1\n")
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(inside))
    with pytest.raises(NoHistory, match="no clone"):
        past()


def test_without_git(repository, monkeypatch):
    repository.commit(a="1\n")
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(NoHistory, match="git is missing"):
        past()


def test_a_shallow_clone(repository, tmp_path, monkeypatch):
    repository.commit(a="1\n")
    repository.commit(a="2\n")
    clone = tmp_path / "clone"
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.root}", str(clone))
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(clone / "examples"))
    with pytest.raises(NoHistory, match="git fetch --unshallow"):
        past()


def test_git_ends_with_who_asks_it(repository):
    """Each test that has a book of its own would leave a process behind, and two pipes."""
    repository.commit(a="1\n")
    known = history.of(repository.root)
    assert known.commit("HEAD")
    asked = known._batch
    assert asked.poll() is None
    del known
    assert asked.returncode == 0


def test_a_time_and_a_name_are_asked_once_and_head_each_time(repository):
    first = repository.commit(a="1\n")
    known = past()
    assert known.commit(first[:4]) == first and known.time(first) == known.time(first) > 0
    asked = []
    real = known._object
    known._object = lambda name: asked.append(name) or real(name)
    known.commit(first[:4]), known.time(first)
    assert asked == []
    known.commit(first[:3])  # too short for a name that stays what it is
    known.commit("HEAD")
    assert asked == [f"{first[:3]}^{{commit}}", "HEAD^{commit}"]


def test_ancestors_are_those_of_head_as_it_is(repository):
    first = repository.commit(a="1\n")
    known = past()
    assert known.is_ancestor(first)
    second = repository.commit(a="2\n")
    assert known.is_ancestor(second) and known.is_ancestor(first)


def test_what_git_is_about_to_commit_is_no_file(repository):
    first = repository.commit(a="1\n")
    known = past()
    assert known._object(":examples/a") is None and known._object("HEAD\nHEAD") is None
    assert known.text(first, "examples/a") == b"1\n"


def test_what_git_says_may_keep_its_blanks(repository):
    repository.commit(a="1\n")
    (repository.root / "examples" / "b").write_text("")
    asked = ("status", "--porcelain")
    assert history.git(repository.root, *asked) == "?? examples/b"
    assert history.git(repository.root, *asked, strip=False) == "?? examples/b\n"
    assert history.git(repository.root, "no-such-command") is None
    assert history.of(repository.root) is not history.of(repository.root)
    assert past() is history.history()
