"""tests/support/kept.py: what is found again, what is made anew, and what goes; and what the built site follows from."""

import os
import subprocess
import sys
import time
from pathlib import Path

import kept
import pytest

OLD = time.time() - (kept.DAYS + 1) * 86_400


def test_what_was_written_is_found_again(tmp_path):
    entries = kept.Kept(tmp_path / "some")
    key, other = entries.key("a", ["b"]), entries.key("a", ["c"])
    assert key == entries.key("a", ["b"]) and len({key, other, entries.key("a", "b")}) == 3
    assert entries.read(key) is None
    entries.write(key, b"one")
    assert kept.Kept(tmp_path / "some").read(key) == b"one" and entries.read(other) is None


@pytest.mark.parametrize("folder", [True, False])
def test_what_is_made_is_made_once(tmp_path, folder):
    made = []

    def make(path):
        made.append(path)
        if folder:
            path.mkdir()
        (path / "index" if folder else path).write_text("whole")

    for _ in range(2):
        path = kept.Kept(tmp_path).made("key", make)
        assert (path / "index" if folder else path).read_text() == "whole"
    assert len(made) == 1 and made[0] != path, "it is whole before it has its name"


def test_what_failed_is_made_again(tmp_path):
    def fails(path):
        path.mkdir()
        (path / "half").touch()
        raise RuntimeError("no")

    entries = kept.Kept(tmp_path)
    with pytest.raises(RuntimeError):
        entries.made("key", fails)
    assert not (tmp_path / "key").exists()
    path = entries.made("key", lambda path: path.mkdir())
    assert list(path.iterdir()) == []


MAKES = """
import sys, time
from pathlib import Path
import kept
def make(path):
    with open(sys.argv[1] + "/made", "a") as noted:
        noted.write("x")
    time.sleep(0.2)
    path.touch()
kept.Kept(Path(sys.argv[1], "entries")).made("key", make)
"""


def test_two_processes_make_it_once(tmp_path):
    command = [sys.executable, "-c", MAKES, str(tmp_path)]
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(kept.ROOT), str(Path(kept.__file__).parent)])
    }
    both = [subprocess.Popen(command, env=env) for _ in range(2)]
    assert [one.wait(60) for one in both] == [0, 0]
    assert (tmp_path / "made").read_text() == "x"


def test_what_nobody_asks_for_goes(tmp_path):
    entries = kept.Kept(tmp_path)
    for key in ("asked", "not"):
        entries.write(key, b"x")
        os.utime(tmp_path / key, (OLD, OLD))
    assert entries.read("asked") == b"x"  # which is noted
    assert kept.Kept(tmp_path).read("not") is None and kept.Kept(tmp_path).read("asked") == b"x"


def test_those_asked_for_last_stay(tmp_path):
    for age, key in enumerate("abcd"):
        (tmp_path / key).mkdir()
        os.utime(tmp_path / key, (time.time() - 100 * age,) * 2)
    kept.Kept(tmp_path, most=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.fixture
def checkout(tmp_path):
    root = tmp_path / "checkout"
    for name in ("docs/a.md", "cudatut/x.py", "tests/test_x.py", ".gitignore"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("site\n")
    subprocess.run(["git", "init", "-q", root], check=True)
    return root


@pytest.mark.parametrize(
    ("name", "another"),
    [("docs/a.md", True), ("docs/new.md", True), ("cudatut/x.py", True), ("tests/test_x.py", False), ("CHANGELOG.md", True), ("Makefile", False), ("site", False)],
)  # fmt: skip
def test_the_site_is_built_again_where_it_may_be_another(
    checkout, sources_of_the_site, name, another
):
    before = sources_of_the_site(checkout)
    assert before == sources_of_the_site(checkout)
    (checkout / name).write_text("another")
    assert (sources_of_the_site(checkout) != before) == another


def test_the_site_is_built_again_with_another_variable(checkout, sources_of_the_site, monkeypatch):
    before = sources_of_the_site(checkout)
    monkeypatch.setenv("SITE_URL", "https://example.org/")
    assert sources_of_the_site(checkout) != before
    (checkout / "docs/a.md").unlink()
    assert "docs/a.md" not in sources_of_the_site(checkout)[0]


def test_without_git_nothing_is_known_of_the_site(tmp_path, sources_of_the_site):
    assert sources_of_the_site(tmp_path) is None
