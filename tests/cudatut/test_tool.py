"""`ct.size`: full size for readers, small under a tool, and what counters need under a profiler."""

import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

from cudatut import tool
from cudatut.gpu import bench, isolation, limits, memory


@pytest.mark.parametrize(
    ("running", "small_only", "with_profiled"),
    [("", 1000, 1000), ("memcheck", 10, 10), ("racecheck", 10, 10), ("ncu", 10, 500)],
)
def test_size_follows_the_tool(monkeypatch, running, small_only, with_profiled):
    monkeypatch.setenv("CUDATUT_TOOL", running)
    assert tool.size(1000, 10) == small_only
    assert tool.size(1000, 10, profiled=500) == with_profiled


@pytest.mark.parametrize("watched", [None, "racecheck", "ncu"])
def test_limits_are_measured_on_little_while_a_tool_watches(monkeypatch, watched):
    """On a gigabyte, instrumented, they kept the GPU from all other examples for minutes."""
    if watched:
        monkeypatch.setenv("CUDATUT_TOOL", watched)
    else:
        monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    gpu = SimpleNamespace(memory_bytes=80 << 30, l2_bytes=50 << 20, sm_count=132)
    launches, longest = [], []

    def words(count):
        longest.append(4 * count)
        return np.zeros(16, "uint32")

    def timed(launch, *flushes):
        launch()
        return 100.0

    for module in (limits, bench):
        monkeypatch.setattr(module, "device", lambda: gpu)
    monkeypatch.setattr(limits, "random_words", words)
    monkeypatch.setattr(limits, "empty", lambda count, dtype: np.zeros(1, dtype))
    monkeypatch.setattr(limits, "probe", lambda name: lambda *args, **how: launches.append(name))
    monkeypatch.setattr(bench, "time_once", timed)
    monkeypatch.setattr(bench, "time_once_bare", timed)
    monkeypatch.setattr(memory, "empty", lambda count, dtype: np.zeros(1, dtype))
    assert limits.bandwidth.__wrapped__() > 0
    assert limits.fma.__wrapped__() > 0
    bench._flusher.__wrapped__()()
    if watched:
        assert sorted(launches) == ["copy_probe", "fma_probe", "read_probe", "read_probe"]
        assert max(longest) <= 1 << 20
    else:
        assert len(launches) == 3 * 16 + 1
        assert longest == [1 << 30, 1 << 28]


def test_a_child_has_more_time_while_others_share_the_gpu(monkeypatch):
    limits = []

    def run(command, timeout, **kwargs):
        limits.append(timeout)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(isolation.subprocess, "run", run)
    for running in ("", "memcheck"):
        monkeypatch.setenv("CUDATUT_TOOL", running)
        isolation.isolated("pass", timeout_s=10)
    assert limits == [10, 40]
