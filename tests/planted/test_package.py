"""The faults that are planted in the package, and what is said of them, on a package of a few lines."""

import argparse
import subprocess
from itertools import islice
from pathlib import Path

import package
import pytest
import python_mutants as mutants

ROOT = Path(__file__).resolve().parents[2]
MODULE = '''"""A docstring: 1 < 2."""

LIMIT: int = 3


def least(values, most=2.0):
    """min of values."""
    if not values or len(values) > LIMIT:
        raise ValueError("none")
    found = {"a": min(values), "b": values[-1]}
    found["c"] = round(most * 2, 1)
    found.pop("c")
    return found
'''
TESTS = """
from cudatut.small import least

def test_least():
    assert least([3, 1, 2]) == {"a": 1, "b": 2}

def test_other():
    assert least([5])["a"] == 5
"""


def test_each_family_finds_its_places():
    found = mutants.possible("x.py", MODULE)
    said = {(one.family, one.old, one.new) for one in found}
    for one in (
        ("comparison", ">", ">="),
        ("constant", "3", "4"),
        ("constant", "2.0", "4.0"),
        ("operator", "not ", ""),
        ("operator", "or", "and"),
        ("operator", "*", "/"),
        ("statement", 'found.pop("c")', "pass"),
        ("statement", 'found["c"] = round(most * 2, 1)', "pass"),
        ("raise", 'raise ValueError("none")', "pass"),
        ("raise", "found", "None"),
        ("arguments", "most * 2, 1", "1, most * 2"),
        ("arguments", 'min(values), "b": values[-1]', 'values[-1], "b": min(values)'),
        ("extreme", "min", "max"),
        ("extreme", "-1", "0"),
    ):
        assert one in said, one
    assert {one.family for one in found} == set(mutants.FAMILIES)
    assert all(one.line != 1 for one in found), "a docstring"
    of_the_function = [one for one in found if one.line > 5]
    assert all(one.function == 6 for one in of_the_function) and found[0].function == 0
    with pytest.raises(ValueError, match="draw again"):
        found[0].applied(MODULE.replace("\n", "\n\n"))


def test_drawing_is_the_same_for_a_seed_and_makes_programs():
    texts = mutants.package_files(ROOT)
    first, again, other = (list(islice(mutants.drawn(texts, n), 100)) for n in (1, 1, 2))
    assert first == again != other and len({one.name for one in first}) == 100
    assert {one.family for one in first} == set(mutants.FAMILIES)
    assert len({one.file for one in first}) > 35
    for one in first:
        compile(one.applied(texts[one.file]), one.file, "exec")


def test_columns_are_counted_in_characters():
    text = 'x = ("春眠不觉晓", 1 < 2)\n'
    (one,) = (one for one in mutants.possible("x.py", text) if one.family == "comparison")
    assert one.applied(text) == 'x = ("春眠不觉晓", 1 <= 2)\n'


@pytest.fixture
def book(tmp_path):
    """A repository with a package and its tests."""
    root = tmp_path / "book"
    for name, text in {
        "cudatut/__init__.py": "",
        "cudatut/small.py": MODULE,
        "tests/test_small.py": TESTS,
        "pyproject.toml": "[tool.pytest.ini_options]\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        author = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(root), *author, *command], check=True)
    return root


def test_what_tests_call_and_what_they_notice(book, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(package, "ROOT", book)
    monkeypatch.setattr(package, "TESTS", ("tests",))
    out = tmp_path / "out"
    given = argparse.Namespace(
        out=out, tests=None, limit=60, add=False, seed=1, count=2, only="", again=False, budget=9.0
    )
    assert package.take_survey(given) == 0
    found = package.survey(out)
    tests = {"tests/test_small.py::test_least", "tests/test_small.py::test_other"}
    assert found.callers["cudatut/small.py", 6] == tests == set(found.seconds)
    package.judge_all(given)
    said = capsys.readouterr().out
    assert "survived without a fault" in said and said.count("cudatut/small.py:") >= 2
    rows = package.Results(out / "package-1.jsonl").by_name
    assert len(rows) == 3
    assert (out / "tree/cudatut/small.py").read_text() == MODULE, "mended"

    faults = {
        f"`{one.old}` -> `{one.new}`": one for one in mutants.possible("cudatut/small.py", MODULE)
    }
    tree = package.Tree(book, out / "tree")
    for fault, outcome in (("`min` -> `max`", "noticed"), ("`2.0` -> `4.0`", "survived")):
        tree.plant(faults[fault])
        assert package.judge(tree, sorted(tests), 1)["outcome"] == outcome
        tree.mend()
    with pytest.raises(SystemExit, match="names tests that are gone"):
        package.judge(tree, ["tests/test_small.py::test_gone"], 1)


def test_tests_of_the_modules_own_file_come_first():
    mutant = mutants.Mutant("cudatut/small.py", 0, "a", "b", "constant", 1, 6)
    found = package.Survey()
    found.seconds = {
        "tests/test_a.py::x": 0.1,
        "tests/test_small.py::y": 2.0,
        "tests/test_b.py::z": 50,
    }
    found.callers["cudatut/small.py", 6] = set(found.seconds)
    assert package.choose(found, mutant, 10) == ["tests/test_small.py::y", "tests/test_a.py::x"]
    found.callers["cudatut/small.py", 9] = {"tests/test_b.py::z"}
    assert package.choose(found, mutant, 100)[-1] == "tests/test_b.py::z"
    elsewhere = mutants.Mutant("cudatut/other.py", 0, "a", "b", "constant", 1, 6)
    assert package.choose(found, elsewhere, 100) == []


def test_what_changes_nothing_is_told_and_not_counted(tmp_path, monkeypatch, capsys):
    listed = tmp_path / "equivalent.yml"
    listed.write_text("- fault: 'cudatut/a.py constant: `1` -> `2`'\n  why: nobody reads it\n")
    known = package.equivalents(listed)
    assert (
        package.outcome_of("cudatut/a.py:7 constant: `1` -> `2`", {"outcome": "survived"}, known)
        == "equivalent"
    )
    assert (
        package.outcome_of("cudatut/a.py:7 constant: `1` -> `2`", {"outcome": "noticed"}, known)
        == "noticed"
    )
    assert (
        package.outcome_of("cudatut/a.py:7 constant: `1` -> `3`", {"outcome": "survived"}, known)
        == "survived"
    )
    monkeypatch.setattr(package, "EQUIVALENT", listed)
    results = package.Results(tmp_path / "package-1.jsonl")
    outcomes = ["noticed"] * 19 + ["survived"]
    for i, outcome in enumerate(outcomes):
        results.add(
            f"cudatut/b.py:{i} constant: `1` -> `{i}`",
            {"outcome": outcome, "family": "constant", "tests": 1},
        )
    given = argparse.Namespace(out=tmp_path, seed=1, count=20)
    assert package.report(given) == 0 and "19 of 20 noticed (95.0%)" in capsys.readouterr().out
    given.count = 21
    assert package.report(given) == 1
    results.add(
        "cudatut/c.py:1 raise: `x` -> `None`",
        {"outcome": "survived", "family": "raise", "tests": 3},
    )
    assert package.report(given) == 1
    assert "survived: cudatut/c.py:1" in capsys.readouterr().out


def test_what_is_listed_is_there():
    """A fault in the list is one that could be drawn today."""
    texts = mutants.package_files(ROOT)
    every = {package.key(one.name) for file in texts for one in mutants.possible(file, texts[file])}
    listed = package.equivalents()
    assert listed and set(listed) <= every, set(listed) - every
