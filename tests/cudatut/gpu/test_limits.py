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


@pytest.fixture
def clock(monkeypatch):
    """Probes that take what `clock` says, in microseconds, on a GPU with 4 SMs; and what they were given."""
    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    took, given, ran = {}, {}, []
    gpu = SimpleNamespace(memory_bytes=80 << 30, sm_count=4)

    def read(words, sink):
        ran.append("read")

    def probe(name):
        def launch(*arguments, grid, block):
            ran.append(name)
            given[name] = arguments, grid, block

        return launch

    def timed(launch):
        launch()
        return took[ran[-1]]

    monkeypatch.setattr(limits, "device", lambda: gpu)
    monkeypatch.setattr(limits, "random_words", lambda count: np.broadcast_to(np.uint32(0), count))
    monkeypatch.setattr(limits, "empty", np.zeros)
    monkeypatch.setattr(limits, "read_once", read)
    monkeypatch.setattr(limits, "probe", probe)
    monkeypatch.setattr(limits, "time_once", timed)
    took.update(given=given, gpu=gpu)
    return took


@pytest.mark.parametrize(("read", "copy"), [(500.0, 1000.0), (1000.0, 500.0)])
def test_the_bandwidth_is_that_of_the_faster_of_a_read_and_a_copy(clock, read, copy):
    """Of a copy the bytes that it reads and those that it writes count: together as many as the read's."""
    clock |= {"read": read, "copy_probe": copy}
    assert limits.bandwidth.__wrapped__() == pytest.approx((1 << 30) / 500 / 1e3)
    (source, target, vectors), grid, block = clock["given"]["copy_probe"]
    assert 2 * 16 * vectors == 1 << 30 and source.size == target.size == vectors * 4
    assert (grid, block) == (16, 512)


def test_of_a_small_memory_the_bandwidth_takes_an_eighth_in_whole_pieces(clock):
    clock |= {"read": 100.0, "copy_probe": 100.0}
    clock["gpu"].memory_bytes = (
        8 * 1024 + 8 * 31
    )  # an eighth: 1024 bytes and a piece of 32, less one byte
    assert limits.bandwidth.__wrapped__() == pytest.approx(1024 / 100 / 1e3)
    (source, target, vectors), _, _ = clock["given"]["copy_probe"]
    assert (source.size, target.size, vectors) == (128, 128, 32)


def test_the_rate_of_fmas_counts_two_operations_each(clock):
    clock["fma_probe"] = 1000.0
    found = limits.fma.__wrapped__()
    (out, factor, more, steps), grid, block = clock["given"]["fma_probe"]
    assert 0 < factor < 1 and factor + more == 1, "x * factor + more stays a usual number"
    assert (out.size, out.dtype) == (grid * block, "float32"), "each thread writes its own"
    chains = limits._FMA_CHAINS
    assert found == pytest.approx(2 * steps * chains * grid * block / 1000e-6 / 1e12)
    assert (grid, block, steps) == (32, 256, limits._FMA_STEPS)


def test_a_limit_is_the_median_of_fifteen_runs(monkeypatch):
    times = iter([*range(1, 16)])
    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    monkeypatch.setattr(limits, "time_once", lambda launch: next(times))
    launches = []
    assert limits._median_us(lambda: launches.append(1)) == 8
    assert next(times, None) is None and len(launches) == 1, "one more launch to warm up"
