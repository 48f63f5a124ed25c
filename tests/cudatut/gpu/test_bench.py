"""Benchmarks: which runs count, and what is compared with what."""

from types import SimpleNamespace

import pytest

from cudatut.gpu import bench


@pytest.mark.parametrize(
    ("host_us", "flushes", "runs"),
    [
        (0, 1, [1]),
        (30_000, 1, [1, 4]),  # the host was held up: once more, behind more flushes
        (700_000, 1, [1, 20]),  # and behind no more than 20
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

    monkeypatch.setattr(bench, "time", SimpleNamespace(perf_counter=lambda: clock))
    monkeypatch.setattr(bench, "time_once", timed)
    monkeypatch.setattr(bench, "_flush_us", lambda: 20_000.0)
    took = bench.time_hidden(launch, flushes)
    assert seen == runs
    assert took == 100 / runs[-1]


def test_a_long_run_is_not_repeated(monkeypatch):
    """It compiled, or waits for the host by itself: more flushes would not change it."""
    calls, clock = [], 0.0

    def launch():
        nonlocal clock
        clock += 0.03
        calls.append(clock)

    monkeypatch.setattr(bench, "time", SimpleNamespace(perf_counter=lambda: clock))
    monkeypatch.setattr(bench, "time_once", lambda launch, flushes=1: launch() or 2e4)
    monkeypatch.setattr(bench, "_flush_us", lambda: 20_000.0)
    assert bench.time_hidden(launch) == 2e4
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
