"""tests/support/spending.py: what a run of the tests says it cost."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import spending

KNOWN = ["llm/softmax", "llm/softmax_online", "start/errors"]


@pytest.mark.parametrize(
    ("test", "chapter"),
    [
        ("tests/site/test_parity.py::test_ids[start/errors]", "start/errors"),
        ("tests/examples/test_compile.py::test_compiles[examples/llm/softmax_cluster.cu]", "llm/softmax"),
        ("tests/examples/test_compile.py::test_compiles[examples/llm/softmax_online_claims.py:3]", "llm/softmax_online"),
        ("tests/llm/test_softmax_cluster.py::test_causal", None),
        ("tests/x.py::test_y[start/errorsome]", None),
    ],
)  # fmt: skip
def test_a_test_belongs_to_the_chapter_that_it_names(test, chapter):
    assert spending.chapter_of(test, KNOWN) == chapter


def test_the_book_has_chapters():
    assert "start/hello" in spending.chapters() and len(spending.chapters()) > 50


def test_the_sums_are_said():
    tests = {
        "a.py::x[start/errors]": 2.0,
        "a.py::y[start/errors]": 0.5,
        "b.py::z[llm/softmax]": 1.5,
        "b.py::w": 6.0,
    }
    (line,) = spending.said(tests, KNOWN, every=False)
    assert line == "10 processor seconds; 2.0 for each of 2 chapters"
    tests["a.py::y[start/errors]"] = 2.6
    line, *more = spending.said(tests, KNOWN, every=True)
    assert line.endswith("3.0 for each of 2 chapters: more than the 3 s that one more may cost")
    assert more[0].split() == ["7.5", "s", "b.py"] and more[2].split() == [
        "4.6",
        "s",
        "start/errors",
    ]
    assert more[4].split() == ["6.0", "s", "b.py::w"]
    assert spending.said({}, KNOWN, every=True) == []


def test_a_file_that_builds_programs_has_a_budget_of_its_own(monkeypatch):
    monkeypatch.setattr(spending, "OWN", {"b.py": 8.0})
    tests = {
        "a.py::x[start/errors]": 2.0,
        "b.py::x[start/errors]": 9.0,
        "b.py::x[llm/softmax]": 6.0,
        "b.py::y": 3.0,
    }
    assert spending.said(tests, KNOWN, every=False) == [
        "20 processor seconds; 2.0 for each of 1 chapters",
        "b.py: 7.5 for each of 2 chapters",
    ]
    tests["b.py::x[llm/softmax]"] = 8.0
    assert spending.said(tests, KNOWN, every=False)[1].endswith(
        "8.5 for each of 2 chapters: more than the 8 s that one more may cost"
    )


def test_files_with_a_budget_of_their_own_are_there():
    assert all((spending.ROOT / name).is_file() for name in spending.OWN)


def test_what_a_test_and_its_children_compute_is_noted():
    noted = spending.Costs(False)
    wrapped = noted.pytest_runtest_makereport(None, None)
    next(wrapped)
    subprocess.run([sys.executable, "-c", "sum(range(10**6))"], check=True, env=os.environ)
    report = SimpleNamespace(when="teardown", user_properties=[], nodeid="a.py::x")
    with pytest.raises(StopIteration):
        wrapped.send(report)
    noted.pytest_runtest_logreport(report)
    assert 0.01 < noted.tests["a.py::x"] < 60
