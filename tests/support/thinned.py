"""Sweeps: of many cases of one kind `make test` runs a few, and `make test-full` all.

A test that carries `@pytest.mark.sweep` has more cases than a change needs to meet each time. Without `--full` as few of them run
as still meet every value of every parameter; `@pytest.mark.sweep(3)` says that its values are alike, and that three cases do.
A test that carries `@pytest.mark.full` runs with `--full` only.

in_ci.txt names what takes long, and of which something quicker says nearly as much to whoever has just changed a file: it runs in CI
($CI), with `--full`, and where it is named on the command line. A number behind a name is how many of its cases run everywhere.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest


def cover(cases: Sequence[dict[str, str]], most: int | None = None) -> list[int]:
    """The places of cases that meet every value of every parameter, greedily; of these `most` at most, the first and the last among them.

    cases: of each the values of its parameters, in words.
    """
    missing = {value for case in cases for value in case.items()}
    met: Counter[tuple[str, str]] = Counter()
    chosen: list[int] = []

    def worth(i: int) -> tuple[int, int, int]:
        """The values that it adds; then those that were met least, so that they take turns; then the first."""
        values = cases[i].items()
        return len(missing & set(values)), -sum(met[value] for value in values), -i

    while missing:
        best = max(range(len(cases)), key=worth)
        missing -= set(cases[best].items())
        met.update(cases[best].items())
        chosen.append(best)
    chosen.sort()
    if most is not None and len(chosen) > most:
        last = len(chosen) - 1
        chosen = [chosen[round(i * last / max(1, most - 1))] for i in range(most)]
    return chosen


TESTS = Path(__file__).resolve().parents[1]
IN_CI = TESTS / "support" / "in_ci.txt"


def listed(text: str) -> dict[str, int]:
    """Of what in_ci.txt names, the beginnings of names of tests, how many cases run everywhere."""
    names = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, count = line.rpartition(" ")
            names.update({name: int(count)} if count.isdigit() else {line: 0})
    return names


def asked_for(paths: Sequence[str], keyword: str) -> bool:
    """Whether somebody has named tests, by their paths or by -k: they get all of them that no sweep leaves out."""
    return bool(keyword) or [*map(os.path.abspath, paths)] != [str(TESTS)]


def _named(nodeid: str, names: Mapping[str, int]) -> str | None:
    """The name that stands for a test: its file, its function, or itself."""
    function = nodeid.partition("[")[0].partition("@")[0]
    # Behind the last @ stands its group, where pytest-xdist has one.
    tests = (nodeid, nodeid.rpartition("@")[0], function, function.partition("::")[0])
    return next((one for one in tests if one in names), None)


def thinned(
    items: Sequence[pytest.Item], names: Mapping[str, int] = MappingProxyType({})
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests that run without `--full`, in their order, and those that it adds. Raises pytest.UsageError where a mark is wrong.

    names: what is left to CI, as `listed` gives it.
    """
    sweeps: dict[str, tuple[Sequence[Any], list[pytest.Item]]] = {}
    added = set()
    for item in items:
        name = _named(item.nodeid, names)
        if item.get_closest_marker("full") or (name and not names[name]):
            added.add(item)
        elif name:
            sweeps.setdefault(name, ([names[name]], []))[1].append(item)
        elif mark := item.get_closest_marker("sweep"):
            sweeps.setdefault(item.nodeid.partition("[")[0], (mark.args, []))[1].append(item)
    for name, (most, cases) in sweeps.items():
        # Only a test with parameters has one, and its `indices` count the cases, not the values.
        specs: list[Any] = [getattr(case, "callspec", None) for case in cases]
        if None in specs:
            raise pytest.UsageError(f"{name} is marked as a sweep, and has no parameters")
        values = [{k: repr(v) for k, v in spec.params.items()} for spec in specs]
        kept = cover(values, *most)
        added |= set(cases) - {cases[i] for i in kept}
    return [one for one in items if one not in added], [one for one in items if one in added]


def said(left: int, ran: int) -> list[str]:
    """What a run says of itself at its end, if it left out any test."""
    if not left:
        return []
    whole = ran + left
    return [
        f"{ran} of {whole} tests: the other {left} take long or are of sweeps, and run in `make test-full`"
    ]
