"""The engine with the NumPy backend: an answer is the same alone, batched, in chunks, preempted, after prefix hits, forked
and speculated; token by token, and with one_by_one bit by bit."""

import numpy as np
import pytest


def build(
    checkpoint,
    manager="prefix",
    count=200,
    size=4,
    one_by_one=False,
    speculate=0,
    ahead=False,
    **options,
):
    from cudatut.book.llm.backends.numpy_backend import NumpyBackend
    from cudatut.book.llm.engine.blocks import NaiveBlocks
    from cudatut.book.llm.engine.engine import Engine
    from cudatut.book.llm.engine.prefix import PrefixBlocks
    from cudatut.book.llm.engine.radix import RadixBlocks
    from cudatut.book.llm.engine.scheduler import Scheduler

    kinds = {"naive": NaiveBlocks, "prefix": PrefixBlocks, "radix": RadixBlocks}
    backend = NumpyBackend(checkpoint, count, size, one_by_one)
    options = {"token_budget": 64, "max_running": 8, "context": 256, **options}
    return Engine(backend, Scheduler(kinds[manager](count, size), **options), speculate, ahead)


def run(engine, prompts, max_tokens=24, **fields):
    """Requests, run to their end."""
    from cudatut.book.llm.engine.request import Request

    base = len(getattr(engine, "done", []))
    requests = [Request(base + i, p, max_tokens, **fields) for i, p in enumerate(prompts)]
    for request in requests:
        engine.add(request)
    finished, engine.steps = [], 0
    while engine.busy:
        engine.steps += 1
        finished += [output.request for output in engine.step() if output.finished]
        engine.scheduler.blocks.check()
    assert sorted(r.id for r in finished) == [r.id for r in requests]
    engine.done = [*getattr(engine, "done", []), *requests]
    return requests


@pytest.mark.parametrize("manager", ["naive", "prefix", "radix"])
def test_batched_in_chunks_and_preempted(checkpoint, answers, manager):
    engine = build(checkpoint, manager, count=30, token_budget=16)
    requests = run(engine, answers.prompts)
    assert [r.output for r in requests] == answers.greedy
    assert sum(r.preemptions for r in requests) > 5
    assert engine.scheduler.blocks.free == 30


def test_alone(checkpoint, answers):
    engine = build(checkpoint, "naive", max_running=1, token_budget=256)
    assert [r.output for r in run(engine, answers.prompts)] == answers.greedy


@pytest.mark.parametrize("manager", ["prefix", "radix"])
def test_prefix_hits(checkpoint, answers, manager):
    engine = build(checkpoint, manager, count=400)
    first = run(engine, answers.prompts)
    # The same prompts, and what was answered as the beginning of a longer conversation.
    again = run(engine, answers.prompts)
    longer = [p + a[:-4] for p, a in zip(answers.prompts, answers.greedy)]
    more = run(engine, longer, max_tokens=4)
    assert sum(r.cached for r in first) == 0
    for request in (*again, *more):
        unshared = len(request.prompt) - request.cached
        assert 1 <= unshared <= 4, "never more than the unshared tokens and a block"
    assert [r.output for r in again] == answers.greedy
    assert [r.output for r in more] == [a[-4:] for a in answers.greedy]


@pytest.mark.parametrize("speculate", [1, 3, 8])
def test_speculation(checkpoint, answers, speculate):
    engine = build(checkpoint, speculate=speculate)
    assert [r.output for r in run(engine, answers.prompts)] == answers.greedy
    plain = build(checkpoint)
    run(plain, answers.prompts)
    assert engine.steps < plain.steps, "this model repeats itself: some guesses are right"


