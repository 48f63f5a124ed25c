"""This GPU's limits, with everything that needs a GPU replaced."""

from types import SimpleNamespace

import numpy as np
import pytest

from cudatut.gpu import limits, timing


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

    for module in (limits, timing):
        monkeypatch.setattr(module, "device", lambda: gpu)

    def read(words, sink):
        launches.append("read_probe")

    for module in (limits, timing):
        monkeypatch.setattr(module, "random_words", words)
        monkeypatch.setattr(module, "read_once", read)
        monkeypatch.setattr(module, "empty", lambda count, dtype: np.zeros(1, dtype))
    monkeypatch.setattr(limits, "probe", lambda name: lambda *args, **how: launches.append(name))
    monkeypatch.setattr(limits, "time_once", timed)
    monkeypatch.setattr(limits, "time_once_bare", timed)
    assert limits.bandwidth.__wrapped__() > 0
    assert limits.fma.__wrapped__() > 0
    timing._flusher.__wrapped__()()
    if watched:
        assert sorted(launches) == ["copy_probe", "fma_probe", "read_probe", "read_probe"]
        assert max(longest) <= 1 << 20
    else:
        assert len(launches) == 3 * 16 + 1
        assert longest == [1 << 30, 1 << 28]
