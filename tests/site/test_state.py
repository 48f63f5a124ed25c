"""What the build of one language knows: which results of a cell there are, by GPU; what went wrong; where pages are."""

import logging

import pytest

from cudatut.catalog import UnknownExampleError
from cudatut.errors import CudatutError
from cudatut.finding import Finding
from cudatut.site import locale, missing, state
from cudatut.site.state import State


def test_a_cell_has_the_results_of_each_gpu_that_ran_it(project):
    project.book.slim("start/add")
    found = State().gpus("start/add", "bench")
    assert [gpu for gpu, _ in found] == ["NVIDIA Test", "NVIDIA Other"]
    assert all(any(one["kind"] == "benchmark" for one in results) for _, results in found)
    assert State().gpus("start/add", "other") == []


@pytest.mark.parametrize(
    ("url", "target", "link"),
    [
        ("start/add/", "glossary/", "../../glossary/"),
        ("start/add/", "glossary/#warp", "../../glossary/#warp"),
        ("start/add/", "examples/add.ipynb", "../../examples/add.ipynb"),
        ("start/add/", "start/later/", "../later/"),
        ("start/add/", "", "../../"),
        ("start/add/", "start/add/", "./"),
        ("", "start/add/", "start/add/"),
        ("", "#top", "./#top"),
        ("a/", "javascript:x/#cell-id=a b#c", "../javascript%3Ax/#cell-id=a%20b%23c"),
    ],
)
def test_a_link_leads_from_the_page_at_work(url, target, link):
    assert State(url=url).link(target) == link


def test_a_problem_is_told_once_on_each_page_and_where_it_is(caplog):
    build = State(lang="zh")
    with caplog.at_level(logging.WARNING, "mkdocs.plugins.cudatut"):
        for build.page in ("", "a/b.md", "a/c.md"):
            build.report("before any page" if not build.page else "on a page")
            build.report("before any page")
            build.report(CudatutError("on a page"))
            build.report(Finding("docs/zh/x.md", 3, "found"))
            build.report(missing.MissingOutputError("the page says so"))
    told = ["before any page", "on a page", "docs/zh/x.md:3: found"]
    assert build.problems == told
    assert [one.getMessage() for one in caplog.records] == told
    build = State(page="a/b.md")
    build.report("x")
    build.report("x")
    build.page = "a/c.md"
    build.report("x")
    assert build.problems == ["docs/en/a/b.md: x", "docs/en/a/c.md: x"]


def test_a_build_has_the_words_of_its_language():
    try:
        begun = state.begin(State(lang="zh"))
        assert state.current() is begun and locale.current() == "zh"
    finally:
        state.begin(State())


@pytest.fixture
def recordings(monkeypatch):
    """Give it what `require_good` says of an example; the names that were asked for."""
    asked = []

    def begin(answer):
        def good(name):
            asked.append(name)
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(state.recording, "require_good", good)
        monkeypatch.setattr(state.recording, "on_other_gpus", lambda name: [f"{name} elsewhere"])
        monkeypatch.setattr(state.recording, "at_home", lambda own: f"{own} at home")
        monkeypatch.setattr(state.missing, "stand_in", lambda name, why: f"{name}: {why}")
        monkeypatch.setattr(state.failures, "reason", {"a/failed": "it raised"}.get)
        return asked

    return begin


def test_a_recording_is_read_once_and_of_the_books_own_gpu_where_the_build_is_strict(recordings):
    asked = recordings("own")
    for mode, own in (("strict", "own at home"), ("live", "own"), ("preview", "own")):
        build = State(mode=mode)
        assert build.recordings("a/b") == build.recordings("a/b") == [own, "a/b elsewhere"]
        assert build.record("a/b") == own
    assert asked == ["a/b"] * 3


def test_an_error_of_a_recording_is_raised_each_time_and_found_once(recordings):
    asked = recordings(CudatutError("stale"))
    for mode in ("strict", "live"):
        build = State(mode=mode)
        for _ in range(2):
            with pytest.raises(CudatutError, match="stale"):
                build.recordings("a/b")
    assert asked == ["a/b"] * 2


def test_what_failed_here_or_is_in_progress_has_a_stand_in_but_for_what_is_no_example(recordings):
    recordings(CudatutError("stale"))
    assert State(mode="preview").recordings("a/b") == ["a/b: stale"]
    for mode in ("preview", "live"):
        assert State(mode=mode).recordings("a/failed") == ["a/failed: it raised"]
    with pytest.raises(CudatutError, match="stale"):
        State().recordings("a/failed")
    recordings(UnknownExampleError("none such"))
    with pytest.raises(UnknownExampleError):
        State(mode="preview").recordings("a/none")


def test_an_example_is_looked_up_once(monkeypatch):
    asked = []
    monkeypatch.setattr(state.catalog, "get", lambda name: asked.append(name) or object())
    monkeypatch.setattr(state.catalog, "examples", lambda: asked.append("all") or [object()])
    build = State()
    assert build.example("a/b") is build.example("a/b") is not build.example("a/c")
    assert build.examples is build.examples
    assert asked == ["a/b", "a/c", "all"]


def test_pages_lie_in_the_checkout_or_where_one_is(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert State().docs == state.paths.repo_root() / "docs/en"
    monkeypatch.setattr(state.paths, "repo_root", lambda: None)
    assert State().docs == tmp_path / "docs/en"
