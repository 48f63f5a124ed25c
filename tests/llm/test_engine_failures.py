"""What comes to the engine's door, and steps that fail: wrong requests and sizes are refused before anything runs, and a
fault at any stage of a step drops its cause, leaves nothing half-written, and lets the others have their right answers."""

import random

import numpy as np
import pytest
from pocket import STOP, VOCAB, Pocket, alone, managers


def engine_of(checkpoint, speculate=0, ahead=False, room=None, count=60, **options):
    from cudatut.book.llm.backends.numpy_backend import NumpyBackend
    from cudatut.book.llm.engine.engine import Engine
    from cudatut.book.llm.engine.prefix import PrefixBlocks
    from cudatut.book.llm.engine.scheduler import Scheduler

    backend = NumpyBackend(checkpoint, count, 4)
    backend.room = room or backend.room
    options = {"token_budget": 64, "max_running": 8, **options}
    return Engine(backend, Scheduler(PrefixBlocks(count, 4), **options), speculate, ahead)


def finished(engine):
    """Run to the end; what each request said."""
    said = {}
    while engine.busy:
        for output in engine.step():
            said.setdefault(output.request.id, []).extend(output.tokens)
    return said


# --- the door ----------------------------------------------------------------------------------------


def wrong_requests(vocab, context):
    from cudatut.book.llm.engine.sampler import Sampling

    tokens = rf"tokens are whole numbers from 0 to {vocab - 1}"
    number = r"the number of a request is a whole one, from 0 to 2\^31 - 1"
    return {
        "another request's token": ({"prompt": [5, -1]}, rf"token 1 of its prompt is -1; {tokens}"),
        "beyond the vocabulary": ({"prompt": [vocab]}, rf"token 0 of its prompt is {vocab}; {tokens}"),
        "far beyond": ({"prompt": [5, 10**6]}, tokens),
        "beyond 32 bits": ({"prompt": [5, 2**31]}, tokens),
        "beyond 64 bits": ({"prompt": [5, -(2**70)]}, tokens),
        "half a token": ({"prompt": [5, 1.5]}, rf"token 1 of its prompt is 1.5; {tokens}"),
        "a whole float": ({"prompt": [5.0]}, tokens),
        "text": ({"prompt": "ab"}, tokens),
        "no token": ({"prompt": [5, None]}, tokens),
        "a wide number": ({"id": 1 << 40}, number),
        "the first that is too wide": ({"id": 1 << 31}, number),
        "a negative number": ({"id": -1}, number),
        "a name": ({"id": "A"}, number),
        "half a number": ({"id": 1.5}, number),
        "half a limit": ({"max_tokens": 2.5}, r"max_tokens is 2.5, no whole number"),
        "no answer": ({"max_tokens": 0}, "max_tokens is less than 1"),
        "no prompt": ({"prompt": []}, "its prompt is empty"),
        "never": ({"arrival": float("nan")}, "its arrival is nan, no time"),
        "longer than the model knows": (
            {"max_tokens": context},
            f"it may have {context + 2} tokens; the model knows {context}",
        ),
        "it has an output": ({"tokens": [5, 6, 7]}, "it has an output"),
        "a wide top_k": ({"sampling": Sampling(1.0, top_k=1 << 31)}, "top_k a whole number below"),
        "half a top_k": ({"sampling": Sampling(1.0, top_k=1.5)}, "top_k a whole number below"),
        "half a seed": ({"sampling": Sampling(1.0, seed=0.5)}, "seed a whole number of 64 bits"),
        "a wide seed": ({"sampling": Sampling(1.0, seed=1 << 64)}, "seed a whole number of 64 bits"),
        "NaN": ({"sampling": Sampling(float("nan"))}, "temperature must be 0 or more"),
        "beyond float32": ({"sampling": Sampling(1e300)}, "temperature must be 0 or more"),
    }  # fmt: skip


