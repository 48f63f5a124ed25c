"""Block managers: no block is lost, shared wrongly or freed twice, whatever is asked in whatever order."""

import pytest

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.stateful import (  # noqa: E402
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

SIZE = 4


def managers():
    from cudatut.book.llm.engine.blocks import NaiveBlocks
    from cudatut.book.llm.engine.prefix import PrefixBlocks
    from cudatut.book.llm.engine.radix import RadixBlocks

    return {"naive": NaiveBlocks, "prefix": PrefixBlocks, "radix": RadixBlocks}


def chain(tokens):
    """What is computed for the last of these tokens: it depends on all of them, as keys and values do."""
    return hash(tuple(tokens))


class Machine(RuleBasedStateMachine):
    """Requests come, write, fork and go. `cache` is the memory: what was written into each slot.

    Every request can at any time read, through its table, exactly what was computed for its own tokens.
    """

    @initialize(kind=st.sampled_from(["naive", "prefix", "radix"]), count=st.integers(1, 12))
    def start(self, kind, count):
        self.blocks = managers()[kind](count, SIZE)
        self.cache = [None] * (count * SIZE)
        self.texts, self.number = {}, 0

    def read(self, request):
        table = self.blocks.table(request)
        return [
            self.cache[table.blocks[i // SIZE] * SIZE + i % SIZE]
            for i in range(self.texts[request][1])
        ]

    def snapshot(self):
        blocks = self.blocks
        tables = {r: (list(t.blocks), t.computed) for r, t in blocks.tables.items()}
        return tables, list(blocks.refs), sorted(blocks.idle_blocks())

    # Few different tokens: prefixes have to meet.
    @rule(tokens=st.lists(st.integers(0, 1), min_size=1, max_size=24), handed=st.booleans())
    def begin(self, tokens, handed):
        self.number += 1
        fits, found = self.blocks.fits(tokens), self.blocks.lookup(tokens)
        assert self.blocks.fits(tokens, found=found) == fits
        computed = self.blocks.begin(self.number, tokens, list(found) if handed else None)
        assert self.blocks.table(self.number).blocks == found
        assert computed == len(found) * SIZE < len(tokens)
        self.texts[self.number] = [tokens, computed]
        if fits:
            before = self.blocks.free
            self.write(self.number, len(tokens))
            assert before - self.blocks.free == self.blocks.blocks_for(len(tokens)) - len(found)

    @precondition(lambda self: self.texts)
    @rule(data=st.data(), more=st.lists(st.integers(0, 1), max_size=6), ahead=st.integers(0, 5))
    def grow(self, data, more, ahead):
        request = data.draw(st.sampled_from(sorted(self.texts)))
        text = self.texts[request]
        text[0] = text[0] + more
        stop = data.draw(st.integers(text[1], len(text[0])))
        if stop + ahead > text[1]:
            self.write(request, stop, ahead)

    def write(self, request, stop, ahead=0):
        """Compute up to `stop`; and `ahead` guessed tokens, which turn out wrong."""
        from cudatut.book.llm.engine.blocks import OutOfBlocks

        tokens, start = self.texts[request]
        before = self.snapshot()
        try:
            copies = self.blocks.reserve(request, start, stop + ahead)
        except OutOfBlocks:
            assert self.snapshot() == before
            return
        for old, new in copies:
            self.cache[new * SIZE : (new + 1) * SIZE] = self.cache[old * SIZE : (old + 1) * SIZE]
        table = self.blocks.table(request)
        for i in range(start, stop + ahead):
            block = table.blocks[i // SIZE]
            assert self.blocks.refs[block] == 1, "a shared block is written"
            value = chain(tokens[: i + 1]) if i < stop else "wrong guess"
            self.cache[block * SIZE + i % SIZE] = value
        self.blocks.commit(request, tokens, stop)
        self.texts[request][1] = stop

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def fork(self, data):
        parent = data.draw(st.sampled_from(sorted(self.texts)))
        self.number += 1
        self.blocks.fork(parent, self.number)
        self.texts[self.number] = list(self.texts[parent])

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def release(self, data):
        from cudatut.book.llm.engine.blocks import UnknownRequest

        request = data.draw(st.sampled_from(sorted(self.texts)))
        self.blocks.release(request)
        del self.texts[request]
        with pytest.raises(UnknownRequest):
            self.blocks.release(request)

    @invariant()
    def all_is_well(self):
        if not hasattr(self, "blocks"):
            return
        self.blocks.check()
        for request, (tokens, computed) in self.texts.items():
            assert self.read(request) == [chain(tokens[: i + 1]) for i in range(computed)]

    def teardown(self):
        for request in getattr(self, "texts", ()):
            self.blocks.release(request)
        if hasattr(self, "blocks"):
            self.blocks.check()
            assert self.blocks.free == self.blocks.count


def test_no_block_is_lost_shared_wrongly_or_freed_twice(request):
    from hypothesis.stateful import run_state_machine_as_test

    examples = min(request.config.getoption("--traces"), 2000)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("kind", ["naive", "prefix", "radix"])
def test_misuse_is_refused(kind):
    from cudatut.book.llm.engine.blocks import BlockError, OutOfBlocks, UnknownRequest

    blocks = managers()[kind](4, SIZE)
    assert blocks.begin("a", [1] * 6) == 0
    with pytest.raises(BlockError, match="has blocks already"):
        blocks.begin("a", [1])
    with pytest.raises(UnknownRequest, match="'b' has no blocks"):
        blocks.reserve("b", 0, 1)
    with pytest.raises(OutOfBlocks, match="needs 5 blocks; 4 are free"):
        blocks.reserve("a", 0, 17)
    with pytest.raises(BlockError, match="cannot be computed"):
        blocks.commit("a", [1] * 6, 1)
    assert not blocks.reserve("a", 0, 6)
    blocks.commit("a", [1] * 6, 6)
    with pytest.raises(BlockError, match="token 5 cannot be written"):
        blocks.reserve("a", 5, 7)
    with pytest.raises(BlockError, match="token 9 cannot be written"):
        blocks.reserve("a", 9, 10)
    blocks.fork("a", "b")
    with pytest.raises(BlockError, match="has blocks already"):
        blocks.fork("a", "b")
    with pytest.raises(BlockError):
        managers()[kind](0, SIZE)


def test_a_fork_copies_only_what_it_writes_into():
    blocks = managers()["naive"](10, SIZE)
    blocks.begin("a", [1] * 6)
    blocks.reserve("a", 0, 6)
    blocks.commit("a", [1] * 6, 6)
    blocks.fork("a", "b")
    assert blocks.free == 8
    old = list(blocks.table("b").blocks)
    ((source, target),) = blocks.reserve("b", 6, 7)
    assert source == old[1] and blocks.table("b").blocks == [old[0], target]
    assert not blocks.reserve("a", 6, 7), "the other one owns its block now"
    # Blocks that are shared but hold nothing yet are replaced without a copy.
    blocks.reserve("a", 6, 12)
    blocks.fork("a", "c")
    assert not blocks.reserve("c", 8, 9)


@pytest.mark.parametrize("kind", ["prefix", "radix"])
def test_a_prefix_is_found_after_its_request_has_left_until_it_is_evicted(kind):
    blocks = managers()[kind](6, SIZE)

    def run(name, tokens):
        computed = blocks.begin(name, tokens)
        blocks.reserve(name, computed, len(tokens))
        blocks.commit(name, tokens, len(tokens))
        blocks.release(name)
        return computed

    shared = [1, 2, 3, 4, 5, 6, 7, 8]
    assert run("a", [*shared, 9]) == 0
    assert run("b", [*shared, 10, 11]) == 8
    # Also the very same prompt computes a token: its logits are wanted.
    assert run("c", shared) == 4
    assert run("d", [2, *shared[1:]]) == 0, "equal tokens after another beginning"
    assert blocks.evictions == 0 and blocks.free == 6
    assert run("e", [7] * 12) == 0
    assert blocks.evictions == 1
    assert run("f", [*shared, 9]) == 4, "the end of the oldest was evicted first"


@pytest.mark.parametrize("seed", range(3))
def test_hashes_and_tree_find_the_same(seed):
    """With room for all, and one request after the other."""
    import random

    rng = random.Random(seed)
    found = {}
    for kind in ("prefix", "radix"):
        rng.seed(seed)
        blocks, found[kind] = managers()[kind](4000, SIZE), []
        for number in range(200):
            tokens = [rng.randrange(2) for _ in range(rng.randrange(1, 60))]
            computed = blocks.begin(number, tokens)
            blocks.reserve(number, computed, len(tokens))
            blocks.commit(number, tokens, len(tokens))
            blocks.release(number)
            found[kind].append(computed)
        blocks.check()
    assert found["prefix"] == found["radix"] and sum(found["prefix"]) > 500
