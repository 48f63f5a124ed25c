"""tests/support/thinned.py: which cases of a sweep `make test` runs."""

import os
import random
import re
import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
from thinned import IN_CI, asked_for, cover, listed, said, thinned

ROOT = Path(__file__).resolve().parents[1]


def test_every_value_of_every_parameter_is_met():
    draw = random.Random(1)
    for _ in range(40):
        sizes = [draw.randint(1, 6) for _ in range(draw.randint(1, 3))]
        cases = [dict(zip("abc", map(str, one))) for one in product(*map(range, sizes))]
        cases = draw.sample(cases, draw.randint(1, len(cases)))
        chosen = cover(cases)
        values = {value for case in cases for value in case.items()}
        assert {value for i in chosen for value in cases[i].items()} == values
        assert chosen == sorted(set(chosen)) == cover(cases)


def test_of_a_full_product_as_many_as_the_longest_parameter():
    cases = [{"a": a, "b": b} for a in "abcdefg" for b in "abcd"]
    chosen = cover(cases)
    assert len(chosen) == 7
    turns = Counter(cases[i]["b"] for i in chosen)
    assert sorted(turns.values()) == [1, 2, 2, 2], "those that were met take turns"


@pytest.mark.parametrize(("most", "chosen"), [(3, [0, 4, 9]), (1, [0]), (2, [0, 9]), (20, list(range(10)))])  # fmt: skip
def test_of_values_that_are_alike_so_many(most, chosen):
    assert cover([{"a": str(a)} for a in range(10)], most) == chosen


def items(function, count, **marks):
    """Cases of one test function."""
    made = {name: SimpleNamespace(args=args) for name, args in marks.items()}
    return [Case(f"{function}[{i}]", made, SimpleNamespace(params={"n": i})) for i in range(count)]


class Case:
    def __init__(self, nodeid, marks, callspec):
        self.nodeid, self.marks, self.callspec = nodeid, marks, callspec

    def get_closest_marker(self, name):
        return self.marks.get(name)


def test_what_is_not_marked_runs_and_what_is_full_does_not():
    plain, sweep, full = items("plain", 4), items("sweep", 5, sweep=(2,)), items("full", 1, full=())
    run, left = thinned([*plain, *sweep, *full])
    assert run == [*plain, sweep[0], sweep[4]] and left == [*sweep[1:4], *full]


def test_what_takes_long_runs_in_ci():
    plain, long, many = items("a.py::plain", 2), items("b.py::long", 3), items("a.py::many", 5)
    names = listed("# of these\n\nb.py\na.py::many 2\na.py::typed[ls -l]\n")
    assert names == {"b.py": 0, "a.py::many": 2, "a.py::typed[ls -l]": 0}
    everything = [*plain, *long, *many]
    assert thinned(everything) == (everything, [])
    run, left = thinned(everything, names)
    assert run == [*plain, many[0], many[4]] and left == [*long, *many[1:4]]
    assert thinned(everything, {"b.py::long[1]": 0})[1] == [long[1]]
    for name in (
        "a.py::typed[pip install 'x @ git+y']",
        "a.py::typed",
    ):  # an @ begins no group there
        for group in ("", "@a.py"):
            typed = Case(f"a.py::typed[pip install 'x @ git+y']{group}", {}, None)
            assert thinned([typed], {name: 0}) == ([], [typed])


def test_what_is_named_is_there():
    """A test that was renamed would run everywhere again, and nobody would know why."""
    names = listed(IN_CI.read_text(encoding="utf-8"))
    assert names
    for name in names:
        file, _, function = name.partition("[")[0].partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert not function or f"def {function}(" in text, name


def test_who_names_tests_has_all_of_them():
    assert not asked_for([str(ROOT / "tests")], "")  # as testpaths names it
    assert asked_for([str(ROOT / "tests")], "actionlint")
    assert asked_for(["tests/site"], "") and asked_for(["tests/test_walls.py::test_x"], "")
    env = {name: value for name, value in os.environ.items() if name != "CI"}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0"]
    done = subprocess.run(
        [*command, "tests/test_workflows.py"], cwd=ROOT, capture_output=True, text=True, env=env
    )
    assert "test_workflows.py::test_actionlint_can_fail" in done.stdout, done.stdout[-900:]


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(3))
@pytest.mark.parametrize("second", [[1], [2], "ab", 4.5])
def test_a_sweep_of_this_file(first, second, request):
    """Of its twelve cases four run; see the next test."""
    assert first is not None and second is not None


def test_pytest_hands_over_the_values(request):
    """As this run has collected the sweep above."""
    ran = [one for one in request.session.items if "test_a_sweep_of_this_file" in one.nodeid]
    values = {(name, repr(v)) for one in ran for name, v in one.callspec.params.items()}
    assert len(values) == 3 + 4, "every value is met"
    assert len(ran) == (12 if request.config.getoption("--full") else 4)


def test_a_sweep_without_parameters_is_refused():
    (one,) = items("a.py::test_x", 1, sweep=())
    del one.callspec
    with pytest.raises(pytest.UsageError, match="a.py::test_x.* no parameters"):
        thinned([one])


def test_a_run_says_how_many_of_how_many():
    assert said(0, 5) == []
    assert said(3, 7) == [
        "7 of 10 tests: the other 3 take long or are of sweeps, and run in `make test-full`"
    ]


def test_the_whole_is_run_where_there_is_an_hour():
    """`make test-full` differs from `make test` by --full alone; CI chooses by the minutes that it has."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipes = dict(re.findall(r"^(test(?:-full)?):\n\t(.*)$", makefile, re.M))
    assert recipes["test-full"].replace("--full ", "") == recipes["test"] != recipes["test-full"]
    run = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert re.search(r"CUDATUT_CI_MINUTES:-0\} >= 60.*exec make test-full", run)
    assert run.endswith("\nexec make test\n")
