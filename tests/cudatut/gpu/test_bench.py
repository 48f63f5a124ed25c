"""Benchmarks: how one run is timed, who runs when, and what is compared with what."""

import itertools
import random
import statistics
import sys
from types import SimpleNamespace

import pytest

from cudatut.errors import BenchError
from cudatut.gpu import bench, timing
from cudatut.gpu.timing import Run
from cudatut.pairs import again


class Gpu:
    """A GPU that runs what is enqueued at once, and notes it. `us`: what a launch takes; `holds`: whether the gate does."""

    def __init__(self, us=250.0, holds=True):
        self.said, self.us, self.holds, self.clock = [], us, holds, 0.0
        self.driver = SimpleNamespace(Event=lambda: self, Context=self)

    def record(self):
        self.said.append("event")

    def synchronize(self):
        self.said.append("wait")

    def time_till(self, other):
        return self.us / 1e3

    def shut(self):
        self.said.append("shut")

    def open(self):
        self.said.append("open")

    def held(self):
        return self.holds

    def before(self):
        self.said.append("before")

    def after(self):
        self.said.append("after")

    def mhz(self):
        return 1500.0

    def perf_counter(self):
        return self.clock

    def launch(self):
        self.said.append("launch")
        self.clock += 60e-6


@pytest.fixture
def gpu(monkeypatch):
    gpu = Gpu()
    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    monkeypatch.setitem(sys.modules, "pycuda", SimpleNamespace(driver=gpu.driver))
    monkeypatch.setitem(sys.modules, "pycuda.driver", gpu.driver)
    monkeypatch.setattr(timing, "flush_l2", lambda: gpu.said.append("flush"))
    monkeypatch.setattr(timing, "gate", lambda: gpu)
    monkeypatch.setattr(timing, "stamps", lambda: gpu)
    monkeypatch.setattr(timing, "time", gpu)
    return gpu


# --- one run ---------------------------------------------------------------------------------------


def test_a_run_stands_between_two_events_behind_a_flush_and_a_gate(gpu):
    run = timing.timed(gpu.launch)
    assert gpu.said == ["flush", "shut", "event", "launch", "event", "open", "wait"]
    assert run == Run(250.0, pytest.approx(60), None, hidden=True)


def test_the_clock_is_read_right_before_and_right_after(gpu):
    run = timing.timed(gpu.launch, clock=True)
    assert gpu.said[1:-2] == ["shut", "before", "event", "launch", "event", "after"]
    assert run.mhz == 1500


def test_a_launch_that_waits_for_the_gpu_is_timed_without_the_gate(gpu):
    gpu.holds = False
    run = timing.timed(gpu.launch)
    assert gpu.said[-5:] == ["flush", "event", "launch", "event", "wait"]
    assert gpu.said.count("launch") == 3 and not run.hidden


def test_a_launch_that_waits_once_is_repeated_behind_the_gate(gpu):
    """The first launch of a kernel loads its code, for which it waits."""
    held = iter([False, True])
    gpu.held = lambda: next(held)
    run = timing.timed(gpu.launch)
    assert run.hidden and gpu.said.count("launch") == gpu.said.count("shut") == 2


def test_the_gate_opens_where_a_launch_raises(gpu):
    def launch():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        timing.timed(launch)
    assert gpu.said == ["flush", "shut", "event", "open"]


def test_a_run_by_hand(gpu):
    assert timing.time_once(gpu.launch) == 250.0
    assert gpu.said == ["flush", "event", "launch", "event", "wait"]
    gpu.said.clear()
    timing.time_once(gpu.launch, flushes=3)
    assert gpu.said[:4] == ["flush", "flush", "flush", "event"]
    gpu.said.clear()
    assert timing.time_once_bare(gpu.launch) == 250.0
    assert gpu.said == ["event", "launch", "event", "wait"]


# --- what is compared ------------------------------------------------------------------------------


def runs_of(times):
    return {name: [Run(us, 1.0) for us in some] for name, some in times.items()}


def test_a_ratio_to_the_vendor_compares_rates_not_times():
    class Vendor:
        vendor = True

    runs = {"whole": object(), "half": object(), "vendor": Vendor()}
    times = runs_of({"whole": [20.0], "half": [10.0], "vendor": [10.0]})
    work = {"whole": 2000, "half": 1000, "vendor": 1000}
    equal = bench._result("x", runs, times, work, None, 1, None)
    assert [row.ratio_to_vendor for row in equal.rows] == [1.0, 1.0, 1.0]
    untold = bench._result("x", runs, times, None, None, 1, None)
    assert [row.ratio_to_vendor for row in untold.rows] == [0.5, 1.0, 1.0]


