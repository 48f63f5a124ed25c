"""Times of contestants that take turns, with their spread, where many contests
go into one table.

    found = spread.times({"one": run, "other": other})
    found["one"].median     # microseconds
    found["one"].middle     # from p20 to p80, in % of the median
    spread.medians({"one": run, "other": other})    # where that is enough
"""

import random
import statistics
from collections.abc import Callable
from typing import Any, NamedTuple

import cudatut as ct


class Times(NamedTuple):
    """In microseconds: the median, the 20th and the 80th percentile."""

    median: float
    p20: float
    p80: float

    @property
    def middle(self) -> float:
        """How wide the middle three fifths are, in % of the median."""
        return 100 * (self.p80 - self.p20) / self.median


def summary(times: list[float]) -> Times:
    """Of at least two times."""
    p20, *_, p80 = statistics.quantiles(times, n=5)
    return Times(statistics.median(times), p20, p80)


def times(
    runs: dict[str, Callable[[], Any] | None], rounds: int = 25
) -> dict[str, Times]:
    """Of each, in an order that is drawn anew for each round; without those
    that cannot run. Under a sanitizer or profiler each runs once, and the dict
    is empty.
    """
    able = {name: run for name, run in runs.items() if run}
    for run in able.values():  # to compile and to load
        run()
    if ct.tool.running():
        return {}
    found = ct.take_turns(able, rounds, random.Random(0))
    return {name: summary(some) for name, some in found.items()}


def medians(
    runs: dict[str, Callable[[], Any] | None], rounds: int = 25
) -> dict[str, float]:
    """The medians of `times`."""
    return {name: some.median for name, some in times(runs, rounds).items()}
