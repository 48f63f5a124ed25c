"""What a run of the tests costs in processor seconds, which other work on the machine disturbs less than its duration.

Every run ends with a line that says the sum, and what the tests cost that carry a chapter in their name: one more chapter shall add at
most CHAPTER seconds. Files that do something larger for each chapter have a budget of their own in OWN, and a line of their own. `--costs` adds the files, the chapters and the tests that cost most; the first test
of a process has what collecting all of them costs.
"""

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
import yaml

CHAPTER = 3.0  # seconds
# Seconds for each chapter in files where a chapter is a whole program that nvcc compiles and links, kernels and host code.
OWN = {"tests/cudatut/test_alone.py": 10.0, "tests/gpu/test_cpp.py": 10.0}
MOST = 12  # files and chapters that --costs shows, and five times as many tests
ROOT = Path(__file__).resolve().parents[2]


def spent() -> float:
    """Processor seconds of this process, and of those that it has started and that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def chapters(contents: Path = ROOT / "docs" / "contents.yml") -> list[str]:
    """Such as "start/hello"."""
    parts = yaml.safe_load(contents.read_text(encoding="utf-8"))["parts"]
    return [f"{part['id']}/{one['id']}" for part in parts for one in part["chapters"]]


def chapter_of(test: str, known: Sequence[str]) -> str | None:
    """The chapter that a test's name names, by itself, an example of it, or a kernel: the longest that fits."""
    return max(_naming(tuple(known)).findall(test), key=len, default=None)


@cache
def _naming(known: tuple[str, ...]) -> re.Pattern[str]:
    # At a place the first that fits is taken: the longest has to stand first.
    any_of_them = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
    return re.compile(rf"\b(?:{any_of_them})(?![a-z0-9])")


class Costs:
    """A plugin of pytest: notes what each test costs, its fixtures included, and says the sums."""

    def __init__(self, every: bool) -> None:
        self.every, self.since = every, spent()
        self.tests: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo):
        report = yield
        if report.when == "teardown":  # everything since the last test's end
            now = spent()
            report.user_properties.append(("processor seconds", now - self.since))
            self.since = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """In the process that reports, which is another one than the test's under pytest-xdist."""
        for name, value in report.user_properties:
            ours = report.when == "teardown" and name == "processor seconds"
            if ours and isinstance(value, float):
                self.tests[report.nodeid] = value

    def pytest_terminal_summary(self, terminalreporter) -> None:
        for line in said(self.tests, chapters(), self.every):
            terminalreporter.write_line(line)


def said(tests: dict[str, float], known: list[str], every: bool) -> list[str]:
    """The lines at the end of a run. tests: seconds by the names of the tests."""
    files: dict[str, float] = defaultdict(float)
    of_chapters: dict[str, float] = defaultdict(float)
    apart: dict[str, dict[str, float]] = {name: defaultdict(float) for name in OWN}
    for name, seconds in tests.items():
        file = name.partition("::")[0]
        files[file] += seconds
        if chapter := chapter_of(name, known):
            apart.get(file, of_chapters)[chapter] += seconds
    if not tests:
        return []
    lines = [f"{sum(tests.values()):.0f} processor seconds; {_each(of_chapters, CHAPTER)}"]
    lines += [f"{name}: {_each(apart[name], most)}" for name, most in OWN.items() if apart[name]]
    if every:
        for counted, most in ((files, MOST), (of_chapters, MOST), (tests, 5 * MOST)):
            costly = sorted(counted.items(), key=lambda one: one[1], reverse=True)[:most]
            lines += [f"{seconds:8.1f} s  {name}" for name, seconds in costly]
    return lines


def _each(of_chapters: dict[str, float], most: float) -> str:
    """What a chapter costs on average, and whether that is more than it may."""
    mean = sum(of_chapters.values()) / max(1, len(of_chapters))
    over = "" if mean <= most else f": more than the {most:g} s that one more may cost"
    return f"{mean:.1f} for each of {len(of_chapters)} chapters{over}"
