"""Benchmarks: which runs count, and what is compared with what."""

import sys
from types import SimpleNamespace

import pytest

from cudatut.gpu import bench, timing


@pytest.mark.parametrize(
    ("host_us", "flushes", "runs"),
    [
        (0, 1, [1]),
        (30_000, 1, [1, 4]),  # the host was held up: once more, behind more flushes
        (700_000, 1, [1, 64]),  # and behind no more than 64
        (30_000, 60, [60]),
    ],
)
def test_a_run_counts_only_where_the_host_was_in_time(monkeypatch, host_us, flushes, runs):
    seen = []

    def timed(launch, flushes=1):
        launch()
        seen.append(flushes)
        return 100.0 / flushes

    clock = 0.0

    def launch():
        nonlocal clock
        clock += host_us / 1e6

    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: clock))
    monkeypatch.setattr(timing, "time_once", timed)
    monkeypatch.setattr(timing, "_flush_us", lambda: 20_000.0)
    took = timing.time_hidden(launch, flushes)
    assert seen == runs
    assert took == 100 / runs[-1]


def test_a_long_run_is_not_repeated(monkeypatch):
    """It compiled, or waits for the host by itself: more flushes would not change it."""
    calls, clock = [], 0.0

    def launch():
        nonlocal clock
        clock += 0.03
        calls.append(clock)

    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: clock))
    monkeypatch.setattr(timing, "time_once", lambda launch, flushes=1: launch() or 2e4)
    monkeypatch.setattr(timing, "_flush_us", lambda: 20_000.0)
    assert timing.time_hidden(launch) == 2e4
    assert len(calls) == 1


def test_a_ratio_to_the_vendor_compares_rates_not_times():
    class Vendor:
        vendor = True

    runs = {"whole": object(), "half": object(), "vendor": Vendor()}
    times = {"whole": [20.0], "half": [10.0], "vendor": [10.0]}
    work = {"whole": 2000, "half": 1000, "vendor": 1000}
    equal = bench._result("x", runs, times, work, None, 1, None)
    assert [row.ratio_to_vendor for row in equal.rows] == [1.0, 1.0, 1.0]
    untold = bench._result("x", runs, times, None, None, 1, None)
    assert [row.ratio_to_vendor for row in untold.rows] == [0.5, 1.0, 1.0]


def test_a_rate_beyond_that_of_fmas_has_no_limit():
    """Tensor cores computed it; a rate of bytes keeps its limit, and FMAs keep theirs."""
    runs, times = (
        {"FMAs": object(), "tensor cores": object()},
        {"FMAs": [40.0], "tensor cores": [2.0]},
    )
    beyond = bench._result("x", runs, times, None, 10**9, 1, 60.0)
    assert beyond.peak is None and [row.of_peak for row in beyond.rows] == [None, None]
    alone = bench._result("x", {"FMAs": object()}, times, None, 10**9, 1, 60.0)
    assert alone.peak == 60 and alone.rows[0].of_peak == pytest.approx(25 / 60)
    moved = bench._result("x", runs, times, 10**6, None, 1, 60.0)
    assert moved.peak == 60 and moved.rows[1].of_peak == pytest.approx(500 / 60)


def test_a_run_is_timed_after_a_flush_between_two_events(monkeypatch):
    said = []

    class Event:
        def record(self):
            said.append("event")

        def synchronize(self):
            said.append("wait")

        def time_till(self, other):
            return 0.25  # ms

    driver = SimpleNamespace(Event=Event)
    monkeypatch.setitem(sys.modules, "pycuda", SimpleNamespace(driver=driver))
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    monkeypatch.setattr(timing, "flush_l2", lambda: said.append("flush"))
    launch = lambda: said.append("launch")  # noqa: E731
    assert timing.time_once(launch) == 250.0
    assert said == ["flush", "event", "launch", "event", "wait"]
    said.clear()
    timing.time_once(launch, flushes=3)
    assert said[:4] == ["flush", "flush", "flush", "event"]
    said.clear()
    assert timing.time_once_bare(launch) == 250.0
    assert said == ["event", "launch", "event", "wait"]


def test_contestants_take_turns_and_none_is_always_first(monkeypatch):
    ran = []
    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    monkeypatch.setattr(bench, "activate", lambda: None)
    monkeypatch.setattr(bench, "flushes_for", lambda launch: 1)
    monkeypatch.setattr(bench, "time_hidden", lambda launch, flushes: launch() or 1e4)
    monkeypatch.setattr(bench, "show", lambda result: None)
    runs = {name: (lambda name=name: ran.append(name)) for name in "abc"}
    result = bench.bench(runs, rounds=6)
    turns = ["".join(ran[3 + 3 * i : 6 + 3 * i]) for i in range(6)]  # after one estimate of each
    assert ran[:3] == ["a", "b", "c"] and turns == ["abc", "bca", "cab"] * 2
    assert [row.name for row in result.rows] == ["a", "b", "c"] and result.rounds == 6


def test_slow_products_on_tensor_cores_need_no_limit_of_fmas(monkeypatch):
    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    monkeypatch.setattr(bench, "activate", lambda: None)
    monkeypatch.setattr(bench, "flushes_for", lambda launch: 1)
    monkeypatch.setattr(bench, "time_hidden", lambda launch, flushes: 40.0)
    monkeypatch.setattr(bench, "show", lambda result: None)
    monkeypatch.setattr(bench.limits, "fma", lambda: 60.0)
    runs = {"product": lambda: None}
    assert bench.bench(runs, flops=10**9, rounds=5).peak == 60
    without = bench.bench(runs, flops=10**9, rounds=5, limit=False)
    assert without.peak is None and without.rows[0].of_peak is None
