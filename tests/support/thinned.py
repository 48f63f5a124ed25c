"""Sweeps: of many cases of one kind `make test` runs a few, and `make test-full` all.

A test that carries `@pytest.mark.sweep` has more cases than a change needs to meet each time. Without `--full` as few of them run
as still meet every value of every parameter; `@pytest.mark.sweep(3)` says that its values are alike, and that three cases do.
A test that carries `@pytest.mark.full` runs with `--full` only; one that carries `@pytest.mark.ci` in CI ($CI) too: what takes long, and
of which something quicker says nearly as much to whoever has just changed a file.
"""

from collections import Counter
from collections.abc import Sequence
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


def thinned(
    items: Sequence[pytest.Item], in_ci: bool = False
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests that run without `--full`, in their order, and those that it adds. Raises pytest.UsageError where a mark is wrong."""
    sweeps: dict[str, tuple[pytest.Mark, list[pytest.Item]]] = {}
    added = set()
    for item in items:
        if item.get_closest_marker("full") or (item.get_closest_marker("ci") and not in_ci):
            added.add(item)
        elif mark := item.get_closest_marker("sweep"):
            sweeps.setdefault(item.nodeid.partition("[")[0], (mark, []))[1].append(item)
    for name, (mark, cases) in sweeps.items():
        # Only a test with parameters has one, and its `indices` count the cases, not the values.
        specs: list[Any] = [getattr(case, "callspec", None) for case in cases]
        if None in specs:
            raise pytest.UsageError(f"{name} is marked as a sweep, and has no parameters")
        values = [{k: repr(v) for k, v in spec.params.items()} for spec in specs]
        kept = cover(values, *mark.args)
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