def test_a_rate_beyond_that_of_fmas_has_no_limit():
    """Tensor cores computed it; a rate of bytes keeps its limit, and FMAs keep theirs."""
    runs, times = (
        {"FMAs": object(), "tensor cores": object()},
        runs_of({"FMAs": [40.0], "tensor cores": [2.0]}),
    )
    beyond = bench._result("x", runs, times, None, 10**9, 1, 60.0)
    assert beyond.peak is None and [row.of_peak for row in beyond.rows] == [None, None]
    alone = bench._result("x", {"FMAs": object()}, times, None, 10**9, 1, 60.0)
    assert alone.peak == 60 and alone.rows[0].of_peak == pytest.approx(25 / 60)
    moved = bench._result("x", runs, times, 10**6, None, 1, 60.0)
    assert moved.peak == 60 and moved.rows[1].of_peak == pytest.approx(500 / 60)


class Vendor:
    """A rival whose launches are noted."""

    vendor = True

    def __init__(self, launch):
        self.launch = launch

    def __call__(self):
        self.launch()


def test_a_ratio_is_the_median_of_those_within_turns_with_its_interval(monkeypatch):
    """The GPU grows slower and slower: medians of each alone would say little, pairs say 5 %."""
    drift = [1 + 0.5 * i / 20 for i in range(20)]
    times = {"ours": [100 * d for d in drift], "cuBLAS": [105 * d for d in drift]}
    times["ours"][3] *= 7  # disturbed
    runs = {"ours": object(), "cuBLAS": Vendor(None)}
    found = bench._result("x", runs, runs_of(times), None, 10**9, 20, None)
    ours, theirs = found.rows
    assert ours.ratio_to_vendor == pytest.approx(1.05, rel=1e-4)
    beyond = 1.05 * again(ours.median_us, held_back=False)
    assert ours.ratio_high - 1.05 == pytest.approx(beyond, rel=0.01)
    assert 1.05 - ours.ratio_low == pytest.approx(beyond, rel=0.01)
    assert theirs.ratio_to_vendor == theirs.ratio_low == theirs.ratio_high == 1
    assert ours.runs == pytest.approx(times["ours"], rel=1e-4)
    assert ours.median_us == statistics.median(ours.runs)
    assert found.goal("ours", "cuBLAS", 1.04).verdict == "reached"
    assert found.goal("ours", "cuBLAS", 1.06).verdict == "missed"


def test_a_time_of_zero_is_no_measurement():
    with pytest.raises(BenchError, match="'a' took 0.0 us"):
        bench._result("x", {"a": object()}, runs_of({"a": [0.0, 0.0]}), None, None, 2, None)


def test_the_clock_and_the_cycles_of_long_runs_are_told():
    times = {"a": [Run(1000.0, 5.0, mhz) for mhz in (1400.0, 1500.0, 1600.0)]}
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setattr(bench, "device", lambda: SimpleNamespace(clock_khz=1_980_000))
        found = bench._result("x", {"a": object()}, times, None, None, 3, None)
    (row,) = found.rows
    assert (row.mhz, row.cycles, found.most_mhz) == (1500, 1_500_000, 1980)
    assert found.held_back() and "MHz" in found.text() and "1.5" in found.text()


# --- who runs when ---------------------------------------------------------------------------------


class Contest:
    """Contestants on a GPU that only notes who ran; us: what each takes."""

    def __init__(self, monkeypatch, mhz=1980.0, **us):
        self.ran, self.us, self.named, self.gated, self.mhz = [], us, [], [], mhz
        self.runs = {name: (lambda name=name: self.ran.append(name)) for name in us}
        monkeypatch.delenv("CUDATUT_TOOL", raising=False)
        monkeypatch.setattr(bench, "activate", lambda: None)
        monkeypatch.setattr(bench, "device", lambda: SimpleNamespace(clock_khz=1_980_000))
        monkeypatch.setattr(bench, "timed", self.timed)
        monkeypatch.setattr(bench, "show", lambda result: None)
        monkeypatch.setattr(bench, "_SETTLE_S", 0.0)
        monkeypatch.setattr(bench.rivals, "name_kernels", self.name_kernels)

    def timed(self, launch, gated=True, clock=False):
        launch()
        name = self.ran[-1]
        self.gated.append((name, gated, clock))
        waits = name == "waits"
        return Run(self.us[name], 5.0, self.mhz if clock else None, hidden=gated and not waits)

    def name_kernels(self, name, launch):
        assert launch is self.runs[name]
        self.named.append((name, len(self.ran)))
        return ["its_kernel"]

    def rounds(self):
        """Who ran in which round, after two runs of each to warm up."""
        count = len(self.us)
        after = self.ran[2 * count :]
        return [tuple(after[i : i + count]) for i in range(0, len(after), count)]


