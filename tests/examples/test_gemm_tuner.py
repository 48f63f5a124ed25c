"""examples/gemm/tuner.py, as far as it goes without a GPU: the space and its rules, the race, what is dropped and why."""

import random
from types import SimpleNamespace

import pytest

from cudatut.book.gemm import tuner
from cudatut.book.gemm.ladder import autotuning_space as SPACE
from cudatut.errors import CheckError, KernelCompileError
from cudatut.gpu import bench
from cudatut.results import Benchmark, Resources, Row


def test_the_space_is_pruned_rule_by_rule():
    for limits in (SPACE.H100, SPACE.RTX_3090):
        steps, left = SPACE.prune(limits)
        counts = [count for _, count in steps]
        assert [name for name, _ in steps] == ["all", *SPACE.RULES]
        assert counts == sorted(counts, reverse=True) and counts[0] == len(list(SPACE.everything()))
        assert counts[-1] == len(left) == len({tuple(SPACE.numbers(c).values()) for c in left})
        assert 50 < len(left) < 1000
    # A GPU with less shared memory keeps fewer.
    assert counts[-1] < SPACE.prune(SPACE.H100)[0][-1][1]


def test_the_default_choices_pass_the_rules_that_must_hold():
    must = ("whole warps", "whole copies", "threads", "shared memory", "registers")
    for config in SPACE.SGEMM.CONFIGS:
        if config.bm not in SPACE.RANGES["bm"]:
            continue  # a tile for few rows, which no search considers
        assert [name for name in must if not SPACE.RULES[name]([config], SPACE.H100)] == []


def config(**changes):
    numbers = {"bm": 128, "bn": 128, "bk": 16, "tm": 8, "tn": 8, "stages": 4, "blocks": 2}
    from dataclasses import replace

    return replace(SPACE.SGEMM.CONFIGS[0], **{**numbers, **changes})


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("whole warps", {"bm": 32}),  # 32 rows are half of a warp's 64
        ("whole warps", {"bm": 256, "bn": 256, "tm": 4, "tn": 4}),  # 4096 threads
        ("whole copies", {"bm": 32, "bn": 128, "tm": 4, "tn": 4, "bk": 8, "blocks": 1}),
        ("shared memory", {"bm": 256, "bn": 256, "bk": 32}),
        ("shared memory", {"bk": 32, "blocks": 3}),
        ("registers", {"tm": 16, "tn": 16}),
        ("registers", {"blocks": 3}),
        ("8 warps per SM", {"bm": 64, "bn": 64, "blocks": 3}),
        ("bytes from L2", {"bm": 32, "bn": 32}),
    ],
)
def test_what_a_rule_leaves_out(rule, changes):
    if rule == "whole copies":
        assert not SPACE.whole_copies(config(bm=64, bn=32, tm=4, tn=4, bk=8, blocks=1), SPACE.H100)
        return
    assert SPACE.RULES[rule]([config(**changes)], SPACE.H100) == []
    assert SPACE.RULES[rule]([config()], SPACE.H100) == [config()]


def test_the_register_budget():
    few = [config(bm=64, bn=128, tn=16, blocks=b) for b in (1, 2, 3, 4)]  # 64 threads: 255 for all
    assert {SPACE.register_budget(c, SPACE.H100) for c in few} == {255}
    assert [SPACE.register_budget(config(blocks=b), SPACE.H100) for b in (1, 2, 3)] == [
        255,
        128,
        80,
    ]


def test_splits_only_where_tiles_are_few():
    # 1024 tiles of 128 x 128 are 3 times 264 and 232 more, which a second block each would not fit beside.
    assert SPACE.whole_tiles(config(), 132, 4096, 4096) == (1024, 792)
    assert SPACE.splits_of(config(), SPACE.H100, 4096, 4096, 4096) == [1]
    assert SPACE.splits_of(config(), SPACE.H100, 512, 512, 4096) == [1, 16]
    assert SPACE.splits_of(config(), SPACE.H100, 512, 512, 128) == [1, 2]
    assert SPACE.splits_of(config(), SPACE.H100, 512, 512, 100) == [1]


def noisy(true, spread=0.02, seed=1):
    """Runs by name whose times scatter around what is true; and the timer for them."""
    rng = random.Random(seed)
    runs = {name: (lambda us=us: us) for name, us in true.items()}
    return runs, lambda run: run() * (1 + abs(rng.gauss(0, spread)))


def test_a_race_finds_the_fastest_and_spends_its_rounds_on_the_best():
    true = {f"c{i}": 100 + i for i in range(64)}
    runs, time = noisy(true)
    heats = tuner.race(runs, rounds=(2, 5, 12, 30), keep=0.25, at_least=4, time=time)
    assert [len(heat.times) for heat in heats] == [64, 16, 4, 4]
    assert [heat.rounds for heat in heats] == [2, 5, 12, 30]
    assert all(len(times) == heat.rounds for heat in heats for times in heat.times.values())
    assert heats[-1].kept[0] in ("c0", "c1")
    spent = sum(len(heat.times) * heat.rounds for heat in heats)
    assert spent < 64 * 30 / 4  # of what as many rounds for all would take


def test_in_a_round_each_runs_once_in_an_order_drawn_anew():
    ran = []
    runs = {name: (lambda name=name: ran.append(name)) for name in "abcdef"}
    bench.take_turns(runs, 20, random.Random(0), time=lambda run: run() or 1.0)
    rounds = [tuple(ran[i : i + 6]) for i in range(0, 120, 6)]
    assert all(sorted(one) == list("abcdef") for one in rounds)
    assert len(set(rounds)) > 10 and len({one[0] for one in rounds}) == 6


