"""The scheduler over random traces of requests, with a model small enough to see every token that it reads."""

import random

import pytest

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from pocket import STOP, VOCAB, Pocket, alone, managers  # noqa: E402


def play(rng, static=False):
    """One trace: a machine, requests that come, are cancelled and fork; everything is checked after every step."""
    from cudatut.book.llm.engine.engine import Engine
    from cudatut.book.llm.engine.request import Request, State
    from cudatut.book.llm.engine.scheduler import POLICIES, Refused, Scheduler
    from cudatut.book.llm.engine.static_batches import StaticBatches

    size, running = rng.choice([1, 2, 4, 16]), rng.randint(1, 8)
    beginnings = [[rng.randrange(VOCAB) for _ in range(40)] for _ in range(2)]
    coming, done, limit, largest = [], [], 0, 1
    for i in range(rng.randint(1, 12)):
        prompt = rng.choice(beginnings)[: rng.randint(0, 30)]
        prompt = prompt + [rng.randrange(VOCAB) for _ in range(rng.randint(0, 4))]
        most, stop = rng.randint(0, 20), frozenset([STOP] * (rng.random() < 0.2))
        request = Request(i, prompt, most, float(rng.randint(0, 20)), rng.randint(0, 2), stop)
        coming.append(request)
        limit += len(prompt) + most + 1
        largest = max(largest, -(-(len(prompt) + most - 1) // size))
    # Tight: the largest just fits, or even not; few fit together.
    count, budget = max(1, int(largest * rng.uniform(0.8, 3))), running + rng.randint(0, 12)
    backend = Pocket(count, size)
    backend.budget, backend.most = budget, running
    blocks = rng.choice(managers())(count, size)
    backend.refs = blocks.refs
    kind = StaticBatches if static else Scheduler
    scheduler = kind(
        blocks, budget, running, rng.choice(list(POLICIES)), rng.choice([0, 0.01, 0.2]), context=64
    )
    speculate = rng.choice([0, 0, 0, 1, 4])
    ahead = not speculate and rng.random() < 0.6
    engine = Engine(backend, scheduler, speculate, ahead, clock=lambda: 0.0)
    backend.ahead = static or engine.speculate > 0
    coming.sort(key=lambda r: -r.arrival)
    tried, step = 0, 0
    while coming or engine.busy:
        while coming and (coming[-1].arrival <= step or not engine.busy):
            request = coming.pop()
            tried += 1
            longest = len(request.prompt) + request.max_tokens
            possible = request.prompt and request.max_tokens and longest <= 64
            if possible and -(-(longest - 1) // size) <= count:
                engine.add(request)
                done.append(request)
            else:
                with pytest.raises(Refused, match=f"request {request.id} is refused: "):
                    engine.add(request)
        if scheduler.requests and rng.random() < 0.02:
            number = rng.choice(sorted(scheduler.requests))
            before, request = blocks.free, scheduler.requests[number]
            held = number in blocks.tables
            engine.cancel(number)
            assert request.state is State.CANCELLED and number not in scheduler.requests
            if not static:
                assert number not in blocks.tables and blocks.free >= before
                assert not held or all(number != r.id for r in scheduler.running)
        if scheduler.running and not static and not ahead and rng.random() < 0.1:
            parent = rng.choice(scheduler.running)
            child = Request(100 + step, [0], rng.randint(1, parent.max_tokens), stop=parent.stop)
            child.arrival = float(step)
            unsaid = len(parent.prompt) + child.max_tokens - len(parent.tokens)
            if len(scheduler.running) < running and unsaid > 0:
                engine.fork(parent.id, child)
                done.append(child)
                limit += len(parent.tokens) + child.max_tokens
            else:
                with pytest.raises(Refused):
                    engine.fork(parent.id, child)
        if engine.busy:
            outputs, before = engine.step(), backend.steps
            assert before <= backend.steps
            for output in outputs:
                ended = output.request.state is State.FINISHED
                assert output.tokens and ended == output.finished
        blocks.check()
        assert len(scheduler.running) <= running
        keys = [scheduler.order(r) for r in scheduler.running]
        assert keys == sorted(keys)
        if not static:
            assert set(blocks.tables) == {r.id for r in scheduler.running}
        step += 1
        assert step <= 40 * limit + 100, "it does not get on"
    assert blocks.free == count and not blocks.tables, "a block is lost"
    assert not engine._rows and not engine._ngrams
    for request in done:
        expected = alone(request.prompt, request.max_tokens, request.stop)
        if request.state is State.FINISHED:
            assert request.output == expected
        else:
            assert request.state is State.CANCELLED
            assert request.output == expected[: len(request.output)]
    return sum(r.preemptions for r in done), sum(r.state is State.CANCELLED for r in done)


def traces(request, share=1):
    return settings(
        max_examples=max(1, request.config.getoption("--traces") // share),
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )


def test_random_traces(request):
    """As many as --traces says, each from a seed."""
    seen = {"traces": 0, "preemptions": 0, "cancelled": 0}

    @traces(request)
    @given(st.integers(0, 2**64 - 1))
    def run(seed):
        preemptions, cancelled = play(random.Random(seed))
        seen["traces"] += 1
        seen["preemptions"] += preemptions
        seen["cancelled"] += cancelled

    run()
    print(seen)
    assert min(seen["preemptions"], seen["cancelled"]) > seen["traces"] / 2


@pytest.mark.parametrize("static", [False, True])
def test_traces_that_hypothesis_draws(request, static):
    """Fewer, from draws that it can shrink: a failure comes with a short trace."""

    @traces(request, share=5)
    @given(st.randoms(use_true_random=False))
    def run(rng):
        preemptions, _ = play(rng, static)
        assert not (static and preemptions), "blocks are reserved: nobody is preempted"

    run()


def machine(count=100, size=4, **options):
    from cudatut.book.llm.engine.blocks import NaiveBlocks
    from cudatut.book.llm.engine.scheduler import Scheduler

    return Scheduler(NaiveBlocks(count, size), **options)


def requests(lengths, max_tokens=5, **fields):
    from cudatut.book.llm.engine.request import Request

    return [Request(i, [1] * n, max_tokens, **fields) for i, n in enumerate(lengths)]


def advance(scheduler, token=1):
    step = scheduler.schedule()
    scheduler.finish(step, [[token] * work.last for work in step.work])
    return step


def shown(step):
    return [(w.request.id, w.start, w.stop) for w in step.work]


def test_chunks_of_a_prompt_are_mixed_with_decoding():
    scheduler = machine(token_budget=8, max_running=4)
    for request in requests([3, 20, 2]):
        scheduler.add(request)
    assert shown(advance(scheduler)) == [(0, 0, 3), (1, 0, 5)]
    # Who decodes gets a token first; the rest of the budget goes to the prompt.
    assert shown(advance(scheduler)) == [(0, 3, 4), (1, 5, 12)]
    assert shown(advance(scheduler)) == [(0, 4, 5), (1, 12, 19)]
    assert shown(advance(scheduler)) == [(0, 5, 6), (1, 19, 20), (2, 0, 2)]
    # One that is first by priority leaves a token for each that follows, too.
    scheduler = machine(token_budget=8, max_running=4, policy="priority")
    first, second, long = requests([2, 2, 30])
    long.priority = -1
    scheduler.add(first)
    scheduler.add(second)
    advance(scheduler)
    scheduler.add(long)
    assert shown(advance(scheduler))[-1] == (2, 0, 6)
    assert shown(advance(scheduler)) == [(2, 6, 12), (0, 3, 4), (1, 3, 4)]


@pytest.mark.parametrize(
    ("policy", "order"), [("fcfs", [0, 1, 2]), ("priority", [2, 0, 1]), ("shortest", [1, 2, 0])]
)
def test_policies(policy, order):
    scheduler = machine(policy=policy, max_running=1, token_budget=100)
    for request, priority in zip(requests([30, 10, 20], max_tokens=1), (1, 1, 0)):
        request.priority = priority
        scheduler.add(request)
    assert [advance(scheduler).admitted[0].id for _ in range(3)] == order
    assert not scheduler.requests


def test_longest_first_leaves_no_long_answer_to_the_end():
    from cudatut.book.llm.engine.static_batches import bound

    rng, steps = random.Random(0), {}
    outputs = [rng.randint(8, 64) for _ in range(64)]
    for policy in ("fcfs", "longest"):
        scheduler = machine(count=1000, size=16, policy=policy, max_running=16)
        for request, n in zip(requests([4] * 64), outputs):
            request.max_tokens = n
            scheduler.add(request)
        steps[policy] = 0
        while scheduler.requests:
            advance(scheduler)
            steps[policy] += 1
    static = sum(max(outputs[i : i + 16]) for i in range(0, 64, 16))
    assert static / steps["fcfs"] < 0.9 * bound(outputs, 16) < static / steps["longest"]


def test_the_last_is_preempted_and_comes_back_first():
    scheduler = machine(count=4, size=4, token_budget=64, watermark=0)
    first, second, third = requests([7, 7, 7], max_tokens=9)
    for request in (first, second, third):
        scheduler.add(request)
    assert [r.id for r in advance(scheduler).admitted] == [0, 1]
    advance(scheduler)
    step = advance(scheduler)  # both need a third block, and none is free
    assert step.preempted == [second] and shown(step) == [(0, 8, 9)]
    assert scheduler.waiting == [second, third] and second.tokens == [1] * 9
    while second.computed == 0:
        step = advance(scheduler)
    # What it has said already is computed again with its prompt.
    assert step.admitted[0] is second and (second.computed, len(second.tokens)) == (9, 10)
    assert second.preemptions == 1


def test_a_guess_preempts_nobody():
    scheduler = machine(count=4, size=4, token_budget=64, watermark=0)
    for request in requests([7, 7], max_tokens=9):
        scheduler.add(request)
    advance(scheduler)
    step = scheduler.schedule(lambda request, most: [1] * most)
    assert not step.preempted and [len(w.drafts) for w in step.work] == [0, 0]
    assert [w.stop for w in step.work] == [8, 8]
    # With a free block for one of the two, the first one's guesses get it.
    scheduler = machine(count=5, size=4, token_budget=64, watermark=0)
    for request in requests([7, 7], max_tokens=5):
        scheduler.add(request)
    advance(scheduler)
    step = scheduler.schedule(lambda request, most: [1] * most)
    assert [len(w.drafts) for w in step.work] == [3, 0]


def test_the_watermark_keeps_blocks_for_those_that_run():
    for watermark, admitted in ((0, [0, 1]), (0.25, [0])):
        scheduler = machine(count=4, size=4, watermark=watermark, token_budget=64)
        for request in requests([8, 8]):
            scheduler.add(request)
        assert [r.id for r in advance(scheduler).admitted] == admitted
    # It keeps nobody out who would be alone.
    scheduler = machine(count=4, size=4, watermark=1.0, token_budget=64)
    scheduler.add(requests([12])[0])
    assert advance(scheduler).admitted


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "why"),
    [
        (0, 1, "its prompt is empty"),
        (1, 0, "max_tokens is less than 1"),
        (40, 25, "it may have 65 tokens; the model knows 64"),
        (30, 12, "it may need 11 blocks; there are 10"),
    ],
)
def test_what_can_never_be_answered_is_refused(prompt, max_tokens, why):
    from cudatut.book.llm.engine.scheduler import Refused

    scheduler = machine(count=10, size=4, context=64)
    (request,) = requests([prompt], max_tokens)
    with pytest.raises(Refused, match=f"^request 0 is refused: {why}$"):
        scheduler.add(request)
    assert not scheduler.requests
    scheduler.add(requests([30], 11)[0])  # the last token is never computed: 40
    with pytest.raises(Refused, match="the number 0 is taken"):
        scheduler.add(requests([1])[0])


def test_bad_settings_are_refused():
    from cudatut.book.llm.engine.sampler import Sampling
    from cudatut.book.llm.engine.scheduler import Refused

    with pytest.raises(ValueError, match="each of 9 running requests"):
        machine(token_budget=8, max_running=9)
    with pytest.raises(ValueError, match="'lifo' is none of fcfs, priority, shortest, longest"):
        machine(policy="lifo")
    scheduler = machine(max_running=1)
    one, two = requests([1, 1])
    two.sampling = Sampling(top_p=0.0)
    scheduler.add(one)
    with pytest.raises(ValueError, match="top_p"):
        scheduler.add(two)
    with pytest.raises(Refused, match="does not run"):
        scheduler.fork(0, requests([1, 1])[1])
    with pytest.raises(KeyError):
        scheduler.cancel(1)


def test_cancelled_between_schedule_and_finish():
    scheduler = machine()
    for request in requests([5, 5]):
        scheduler.add(request)
    step = scheduler.schedule()
    scheduler.cancel(0)
    scheduler.finish(step, [[1], [1]])
    assert scheduler.blocks.free == 98 and [r.id for r in scheduler.running] == [1]


def test_a_fork_needs_something_left_to_say():
    from cudatut.book.llm.engine.scheduler import Refused

    scheduler = machine(max_running=3)
    parent, near, child = requests([3, 3, 3], max_tokens=9)
    scheduler.add(parent)
    for _ in range(4):
        advance(scheduler)
    near.max_tokens = 4
    with pytest.raises(Refused, match="would have its tokens already"):
        scheduler.fork(0, near)
    scheduler.fork(0, child.__class__(5, [], 5))
    assert [(r.id, r.left) for r in scheduler.running] == [(0, 5), (5, 1)]
    while scheduler.requests:
        advance(scheduler)
    assert scheduler.blocks.free == 100


def test_static_batches_wait_for_their_longest():
    from cudatut.book.llm.engine.blocks import NaiveBlocks
    from cudatut.book.llm.engine.request import Request
    from cudatut.book.llm.engine.static_batches import StaticBatches, bound

    outputs = [2, 9, 3, 4, 4, 4]
    continuous, static = machine(max_running=2), StaticBatches(NaiveBlocks(100, 4), max_running=2)
    steps = {}
    for name, scheduler in (("continuous", continuous), ("static", static)):
        for i, n in enumerate(outputs):
            scheduler.add(Request(i, [1], n))
        steps[name] = 0
        while scheduler.requests:
            advance(scheduler)
            steps[name] += 1
    assert steps == {"continuous": 13, "static": 9 + 4 + 4}
    assert bound(outputs, 2) == pytest.approx(17 / 13)
    assert bound([5, 1], 2) == 1 and bound([8] * 6, 3) == 1


def test_the_bound_holds():
    from cudatut.book.llm.engine.static_batches import bound

    rng = random.Random(0)
    for _ in range(50):
        outputs = [rng.randint(1, 40) for _ in range(rng.randint(1, 30))]
        slots = rng.randint(1, 8)
        scheduler = machine(max_running=slots, token_budget=slots, size=64)
        for request, n in zip(requests([1] * len(outputs)), outputs):
            request.max_tokens = n
            scheduler.add(request)
        steps = 0
        while scheduler.requests:
            advance(scheduler)
            steps += 1
        static = sum(max(outputs[i : i + slots]) for i in range(0, len(outputs), slots))
        assert static / steps <= bound(outputs, slots) + 1e-9


@pytest.mark.parametrize("kind", ["prefix", "radix"])
def test_a_prompt_is_looked_up_once(kind):
    from cudatut.book.llm.engine.prefix import PrefixBlocks
    from cudatut.book.llm.engine.radix import RadixBlocks
    from cudatut.book.llm.engine.request import Request
    from cudatut.book.llm.engine.scheduler import Scheduler

    blocks = {"prefix": PrefixBlocks, "radix": RadixBlocks}[kind](20, 4)
    asked, lookup = [], blocks.lookup
    blocks.lookup = lambda tokens: asked.append(list(tokens)) or lookup(tokens)
    scheduler = Scheduler(blocks)
    prompts = [list(range(9)), [*range(8), 9, 9]]
    for number, prompt in enumerate(prompts):
        scheduler.add(Request(number, prompt, 1))
        scheduler.finish(scheduler.schedule(), [[1]])
    assert asked == prompts and not scheduler.requests
    blocks.check()