def test_contestants_take_turns_in_random_order(monkeypatch):
    contest = Contest(monkeypatch, a=1e4, b=1e4, c=1e4)
    result = bench.bench(contest.runs, rounds=30)
    rounds = contest.rounds()
    assert len(rounds) == 30 and all(sorted(turn) == ["a", "b", "c"] for turn in rounds)
    assert len(set(rounds)) == 6  # all orders that there are
    assert [row.name for row in result.rows] == ["a", "b", "c"] and result.rounds == 30
    for name in "abc":  # nobody always goes first, or follows the same one
        assert 3 <= sum(turn[0] == name for turn in rounds) <= 20


def test_fast_contestants_take_more_turns_than_slow_ones_and_still_make_pairs(monkeypatch):
    contest = Contest(monkeypatch, fast=10.0, slow=50_000.0)
    result = bench.bench(contest.runs)
    fast, slow = (len(result[name].runs) for name in ("fast", "slow"))
    assert slow == result.rounds == 7 and fast == 8 * slow
    assert result.ratio("fast", "slow").pairs == slow
    # Each turn of the slow one has one of the fast one beside it.
    assert contest.ran[4:].count("fast") == fast


def test_a_contestant_that_waits_for_the_gpu_is_not_gated_again(monkeypatch):
    contest = Contest(monkeypatch, waits=100.0, other=100.0)
    result = bench.bench(contest.runs, rounds=6)
    first, *others = [gated for name, gated, _ in contest.gated if name == "waits"]
    assert first and others and not any(others)
    assert all(gated for name, gated, _ in contest.gated if name == "other")
    assert result["waits"].waits and result["other"].waits is None


def test_the_clock_is_read_in_long_runs_alone(monkeypatch):
    contest = Contest(monkeypatch, short=19.0, long=20.0)
    result = bench.bench(contest.runs, rounds=6)
    assert result["short"].mhz is None and result["long"].mhz == 1980
    assert all(clock == (name == "long") for name, _, clock in contest.gated[4:])