def test_a_race_of_few_and_of_none():
    runs, time = noisy({"a": 2.0, "b": 1.0})
    assert tuner.race(runs, rounds=(1, 2), time=time)[-1].kept == ["b", "a"]
    with pytest.raises(tuner.TuningError, match="contestants"):
        tuner.race({})


# --- tuning with everything that needs a GPU replaced --------------------------------------------


def fake_candidate(name, us, wrong="never", spills=0, code=None):
    return SimpleNamespace(
        label=name, numbers={"id": us}, us=us, wrong=wrong, spills=spills, code=code or name
    )


class FakeSpace:
    name, requires, files, axes = "toy", "sm_80", ("gemm/ladder/final.cu",), ("m", "n", "k")
    sizes = ({"m": 64, "n": 64, "k": 64},)

    def __init__(self, *candidates):
        self.found = list(candidates)

    def prune(self, gpu, size):
        return [("all", 1000), ("some rule", len(self.found))], list(self.found)

    def instance(self, one):
        return "toy.cu", one.label

    def problem(self, size):
        return SimpleNamespace(bytes=None, flops=10**6, vendors=dict)

    def trials(self):
        return ["small"]

    def launcher(self, problem, one):
        def run():
            return one.us

        needs = Resources(one.label, 128, 0, one.spills, 0.5, 256, 2)
        run.kernel = SimpleNamespace(
            resources=lambda block, shared: needs, machine_code=lambda: one.code
        )
        run.block, run.shared = 256, 0
        return run

    def default(self, problem, gpu):
        return self.found[0]

    def check(self, problem, one):
        if one.wrong == "always" or (one.wrong == "on the size" and problem != "small"):
            raise CheckError("first bad element 7")


class NoGpu:
    """What the tuner asks of `cudatut`, answered without a GPU; the rest is the real thing."""

    def __getattr__(self, name):
        import cudatut

        return getattr(cudatut, name)

    def require(self, arch):
        pass

    def device(self):
        return SimpleNamespace(name="NVIDIA Test", sm_count=1)

    def compile_ahead(self, wanted):
        return {one: KernelCompileError("nope") for one in wanted if one[1] == "broken"}

    time_hidden = staticmethod(noisy({})[1])

    def bench(self, candidates, bytes, flops, name):
        rows = [
            Row(k, r(), r() * 0.99, r() * 1.01, 1.0, None, False, None, bytes, flops)
            for k, r in candidates.items()
        ]
        return Benchmark(name, "TFLOP/s", None, rows, 5)


@pytest.fixture
def no_gpu_needed(monkeypatch):
    monkeypatch.setattr(tuner, "ct", NoGpu())


def test_tuning_drops_what_is_wrong_or_spills_and_says_why(no_gpu_needed):
    space = FakeSpace(
        fake_candidate("default", 100.0),
        fake_candidate("liar", 1.0, wrong="always"),
        fake_candidate("late liar", 1.5, wrong="on the size"),
        fake_candidate("spiller", 2.0, spills=16),
        fake_candidate("broken", 3.0),
        fake_candidate("twin", 100.1, code="default"),
        fake_candidate("best", 80.0),
    )
    said = []
    found = tuner.tune(space, space.sizes[0], say=said.append)
    assert found.choice.label == "best" and found.gain == pytest.approx(1.25) and found.clear
    for liar in ("liar", "late liar"):
        assert "is wrong: first bad element 7" in found.dropped[liar]
    assert "spills 16 B" in found.dropped["spiller"] and "nope" in found.dropped["broken"]
    left = dict(found.search)
    assert left["compiled, fit and do not spill"] == 5 and left["different machine code"] == 4
    assert left["right"] == 3
    assert any("raced, 30 rounds each" in line for line in said)
    assert "clearly" in found.verdict()


def test_tuning_does_not_call_noise_a_win(no_gpu_needed):
    space = FakeSpace(fake_candidate("default", 100.0), fake_candidate("equal", 99.9))
    found = tuner.tune(space, space.sizes[0], say=lambda line: None)
    if found.choice.label == "equal":
        assert not found.clear and "no clear win" in found.verdict()
    else:
        assert "which is chosen untuned, too" in found.verdict()


def test_nothing_left_says_why(no_gpu_needed):
    space = FakeSpace(fake_candidate("liar", 1.0, wrong="on the size"))
    with pytest.raises(tuner.TuningError, match="liar: is wrong"):
        tuner.tune(space, space.sizes[0], say=lambda line: None)


def test_most_draws_at_random_and_keeps_the_default(no_gpu_needed):
    space = FakeSpace(*(fake_candidate(f"c{i}", 100.0 + i) for i in range(50)))
    found = tuner.tune(space, space.sizes[0], most=5, say=lambda line: None)
    assert dict(found.search)["random sample of 5"] == 5
    assert "c0" in found.heats[0].times and 5 <= len(found.heats[0].times) <= 6


@pytest.mark.parametrize("text", ["x", "1x2", "0", "-4", "1x2x3x4", ""])
def test_sizes_that_are_none(text):
    with pytest.raises(tuner.TuningError, match="is no size"):
        tuner.parse_size(text, "mnk")


def test_sizes():
    assert tuner.parse_size("64", "mnk") == {"m": 64, "n": 64, "k": 64}
    assert tuner.parse_size("1x2X3", "mnk") == {"m": 1, "n": 2, "k": 3}
