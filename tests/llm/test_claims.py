"""The claims of the part that need no GPU: each verdict, and that another measurement would change it."""

import pytest

from cudatut import catalog, paths, results

LLM = paths.examples_dir() / "llm"


@pytest.fixture
def claimed(monkeypatch):
    """The claims of cells of an example, by id; what they need is run before them."""

    def run(chapter, *titles, given=None):
        found = {}
        monkeypatch.setattr(
            results, "show", lambda one: found.update({getattr(one, "id", ""): one})
        )
        cells, space = catalog.cells(LLM / chapter / "claims.py"), dict(given or {})
        for title in titles:
            exec(compile(cells[title], f"{chapter}#{title}", "exec"), space)
        return found, space

    return run


def test_prefix_caching(claimed):
    found, _ = claimed("block_managers", "setup", "claim-hash", "claim-similar")
    own, similar = found["block-hash-of-its-tokens"], found["similar-prompts-share"]
    alone, all_of_them = (side.value for side in own.sides)
    assert own.verdict == "depends" and alone > 1 and all_of_them == 0
    assert similar.verdict == "depends"
    assert [side.value for side in similar.sides] == [0.0, 87.5]


def test_what_gives_way_by_vllms_old_rules(claimed):
    import cudatut as ct
    from cudatut.book.llm.engine.blocks import NaiveBlocks
    from cudatut.book.llm.engine.prefill_first import PrefillFirst
    from cudatut.book.llm.engine.request import Request

    given = {"ct": ct, "NaiveBlocks": NaiveBlocks, "PrefillFirst": PrefillFirst, "Request": Request}
    found, space = claimed(
        "reading_vllm", "claim-swap-for-whom", "claim-preempted-by-size", given=given
    )
    assert found["vllm-swap-for-new"].verdict == "refuted"
    by_size = found["vllm-preempted-by-size"]
    assert by_size.verdict == "depends" and by_size.measured == by_size.expected
    assert by_size.sides[1].value == ["computed again"] * 2
    assert space["mode"](1, 8000, space["few_tokens"]) == "swapped out"
    # Who lets new ones in for running ones would be seen.

    class Yielding(PrefillFirst):
        def schedule(self, propose=None):
            step = super().schedule(propose)
            if self.waiting and self.running and not step.preempted:
                self._preempt(step)
                kept = [w for w in step.work if w.request not in step.preempted]
                step.work[:] = kept
                self.admit(step, self.token_budget)
            return step

    space["PrefillFirst"] = Yielding
    assert space["swapped_for"](20) == "for a new request"


@pytest.mark.parametrize(
    ("longest", "mean", "says"),
    [(3.0, 1.5, "confirmed"), (3.0, 0.7, "depends"), (3.0, 0.99, "open"), (0.5, 0.7, "refuted")],
)
def test_both_ways_to_count_gaps_decide(claimed, longest, mean, says):
    import numpy as np

    import cudatut as ct

    fast = {"gap, p99": 1.0, "gap, mean": 1.0}
    slow = {"gap, p99": longest, "gap, mean": mean}
    slower = ("prompts first", "chunks, 16,384")
    rules = (*slower, "chunks, 512", "chunks, 2,048")
    seen = {name: [slow if name in slower else fast] * 20 for name in rules}
    given = {"ct": ct, "np": np, "seen": seen, "alone": dict.fromkeys(rules, fast)}
    found, _ = claimed("reading_vllm", "gaps", "claim-gap", "claim-budget", given=given)
    assert found["vllm-prefill-first-gaps"].verdict == says
    assert found["vllm-token-budget"].verdict == says


def test_what_follows_from_rules_and_formulas(claimed):
    import numpy as np

    import cudatut as ct

    given = {"ct": ct, "np": np}
    rows, space = claimed("flash_principle", "claim-rows", given=given)
    assert rows["flash-queries-at-most-keys"].verdict == "confirmed"
    assert space["tiles"](12_288, 64) == (48, 48) and space["tiles"](40_000, 64) == (64, 157)
    held, _ = claimed("paged_attention", "claim-sequences", "claim-formula", given=given)
    assert held["sequences-in-a-batch"].verdict == "depends"
    assert held["paged-formula-denominator"].verdict == "refuted"
    loop, space = claimed("softmax", "claim-loop", given=given)
    assert loop["triton-k-loop"].measured == 32
    assert space["read"](4096, 32, lambda k: k * 32) == 128
