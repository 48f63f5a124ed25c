"""The clock on which arrivals take no time, and steps that are rehearsed."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.llm.engine import watch as watches
from cudatut.book.llm.engine.arrivals import Clock, ModelBackend, replay, uniform, workload
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.engine.scheduler import Scheduler


class Wall:
    """What stands for time.perf_counter."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Recording(ModelBackend):
    """A step of a new number of tokens takes a second more, and counts as recorded."""

    def __init__(self, wall):
        super().__init__(Clock(), 100, 16)
        self.wall, self.recorded, self.known, self.ran = wall, 0, set(), 0

    def run(self, batch):
        size = len(batch.tokens)
        if size not in self.known:
            self.known.add(size)
            self.recorded += 1
            self.wall.now += 1.0
        self.ran += 1
        self.wall.now += 0.001
        return super().run(batch)


@pytest.fixture
def wall(monkeypatch):
    wall = Wall()
    monkeypatch.setattr(watches, "perf_counter", wall)
    monkeypatch.setattr(ct, "synchronize", lambda: None, raising=False)
    return wall


def test_a_watch_skips_what_nobody_needs(wall):
    watch = watches.Watch()
    assert watch() == 0
    wall.now += 2
    watch.wait(10.0)
    assert watch() == 10
    watch.wait(3.0)  # it has come already
    wall.now += 1
    assert watch() == 11 and watch.skipped == 8


def test_what_is_recorded_does_not_count(wall):
    watch = watches.Watch()
    backend = watches.Rehearsed(Recording(wall), watch)
    engine = Engine(backend, Scheduler(NaiveBlocks(100, 16), 64, 4), clock=watch)
    requests = workload(6, 50.0, uniform(5, 40), uniform(2, 9), seed=1, vocab=50)
    steps = []
    end = replay(engine, requests, watch.wait, lambda: steps.append(1))
    ran, recorded = backend.ran, backend.recorded  # those of the backend inside
    assert recorded and ran == len(steps) + recorded
    assert all(len(r.output) == r.max_tokens for r in requests)
    # No second of a recording is seen, and no pause: a step takes a millisecond.
    gaps = np.concatenate([np.diff(r.times) for r in requests])
    assert gaps.min() == pytest.approx(0.001) and gaps.max() < 0.01
    assert end < requests[-1].arrival + 0.1
    assert wall.now - 100 == pytest.approx(recorded + 0.001 * ran)