@pytest.mark.parametrize(("mhz", "seconds"), [(1980.0, 0.05), (1500.0, 1.0)])
def test_a_gpu_at_its_limit_settles_first(monkeypatch, mhz, seconds):
    contest = Contest(monkeypatch, mhz=mhz, a=100.0, b=100.0)
    first = {name: Run(100.0, 5.0) for name in contest.runs}
    clock = itertools.count(step=0.01)
    monkeypatch.setattr(bench, "_SETTLE_S", 1.0)
    monkeypatch.setattr(bench, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    bench._settle(contest.runs, first)
    # Two looks at the clock were for the beginning and the end.
    assert len(contest.ran) / 2 == pytest.approx(100 * seconds, abs=2)


def test_all_contestants_have_to_keep_their_clock(monkeypatch):
    """One that lowers it is at its limit, whatever the clock of the others is."""
    clocks, seen = itertools.cycle((1980.0, 1500.0)), itertools.count(step=0.01)
    contest = Contest(monkeypatch, quick=100.0, hot=100.0)
    monkeypatch.setattr(bench, "_SETTLE_S", 1.0)
    monkeypatch.setattr(
        bench, "_again", lambda launch, first: launch() or Run(100.0, 5.0, next(clocks))
    )
    monkeypatch.setattr(bench, "time", SimpleNamespace(perf_counter=lambda: next(seen)))
    bench._settle(contest.runs, dict.fromkeys(contest.runs, Run(100.0, 5.0)))
    assert len(contest.ran) / 2 == pytest.approx(100, abs=2)


@pytest.mark.parametrize(
    ("mhz", "step", "rounds"), [(0.98 * 1980.0, 0.05, 2), (1940.0, 0.05, 19), (1940.0, 0.25, 3)]
)
def test_it_settles_for_a_second_at_most(monkeypatch, mhz, step, rounds):
    """Two percent below its highest clock it is not held back, and after a twentieth of a second it is still warming up."""
    contest = Contest(monkeypatch, mhz=mhz, a=100.0)
    clock = iter(step * n for n in range(100))
    monkeypatch.setattr(bench, "_SETTLE_S", 1.0)
    monkeypatch.setattr(bench, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    bench._settle(contest.runs, {"a": Run(100.0, 5.0)})
    assert len(contest.ran) == rounds


def test_rivals_are_named_after_all_that_is_timed(monkeypatch):
    contest = Contest(monkeypatch, ours=100.0, cuBLAS=100.0)
    contest.runs["cuBLAS"] = Vendor(contest.runs["cuBLAS"])
    result = bench.bench(contest.runs, rounds=6)
    assert contest.named == [("cuBLAS", len(contest.ran))]
    assert result["cuBLAS"].kernels == ["its_kernel"] and result["ours"].kernels is None
    assert "kernels" not in result.json()["rows"][0]


def test_rivals_that_only_take_turns_are_named_too(monkeypatch):
    """Once, for a profiler: their times go into a table of the chapter's own."""
    contest = Contest(monkeypatch, ours=100.0, cuBLAS=100.0)
    contest.runs["cuBLAS"] = Vendor(contest.runs["cuBLAS"])
    bench.take_turns(contest.runs, 3, random.Random(0))
    assert contest.named == [("cuBLAS", len(contest.ran))]


def test_turns_of_a_table_by_hand(monkeypatch):
    contest = Contest(monkeypatch, a=1.0, b=2.0, waits=3.0)
    found = bench.take_turns(contest.runs, 8, random.Random(0))
    assert found == {"a": [1.0] * 8, "b": [2.0] * 8, "waits": [3.0] * 8}
    assert [gated for name, gated, _ in contest.gated if name == "waits"] == [True] + [False] * 7
    by_hand = bench.take_turns(contest.runs, 2, random.Random(0), time=lambda run: 7.0)
    assert by_hand == {"a": [7.0] * 2, "b": [7.0] * 2, "waits": [7.0] * 2}


def test_slow_products_on_tensor_cores_need_no_limit_of_fmas(monkeypatch):
    contest = Contest(monkeypatch, product=40.0)
    monkeypatch.setattr(bench.limits, "fma", lambda: 60.0)
    assert bench.bench(contest.runs, flops=10**9, rounds=5).peak == 60
    without = bench.bench(contest.runs, flops=10**9, rounds=5, limit=False)
    assert without.peak is None and without.rows[0].of_peak is None


def test_what_a_launch_costs_the_host_is_told_where_it_is_dear(monkeypatch):
    cheap, dear = ([Run(100.0, us)] * 6 for us in (8.0, 60.0))
    runs = {"a": object(), "b": object()}
    both = bench._result("x", runs, {"a": cheap, "b": dear}, None, None, 6, None)
    assert both.dear() and "host us" in both.text()
    assert not bench._result("x", {"a": object()}, {"a": cheap}, None, None, 6, None).dear()


@pytest.mark.parametrize("bad", [0.0, float("nan"), float("inf"), -1.0])
def test_what_is_no_time_is_refused(bad):
    with pytest.raises(BenchError, match="'a' took .* us; that is no measurement"):
        bench._result("x", {"a": object()}, runs_of({"a": [bad] * 3}), None, None, 3, None)


def test_percentiles_are_those_that_they_are_called():
    times = [float(us) for us in (7, 1, 9, 3, 5, 2, 8, 4, 6)]
    (row,) = bench._result("x", {"a": object()}, runs_of({"a": times}), None, None, 9, None).rows
    assert (row.p20_us, row.median_us, row.p80_us) == (2.0, 5.0, 8.0)
    (once,) = bench._result("x", {"a": object()}, runs_of({"a": [3.0]}), None, None, 1, None).rows
    assert (once.p20_us, once.median_us, once.p80_us) == (3.0, 3.0, 3.0)


def test_rates_are_work_by_time():
    """1 GB in a second is 1 GB/s, a million million operations 1 TFLOP/s; the share is that of the limit."""
    runs, times = {"a": object()}, runs_of({"a": [1e6] * 3})
    (moved,) = bench._result("x", runs, times, 3 * 10**9, None, 3, 12.0).rows
    assert (moved.value, moved.of_peak, moved.bytes, moved.flops) == (3.0, 0.25, 3 * 10**9, None)
    (computed,) = bench._result("x", runs, times, None, 3 * 10**12, 3, 12.0).rows
    assert (computed.value, computed.of_peak, computed.flops) == (3.0, 0.25, 3 * 10**12)
    (by_name,) = bench._result("x", runs, times, {"a": 2 * 10**9}, None, 3, None).rows
    assert (by_name.value, by_name.of_peak) == (2.0, None)


def test_ratios_are_to_the_fastest_of_the_vendors_rows():
    runs = {"ours": object(), "slow": Vendor(None), "quick": Vendor(None)}
    times = runs_of({"ours": [12.0] * 5, "slow": [30.0] * 5, "quick": [6.0] * 5})
    found = bench._result("x", runs, times, None, None, 5, None)
    assert [row.ratio_to_vendor for row in found.rows] == [0.5, 0.2, 1.0]


@pytest.mark.parametrize(("share", "kept"), [(1.04, True), (1.06, False), (1.5, False)])
def test_a_twentieth_beyond_the_limit_of_fmas_is_still_theirs(share, kept):
    times = runs_of({"a": [1e6] * 3})
    found = bench._result("x", {"a": object()}, times, None, int(share * 10**13), 3, 10.0)
    assert (found.peak == 10.0 and found.rows[0].of_peak == pytest.approx(share)) == kept
    assert (found.peak is None and found.rows[0].of_peak is None) == (not kept)


@pytest.mark.parametrize(("us", "rounds"), [(10.0, 100), (1e4, 40), (2e5, 5), (1e7, 5)])
def test_as_many_rounds_as_fit_but_not_fewer_than_five(monkeypatch, us, rounds):
    contest = Contest(monkeypatch, a=us)
    result = bench.bench(contest.runs)
    assert result.rounds == rounds and len(contest.rounds()) == rounds


@pytest.mark.parametrize("tool", ["memcheck", "ncu"])
def test_under_a_tool_each_candidate_runs_once(monkeypatch, tool):
    contest, shown = Contest(monkeypatch, a=1.0, b=2.0), []
    monkeypatch.setenv("CUDATUT_TOOL", tool)
    monkeypatch.setattr(bench, "show", shown.append)
    monkeypatch.setattr(bench, "time_once_bare", lambda launch: launch() or 4.0)
    result = bench.bench(contest.runs, bytes=8000, name="two")
    assert contest.ran == ["a", "b"] and not shown
    assert (result.name, result.rounds, result.peak) == ("two", 1, None)
    assert [(row.name, row.median_us, row.value) for row in result.rows] == [
        ("a", 4.0, 2.0),
        ("b", 4.0, 2.0),
    ]


def test_what_cannot_run_is_left_out_with_its_reason(monkeypatch):
    contest = Contest(monkeypatch, ours=100.0)

    class Missing:
        reason = "no CuPy"

    class Fails(Vendor):
        def __call__(self):
            raise RuntimeError("no symbol")

    monkeypatch.delenv("CUDATUT_RECORDING", raising=False)
    asked = {**contest.runs, "cuBLAS": Missing(), "CUB": Fails(None), "later": None}
    result = bench.bench(asked, rounds=5)
    assert [row.name for row in result.rows] == ["ours"]
    assert result.missing == {"cuBLAS": "no CuPy", "CUB": "its first call failed: no symbol"}
    with pytest.raises(BenchError, match="x: nothing to measure, .* missing; cuBLAS: no CuPy"):
        bench.bench({"cuBLAS": Missing()}, name="x")
    monkeypatch.setenv("CUDATUT_RECORDING", "1")
    with pytest.raises(RuntimeError, match="no symbol"):
        bench.bench(asked, rounds=5)


def test_the_unit_is_that_of_the_work():
    runs, times = {"a": object()}, runs_of({"a": [2.0] * 3})
    for work, unit, value in (
        ((8000, None), "GB/s", 4.0),
        ((None, 8 * 10**6), "TFLOP/s", 4.0),
        ((None, None), "us", None),
    ):
        found = bench._result(None, runs, times, *work, 3, None)
        assert (found.name, found.unit, found.rows[0].value) == ("benchmark", unit, value)
