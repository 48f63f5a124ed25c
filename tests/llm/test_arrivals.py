"""Workloads and metrics, with a clock that a model of a GPU moves."""

import math

import numpy as np
import pytest


def test_workloads_come_from_their_seed():
    from cudatut.book.llm.engine.arrivals import lognormal, uniform, workload

    one, same, other = (
        workload(300, 50.0, uniform(32, 512), uniform(32, 256), seed=s, priority=3)
        for s in (0, 0, 1)
    )
    assert [(r.prompt, r.max_tokens, r.arrival) for r in one] == [
        (r.prompt, r.max_tokens, r.arrival) for r in same
    ]
    assert [r.arrival for r in one] != [r.arrival for r in other]
    assert {r.priority for r in one} == {3}
    lengths = [len(r.prompt) for r in one]
    assert min(lengths) >= 32 and max(lengths) <= 512 and min(lengths) < 40 and max(lengths) > 500
    gaps = np.diff([r.arrival for r in one])
    assert abs(gaps.mean() * 50 - 1) < 0.2 and abs(gaps.std() * 50 - 1) < 0.25, "exponential"
    drawn = lognormal(100, 1.0, 1000)(np.random.default_rng(0), 2000)
    assert 90 < np.median(drawn) < 110 and drawn.max() == 1000 and drawn.min() >= 1
    assert {r.arrival for r in workload(5, math.inf, uniform(1, 2), uniform(1, 2))} == {0.0}


def test_metrics():
    from cudatut.book.llm.engine.arrivals import metrics
    from cudatut.book.llm.engine.request import Request, State

    def answered(i, arrival, times):
        return Request(i, [1], len(times), arrival, state=State.FINISHED, times=times)

    a, b = answered(0, 1.0, [1.5, 1.75, 2.0]), answered(1, 2.0, [5.0])
    found = metrics([a, b, Request(2, [1], 1)])
    assert found.requests == 2 and found.tokens == 4
    assert found.ttft_p50 == pytest.approx(1.75) and found.ttft_p99 == pytest.approx(2.975)
    assert found.tpot_p50 == found.tpot_p99 == pytest.approx(0.25)
    assert found.tokens_per_second == pytest.approx(1.0)
    with pytest.raises(ValueError, match="no request was answered"):
        metrics([])


def served(kind, rate, policy="fcfs", **options):
    from cudatut.book.llm.engine.arrivals import (
        Clock,
        ModelBackend,
        metrics,
        replay,
        uniform,
        workload,
    )
    from cudatut.book.llm.engine.engine import Engine
    from cudatut.book.llm.engine.prefix import PrefixBlocks

    clock = Clock()
    backend = ModelBackend(clock, 2000, 16)
    scheduler = kind(PrefixBlocks(2000, 16), policy=policy, max_running=16, context=1024, **options)
    engine = Engine(backend, scheduler, clock=clock)
    requests = workload(100, rate, uniform(32, 512), uniform(32, 256), seed=0)
    steps = []
    replay(engine, requests, clock.wait, lambda: steps.append(clock.now))
    assert steps == sorted(steps)
    return metrics(requests), requests


def test_continuous_batching_wins_within_its_bound():
    from cudatut.book.llm.engine.scheduler import Scheduler
    from cudatut.book.llm.engine.static_batches import StaticBatches, bound

    (continuous, requests), (static, _) = (
        served(kind, math.inf, token_budget=2048) for kind in (Scheduler, StaticBatches)
    )
    ratio = continuous.tokens_per_second / static.tokens_per_second
    most = bound([r.max_tokens for r in requests], 16)
    assert 1.3 < most < 2 and 1.2 < ratio < most * 1.05
    assert continuous.tokens == static.tokens == sum(r.max_tokens for r in requests)
    assert continuous.ttft_p50 < static.ttft_p50


def test_shortest_first_shortens_the_wait():
    from cudatut.book.llm.engine.scheduler import Scheduler

    fcfs, shortest = (served(Scheduler, math.inf, p)[0] for p in ("fcfs", "shortest"))
    assert shortest.ttft_p50 < fcfs.ttft_p50
    calm, _ = served(Scheduler, 5.0)
    assert calm.ttft_p50 < 0.01 < fcfs.ttft_p50


def test_refused_requests_do_not_stop_a_replay():
    from cudatut.book.llm.engine.arrivals import Clock, ModelBackend, replay
    from cudatut.book.llm.engine.blocks import NaiveBlocks
    from cudatut.book.llm.engine.engine import Engine
    from cudatut.book.llm.engine.request import Request, State
    from cudatut.book.llm.engine.scheduler import Scheduler

    clock = Clock()
    engine = Engine(
        ModelBackend(clock, 4, 4), Scheduler(NaiveBlocks(4, 4), context=100), clock=clock
    )
    requests = [Request(0, [1] * 30, 5), Request(1, [1] * 3, 5, arrival=2.0)]
    assert replay(engine, requests, clock.wait) > 2
    assert [r.state for r in requests] == [State.CANCELLED, State.FINISHED]