@pytest.mark.parametrize("ahead", [False, True])
def test_wrong_requests_are_refused_and_disturb_nobody(checkpoint, answers, ahead):
    from cudatut.book.llm.engine.request import Request
    from cudatut.book.llm.engine.sampler import Sampling
    from cudatut.book.llm.engine.scheduler import Refused

    config = checkpoint.config
    wrong = wrong_requests(config.vocab, config.context)
    engine = engine_of(checkpoint, ahead=ahead, count=200)
    scheduler = engine.scheduler
    engine.add(Request(0, answers.prompts[0], 24))
    engine.step()
    for name, (fields, message) in wrong.items():
        request = Request(**{"id": 1, "prompt": [5, 6], "max_tokens": 3, **fields})
        with pytest.raises((Refused, ValueError), match=message):
            engine.add(request)
            pytest.fail(f"{name}: accepted")
        with pytest.raises((Refused, ValueError)):
            scheduler.add(request)  # there is no second door
        assert list(scheduler.requests) == [0] and not scheduler.waiting, name
    with pytest.raises(Refused, match="the number 0 is taken"):
        engine.add(Request(0, [5], 3))
    # At the edge of what is possible: taken.
    engine.add(Request(np.int64(2**31 - 1), [np.int32(0), config.vocab - 1], np.int64(3)))
    how = Sampling(1.0, top_k=(1 << 31) - 1, seed=(1 << 64) - 1)
    engine.add(Request(7, (config.vocab - 1,), config.context - 1 - 24, sampling=how))
    first = scheduler.requests[0]
    said = finished(engine)
    assert len(said) == 3 and first.output == answers.greedy[0]
    with pytest.raises(Refused, match="it has been FINISHED before"):
        engine.add(first)
    fresh = Request(0, answers.prompts[0], 24)
    engine.add(fresh)  # the number is free again
    assert finished(engine)[0] == answers.greedy[0]


def test_a_fork_passes_the_same_door(checkpoint, answers):
    from cudatut.book.llm.engine.request import Request
    from cudatut.book.llm.engine.scheduler import Refused

    engine = engine_of(checkpoint)
    engine.add(parent := Request(0, answers.prompts[0], 24))
    for _ in range(3):
        engine.step()
    for child in (Request(1 << 40, [], 24), Request(1, [], 2.5), Request(0, [], 24)):
        with pytest.raises(Refused):
            engine.fork(0, child)
    finished(engine)
    assert parent.output == answers.greedy[0]


def test_an_engine_without_a_model_takes_any_token():
    from cudatut.book.llm.engine.request import Request

    engine, _ = pocket_engine(random.Random(0))
    engine.add(Request(0, [(1 << 31) - 1], 1))


@pytest.mark.parametrize(
    ("options", "room", "message"),
    [
        ({"token_budget": 65}, (64, 8, 99), "65 tokens, .* room for 64: make the scheduler's token_budget smaller, or the backend's max_tokens larger"),
        ({"max_running": 9}, (64, 8, 99), "9 requests, .* room for 8: make the scheduler's max_running smaller, or the backend's max_requests larger"),
        ({"speculate": 4}, (64, 8, 39), "40 rows of logits, .* room for 39: make the scheduler's max_running or speculate smaller, or the backend's max_logits larger"),
        ({"speculate": 9}, (64, 8, 63), "64 rows of logits"),  # no more than tokens
        ({"speculate": -1}, (64, 8, 99), "speculate is -1"),
        ({"watermark": 1.5}, (64, 8, 99), "watermark is 1.5"),
        ({"context": 0}, (64, 8, 99), "context 0"),
        ({"max_running": 0}, (64, 8, 99), "needs a token of the budget"),
    ],
)  # fmt: skip
def test_sizes_have_to_fit_each_other(checkpoint, options, room, message):
    from cudatut.book.llm.engine.batch import Room

    with pytest.raises(ValueError, match=message):
        engine_of(checkpoint, room=Room(*room), **options)


def test_sizes_that_just_fit_never_fail(checkpoint, answers):
    """Repetitive requests, as many guesses as there is room for."""
    from cudatut.book.llm.engine.batch import Room
    from cudatut.book.llm.engine.request import Request

    class Measured:
        def __init__(self, backend):
            self.backend, self.most = backend, 0

        def run(self, batch):
            self.most = max(self.most, len(batch.wanted))
            assert len(batch.tokens) <= 64 and len(batch.lengths) <= 8
            return self.backend.run(batch)

        def __getattr__(self, name):
            return getattr(self.backend, name)

    engine = engine_of(checkpoint, speculate=4, room=Room(64, 8, 40), count=200)
    engine.backend = Measured(engine.backend)
    for i in range(16):
        engine.add(Request(i, [5, 6, 7] * 4, 20))
    assert len(finished(engine)) == 16 and 8 < engine.backend.most <= 40


def test_requests_are_added_to_the_engine_not_before_it(checkpoint):
    from cudatut.book.llm.backends.numpy_backend import NumpyBackend
    from cudatut.book.llm.engine.blocks import NaiveBlocks
    from cudatut.book.llm.engine.engine import Engine
    from cudatut.book.llm.engine.request import Request
    from cudatut.book.llm.engine.scheduler import Scheduler

    scheduler = Scheduler(NaiveBlocks(60, 4))
    scheduler.add(Request("A", [10**6], 3))
    with pytest.raises(ValueError, match="1 requests were added to the scheduler before"):
        Engine(NumpyBackend(checkpoint, 60, 4), scheduler)


