"""`ct.size`: full size for readers, small under a tool, and what counters need under a profiler."""

import pytest

from cudatut import tool


@pytest.mark.parametrize(
    ("running", "small_only", "with_profiled"),
    [("", 1000, 1000), ("memcheck", 10, 10), ("racecheck", 10, 10), ("ncu", 10, 500)],
)
def test_size_follows_the_tool(monkeypatch, running, small_only, with_profiled):
    monkeypatch.setenv("CUDATUT_TOOL", running)
    assert tool.size(1000, 10) == small_only
    assert tool.size(1000, 10, profiled=500) == with_profiled