@pytest.mark.parametrize("count", [256, 30])
def test_a_step_ahead(checkpoint, answers, count):
    """The next step begins before the tokens of the last are known; with few blocks, requests are preempted meanwhile."""
    from cudatut.book.llm.engine.sampler import Sampling

    stop = frozenset([answers.greedy[0][5]])
    ways = {"greedy": {}, "stop": {"stop": stop}, "drawn": {"sampling": Sampling(0.9, seed=7)}}
    for way in ways.values():
        expected = [r.output for r in run(build(checkpoint), answers.prompts, **way)]
        engine = build(checkpoint, count=count, ahead=True, token_budget=16)
        assert [r.output for r in run(engine, answers.prompts, **way)] == expected
    engine = build(checkpoint, ahead=True)
    first = run(engine, answers.prompts[:1], max_tokens=1)
    assert engine.steps == 2 and first[0].output == answers.greedy[0][:1]
    with pytest.raises(ValueError, match="cannot fork"):
        engine.fork(0, first[0])
    with pytest.raises(ValueError, match="a guess is made from"):
        build(checkpoint, ahead=True, speculate=2)


def test_forks(checkpoint, answers):
    from cudatut.book.llm.engine.request import Request

    engine = build(checkpoint)
    prompt, expected = answers.prompts[3], answers.greedy[3]
    parent = Request(0, prompt, 24)
    engine.add(parent)
    for _ in range(6):
        engine.step()
    children = [Request(1, [], 24), Request(2, [], 12)]
    for child in children:
        engine.fork(0, child)
    while engine.busy:
        engine.step()
        engine.scheduler.blocks.check()
    assert parent.output == children[0].output == expected
    assert children[1].output == expected[:12]


def test_draws_do_not_depend_on_the_batch(checkpoint, answers):
    """Temperature, top-k and top-p: the same tokens alone, batched and preempted, and with speculation."""
    from cudatut.book.llm.engine.sampler import Sampling

    sampling = Sampling(temperature=0.9, top_k=20, top_p=0.95, seed=7)
    variants = {
        "alone": build(checkpoint, max_running=1, token_budget=256),
        "batched": build(checkpoint),
        "preempted": build(checkpoint, count=30, token_budget=16),
        "speculated": build(checkpoint, speculate=4),
    }
    outputs = {
        name: [r.output for r in run(engine, answers.prompts, sampling=sampling)]
        for name, engine in variants.items()
    }
    assert outputs["alone"] != answers.greedy
    assert all(found == outputs["alone"] for found in outputs.values())
    other = run(build(checkpoint), answers.prompts, sampling=sampling._replace(seed=8))
    assert [r.output for r in other] != outputs["alone"]


def test_bit_by_bit(checkpoint, answers):
    """one_by_one: after the same tokens the logits have the same bits, whatever the way."""

    def watch(engine):
        """Logits, as bytes, by the tokens that they follow."""
        assemble, compute, found, follows = engine.assemble, engine.backend.run, {}, []

        def assembled(step):
            follows[:] = [
                (*work.request.tokens, *work.drafts[:n])
                for work in step.work
                if work.last
                for n in range(len(work.drafts) + 1)
            ]
            return assemble(step)

        def computed(batch):
            logits = compute(batch)
            assert len(logits) == len(follows)
            for tokens, row in zip(follows, logits):
                assert found.setdefault(tokens, row.tobytes()) == row.tobytes()
            return logits

        engine.assemble, engine.backend.run = assembled, computed
        return found

    seen = []
    for options in (
        {"max_running": 1, "token_budget": 256, "manager": "naive"},
        {"count": 30, "token_budget": 16},
        {"manager": "radix", "token_budget": 9},
        {"speculate": 3},
    ):
        engine = build(checkpoint, one_by_one=True, **options)
        seen.append(watch(engine))
        assert [r.output for r in run(engine, answers.prompts[:6])] == answers.greedy[:6]
    for other in seen[1:]:
        common = seen[0].keys() & other.keys()
        assert len(common) == len(seen[0]) == 6 * 24
        assert all(seen[0][tokens] == other[tokens] for tokens in common)