def test_a_seed_of_the_users_alone_decides_the_draw(checkpoint, answers):
    from cudatut.book.llm.engine.request import Request
    from cudatut.book.llm.engine.sampler import Sampling

    def said(number, how):
        engine = engine_of(checkpoint, count=200)
        engine.add(Request(number, answers.prompts[0], 24, sampling=how))
        return finished(engine)[number]

    seeded = [said(number, Sampling(0.9, seed=7)) for number in (0, 3, 2**31 - 1)]
    assert seeded[0] == seeded[1] == seeded[2] != said(0, Sampling(0.9, seed=8))
    # Without one, requests draw apart from each other, and each the same again.
    own = [said(number, Sampling(0.9)) for number in (1, 3, 1)]
    assert own[0] == own[2] != own[1]


# --- steps that fail ---------------------------------------------------------------------------------


class Fault(Exception):
    """Planted by a test."""


class Faults:
    """Lets calls of methods fail at random: before they do anything, or after they have done it."""

    def __init__(self, rng):
        self.rng, self.share, self.planted = rng, 0.0, []

    def watch(self, of, name, after=0.5):
        inner = getattr(of, name)

        def call(*arguments, **named):
            fails, late = self.rng.random() < self.share, self.rng.random() < after
            if fails:
                self.planted.append((name, "after" if late else "before"))
            if fails and not late:
                raise Fault(name)
            found = inner(*arguments, **named)
            if fails:
                raise Fault(name)
            return found

        setattr(of, name, call)


