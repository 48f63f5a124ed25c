"""Where things are: in a checkout, in an installed copy, and where the environment says otherwise."""

import email.message
import sys

import pytest

from cudatut import paths


def test_a_checkout_is_known_by_what_lies_in_it(tmp_path, monkeypatch):
    asked = paths.repo_root.__wrapped__
    monkeypatch.setattr(paths, "__file__", str(tmp_path / "cudatut/paths.py"))
    assert asked() is None
    (tmp_path / "examples").mkdir()
    assert asked() is None
    (tmp_path / "pyproject.toml").touch()
    assert asked() == tmp_path.resolve()
    (tmp_path / "examples").rmdir()
    assert asked() is None


def test_the_repository_is_that_of_the_project(monkeypatch):
    asked = paths.repository.__wrapped__
    here = asked()
    assert here.startswith("https://github.com/")
    monkeypatch.setattr(paths, "repo_root", lambda: None)
    urls = ["Homepage, https://a.example", f"Repository, {here}", "Issues, https://b.example"]
    found = email.message.Message()
    for url in urls:
        found["Project-URL"] = url
    monkeypatch.setattr("importlib.metadata.metadata", {"cudatut": found}.get)
    assert asked() == here


def test_the_examples_of_an_installed_copy_lie_in_the_package(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDATUT_EXAMPLES", raising=False)
    monkeypatch.delenv("CUDATUT_RECORDINGS", raising=False)
    monkeypatch.setattr(paths, "repo_root", lambda: tmp_path / "checkout")
    assert paths.examples_dir() == tmp_path / "checkout/examples"
    assert paths.recordings_dir() == tmp_path / "checkout/recordings"
    assert paths.docs_dir() == tmp_path / "checkout/docs"
    monkeypatch.setattr(paths, "repo_root", lambda: None)
    monkeypatch.setattr(paths, "__file__", str(tmp_path / "site/cudatut/paths.py"))
    assert paths.examples_dir() == tmp_path / "site/cudatut/examples"
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path / "a/../mine"))
    assert paths.examples_dir() == tmp_path / "mine"


def test_a_files_name_in_messages(book):
    assert paths.shown(book.root / "a/x.py") == "examples/a/x.py"
    assert paths.shown(book.root.parent / "docs/x.md") == "docs/x.md"
    assert paths.shown(book.root.parents[1] / "x") == str(book.root.parents[1] / "x")


def test_a_kernels_file_is_looked_for_in_the_examples_first(book, tmp_path, monkeypatch):
    work = tmp_path / "work"
    (work / "a").mkdir(parents=True)
    monkeypatch.chdir(work)
    with pytest.raises(FileNotFoundError) as caught:
        paths.resolve_source("a/k.cu")
    assert f"{book.root / 'a/k.cu'}, {work / 'a/k.cu'}" in str(caught.value)
    (work / "a/k.cu").touch()
    assert paths.resolve_source("a/k.cu") == work / "a/k.cu"
    inside = book.file("a/k.cu", "")
    assert paths.resolve_source("a/k.cu") == inside
    assert paths.resolve_source(work / "a/k.cu") == work / "a/k.cu"
    with pytest.raises(FileNotFoundError) as caught:
        paths.resolve_source(work / "gone.cu")
    assert str(caught.value).count("gone.cu") == 2, "the path, and the one place"


def test_a_file_that_is_read_is_told(monkeypatch):
    heard = []
    monkeypatch.setattr(sys, "audit", lambda *given: heard.append(given))
    paths.note_read("a/x.bin")
    assert heard == [(paths.READ, "a/x.bin")]


def test_what_make_runs_first():
    assert paths.environment("test") == "python tools/environment.py .venv test"