def test_logits_are_those_of_the_reference(checkpoint, answers):
    from cudatut.book.llm.model.reference import Reference

    model = Reference(checkpoint)
    engine = build(checkpoint)
    prompt = answers.prompts[0]
    found = []
    engine.backend.run, inner = lambda b: found.append(inner(b)) or found[-1], engine.backend.run
    run(engine, [prompt])
    expected = model.forward(prompt + answers.greedy[0][:-1])[len(prompt) - 1 :]
    assert np.abs(np.concatenate(found) - expected).max() < 1e-4


def test_a_cancelled_request_frees_its_blocks(checkpoint, answers):
    from cudatut.book.llm.engine.request import Request, State

    engine = build(checkpoint, "naive", max_running=2, count=100)
    for i in range(3):
        engine.add(Request(i, answers.prompts[i], 24))
    engine.step()
    engine.cancel(0)  # runs
    engine.cancel(2)  # waits
    with pytest.raises(KeyError):
        engine.cancel(0)
    (left,) = engine.scheduler.running
    assert 100 - engine.scheduler.blocks.free == len(engine.scheduler.blocks.table(1).blocks)
    while engine.busy:
        engine.step()
    assert left.output == answers.greedy[1] and left.state is State.FINISHED
    assert engine.scheduler.blocks.free == 100 and len(left.times) == 24


def test_stop_tokens(checkpoint, answers):
    expected = answers.greedy[2]
    stop = expected[10]
    for speculate in (0, 4):
        engine = build(checkpoint, speculate=speculate)
        (request,) = run(engine, [answers.prompts[2]], stop=frozenset({stop}))
        assert request.output == expected[: expected.index(stop) + 1]


def test_blocks_have_to_be_those_of_the_backend(checkpoint):
    from cudatut.book.llm.backends.numpy_backend import NumpyBackend
    from cudatut.book.llm.engine.blocks import NaiveBlocks
    from cudatut.book.llm.engine.engine import Engine
    from cudatut.book.llm.engine.scheduler import Scheduler

    with pytest.raises(ValueError, match=r"\(10, 8\) are not the backend's \(10, 4\)"):
        Engine(NumpyBackend(checkpoint, 10, 4), Scheduler(NaiveBlocks(10, 8)))


def test_the_arrays_of_a_batch(checkpoint):
    """A prompt, a request that decodes, and one with guesses, as batch.py says."""
    from cudatut.book.llm.engine.request import Request

    engine = build(checkpoint, "naive", size=4, token_budget=12, max_running=4)
    scheduler = engine.scheduler
    engine.add(Request(3, [5, 6, 7], 9))
    engine.step()
    engine.add(Request(4, [8] * 11, 9))
    step = scheduler.schedule(lambda request, most: [1, 2])
    batch, draws, counts = engine.assemble(step)
    known = scheduler.requests[3].tokens[3]
    assert batch.tokens.tolist() == [known, 1, 2, *[8] * 9]
    assert batch.positions.tolist() == [3, 4, 5, *range(9)]
    assert batch.starts.tolist() == [0, 3, 12] and batch.lengths.tolist() == [6, 9]
    (a, b), (c, d, e) = (scheduler.blocks.table(n).blocks for n in (3, 4))
    assert batch.tables.tolist() == [[a, b, -1], [c, d, e]]
    assert batch.slots.tolist() == [
        4 * a + 3, 4 * b, 4 * b + 1, *range(4 * c, 4 * c + 4), *range(4 * d, 4 * d + 4), 4 * e
    ]  # fmt: skip
    # Three logits of the first, none of the second: its prompt goes on.
    assert batch.wanted.tolist() == [0, 1, 2] and counts == [3, 0]
    assert draws.position.tolist() == [4, 5, 6] and draws.request.tolist() == [3, 3, 3]
    assert batch.copies.shape == (0, 2)
    assert {a.dtype.name for a in batch} == {"int32"}
    types = ("float32", "int32", "float32", "uint64", "int32", "int32")
    assert tuple(a.dtype.name for a in draws) == types