def pocket_engine(rng, static=False):
    """An engine of random sizes over Pocket; and its options."""
    from cudatut.book.llm.engine.engine import Engine
    from cudatut.book.llm.engine.prefill_first import PrefillFirst
    from cudatut.book.llm.engine.scheduler import POLICIES, Scheduler
    from cudatut.book.llm.engine.static_batches import StaticBatches

    size, running = rng.choice([1, 2, 4, 16]), rng.randint(1, 8)
    count, budget = rng.randint(-(-60 // size), -(-150 // size)), running + rng.randint(0, 12)
    kind = rng.choice([Scheduler, Scheduler, Scheduler, StaticBatches, PrefillFirst])
    more = {}
    if kind is PrefillFirst:
        budget, more = max(budget, 64), {"swap": rng.random() < 0.5}
    backend = Pocket(count, size)
    backend.budget, backend.most = budget, running
    # The rival of the mixed steps is written for blocks without prefixes.
    manager = rng.choice(managers()[:1] if kind is PrefillFirst else managers())
    blocks = manager(count, size)
    backend.refs = blocks.refs
    policy = rng.choice(list(POLICIES))
    scheduler = kind(
        blocks, budget, running, policy, rng.choice([0, 0.01, 0.2]), context=64, **more
    )
    usual = kind is Scheduler
    speculate = rng.choice([0, 0, 1, 4]) if usual else 0
    ahead = not speculate and kind is not PrefillFirst and rng.random() < 0.6
    # Swapping is a model: nothing is saved, so what is read afterwards was never there.
    backend.swaps = more.get("swap", False)
    engine = Engine(backend, scheduler, speculate, ahead, clock=lambda: 0.0)
    backend.ahead = kind is StaticBatches or speculate > 0
    return engine, kind


def whole(engine, kind, freed):
    """What holds between any two steps, whatever failed."""
    from cudatut.book.llm.engine.request import State
    from cudatut.book.llm.engine.static_batches import StaticBatches

    scheduler, blocks = engine.scheduler, engine.scheduler.blocks
    blocks.check()
    swapped = getattr(scheduler, "swapped", [])
    listed = [*scheduler.waiting, *scheduler.running, *swapped]
    assert sorted(r.id for r in listed) == sorted(scheduler.requests)
    assert all(r.state is State.RUNNING for r in scheduler.running)
    assert all(r.state is State.WAITING for r in [*scheduler.waiting, *swapped])
    keys = [scheduler.order(r) for r in scheduler.running]
    assert keys == sorted(keys)
    running = {r.id for r in scheduler.running}
    if kind is not StaticBatches:
        assert set(blocks.tables) == running, "a table without a request, or the other way round"
    elif not running:
        assert not blocks.tables
    rows = list(engine._rows.values())
    assert set(engine._rows) <= running and set(engine._ngrams) <= running
    assert sorted(rows + engine._free_rows) == list(range(scheduler.max_running))
    assert scheduler.at_hand is None or scheduler.at_hand.id not in freed


def play(rng, share):
    """One trace in which calls fail; the faults, and how its requests ended."""
    from cudatut.book.llm.engine.engine import StepFailed
    from cudatut.book.llm.engine.request import Request, State

    engine, kind = pocket_engine(rng)
    scheduler, blocks, backend = engine.scheduler, engine.scheduler.blocks, engine.backend
    if backend.swaps:
        backend.run = lambda batch: np.zeros(len(batch.wanted), "int64")
    faults = Faults(rng)
    for of, names in (
        (scheduler, ("schedule", "admit", "form_batch", "advance", "finish", "_reserve", "_start")),
        (blocks, ("lookup", "fits", "begin", "reserve", "commit")),
        (engine, ("assemble", "_write_table", "_propose")),
        (backend, ("run", "sample", "fetch")),
    ):
        for name in names:
            faults.watch(of, name)
    faults.watch(blocks, "_take", after=0)  # whoever took a block has it
    beginnings = [[rng.randrange(VOCAB) for _ in range(40)] for _ in range(2)]
    requests, told, failed, steps = [], {}, [], 0
    for i in range(rng.randint(2, 14)):
        prompt = rng.choice(beginnings)[: rng.randint(1, 30)]
        stop = frozenset([STOP] * (rng.random() < 0.2))
        requests.append(Request(i, prompt, rng.randint(1, 20), float(i), rng.randint(0, 2), stop))
    coming = requests[::-1]
    while coming or engine.busy:
        while coming and (rng.random() < 0.4 or not engine.busy):
            faults.share = 0
            engine.add(coming.pop())
        before = dict(scheduler.requests)
        # No fault for ever: what is left at the end has to be answered.
        faults.share = share if steps < 300 else 0
        try:
            outputs = engine.step()
        except StepFailed as error:
            assert isinstance(error.__cause__, Fault), error.__cause__
            assert all(r.state is State.FAILED for r in error.requests)
            assert {r.id for r in error.requests} <= set(before)
            failed += error.requests
        else:
            for output in outputs:
                told.setdefault(output.request.id, []).extend(output.tokens)
        faults.share = 0
        whole(engine, kind, {r.id for r in failed})
        steps += 1
        assert steps < 3000, "it does not get on"
    assert blocks.free == blocks.count and not blocks.tables, "a block is lost"
    assert not engine._rows and not engine._ngrams
    assert len({r.id for r in failed}) == len(failed), "nobody fails twice"
    for request in requests:
        expected = alone(request.prompt, request.max_tokens, request.stop)
        if backend.swaps:
            expected = [0] * request.max_tokens if 0 not in request.stop else [0]
        assert min(request.output, default=0) >= 0, "a place that nobody filled"
        if request.state is State.FAILED:
            assert request in failed
            assert request.output == expected[: len(request.output)]
            assert told.get(request.id, []) == expected[: len(told.get(request.id, []))]
        else:
            assert request.state is State.FINISHED
            assert told[request.id] == request.output == expected
    return faults.planted, len(failed), len(requests)


def test_whatever_fails_the_others_are_answered(request):
    """Random faults at every stage of random traces; afterwards the same engine answers as if nothing had been."""
    traces, stages, failed, asked = request.config.getoption("--traces"), {}, 0, 0
    for seed in range(traces):
        rng = random.Random(seed)
        try:
            planted, lost, total = play(rng, rng.choice([0.002, 0.005, 0.02]))
        except Exception as error:
            raise AssertionError(f"trace {seed}") from error
        for fault in planted:
            stages[fault] = stages.get(fault, 0) + 1
        failed, asked = failed + lost, asked + total
    print({" ".join(key): n for key, n in sorted(stages.items())}, failed, asked)
    assert 0 < failed < asked / 2, "neither is nobody dropped, nor everybody"
    seen = {stage for stage, _ in stages}
    assert seen >= {"schedule", "admit", "advance", "finish", "reserve", "begin", "lookup", "commit", "run", "sample",
                    "fetch", "assemble", "_write_table", "_propose", "_take"}  # fmt: skip


@pytest.mark.parametrize("ahead", [False, True])
def test_only_the_cause_is_dropped_where_it_is_known(checkpoint, answers, ahead):
    """A request whose table cannot be written; the others begin again and say what they say alone."""
    from cudatut.book.llm.engine.engine import StepFailed
    from cudatut.book.llm.engine.request import Request, State

    engine = engine_of(checkpoint, ahead=ahead, count=200)
    inner = engine._write_table

    def write(request):
        if request.id == 2:
            raise Fault("its table")
        inner(request)

    engine._write_table = write
    requests = [Request(i, prompt, 24) for i, prompt in enumerate(answers.prompts[:4])]
    for request in requests[:2]:
        engine.add(request)
    for _ in range(5):
        engine.step()
    for request in requests[2:]:
        engine.add(request)
    with pytest.raises(StepFailed, match="request 2 is dropped: Fault: its table") as caught:
        engine.step()
    assert caught.value.requests == [requests[2]] and requests[2].state is State.FAILED
    finished(engine)
    for i in (0, 1, 3):
        assert requests[i].output == answers.greedy[i]
    assert requests[2].output == [] and requests[0].preemptions == 1


def test_a_backend_that_fails_once_loses_that_step_alone(checkpoint, answers):
    """What the step had written into the cache is found by nobody."""
    from cudatut.book.llm.engine.engine import StepFailed
    from cudatut.book.llm.engine.request import Request

    engine = engine_of(checkpoint, count=200)
    run, calls = engine.backend.run, []

    def broken(batch):
        calls.append(len(batch.lengths))
        found = run(batch)
        if len(calls) == 3:
            engine.backend.keys[:, batch.slots] = 1e30  # half-written
            raise MemoryError("out of memory")
        return found

    engine.backend.run = broken
    for i in range(3):
        engine.add(Request(i, answers.prompts[i], 24))
    engine.step()
    engine.step()
    with pytest.raises(StepFailed, match=r"request 0, 1, 2 is dropped: MemoryError: out of memory"):
        engine.step()
    assert not engine.busy and engine.scheduler.blocks.free == 200
    for i in range(3):
        engine.add(Request(i, answers.prompts[i], 24))
    said = finished(engine)
    assert [said[i] for i in range(3)] == answers.greedy[:3]


@pytest.mark.parametrize("ahead", [False, True])
def test_who_cannot_be_admitted_is_dropped_alone(checkpoint, answers, ahead):
    """While others run, and where nobody does."""
    from cudatut.book.llm.engine.engine import StepFailed
    from cudatut.book.llm.engine.request import Request

    engine = engine_of(checkpoint, ahead=ahead, count=200)
    blocks = engine.scheduler.blocks
    lookup = blocks.lookup
    blocks.lookup = lambda tokens: 1 / 0 if tokens[0] == 3 else lookup(tokens)
    for number in (0, 2):
        engine.add(Request(number + 1, [3, 4], 5))
        with pytest.raises(StepFailed, match=f"request {number + 1} is dropped") as caught:
            engine.step()
        assert [r.id for r in caught.value.requests] == [number + 1]
        if not number:
            engine.add(first := Request(0, answers.prompts[0], 24))
            engine.step()
    finished(engine)
    assert first.output == answers.greedy[0] and blocks.free == 200


def test_who_finished_in_a_step_that_failed_is_told(checkpoint, answers):
    """Its last token was drawn, but no Output came: whoever waits for it must hear of it."""
    from cudatut.book.llm.engine.engine import StepFailed
    from cudatut.book.llm.engine.request import Request, State

    engine = engine_of(checkpoint)
    finish = engine.scheduler.finish
    engine.add(first := Request(0, answers.prompts[0], 1))
    engine.add(second := Request(1, answers.prompts[1], 5))
    while not first.output:
        engine.scheduler.finish = lambda step, parts: finish(step, parts) and 1 / 0
        with pytest.raises(StepFailed) as caught:
            engine.step()
    assert caught.value.requests == [first, second] and not engine.busy
    assert first.state is second.state is State.FAILED


@pytest.mark.parametrize("stage", ["run", "schedule"])
def test_an_engine_whose_every_step_fails_ends(stage):
    """As after an error of the GPU: each step drops somebody, so that a loop over `busy` ends."""
    from cudatut.book.llm.engine.engine import StepFailed
    from cudatut.book.llm.engine.request import Request

    for seed in range(20):
        engine, _ = pocket_engine(random.Random(seed))
        of = engine.backend if stage == "run" else engine.scheduler
        setattr(of, stage, lambda *_: 1 / 0)
        for i in range(10):
            engine.add(Request(i, [1, 2, 3], 5))
        lost = []
        while engine.busy:
            with pytest.raises(StepFailed, match="ZeroDivisionError") as caught:
                engine.step()
            assert caught.value.requests
            lost += caught.value.requests
        assert sorted(r.id for r in lost) == list(range(10))
