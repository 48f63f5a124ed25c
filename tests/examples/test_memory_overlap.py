"""Overlap without a GPU: the formula beside the queues operation by operation, and what reads a trace."""

import pytest

from cudatut.book.memory.overlap.model import (
    STAGES,
    best_count,
    breadth_first,
    depth_first,
    finish,
    predict,
)
from cudatut.book.memory.overlap.spans import broken, busy, in_chunks
from cudatut.errors import CudatutError

BALANCES = [(20.0, 25.0, 20.0), (20.0, 5.0, 20.0), (20.0, 60.0, 30.0)]


def of(balance, cost=0.003):
    return {stage: (ms, cost) for stage, ms in zip(STAGES, balance)}


@pytest.mark.parametrize("balance", BALANCES)
@pytest.mark.parametrize("count", [1, 2, 8, 64])
@pytest.mark.parametrize("streams", [1, 3, 4, 8])
def test_the_formula_is_what_the_queues_make_of_depth_first(balance, count, streams):
    stages = of(balance)
    cost = {stage: ms / count + fixed for stage, (ms, fixed) in stages.items()}
    expected = finish(depth_first(count), cost, streams)
    assert predict(count, stages, streams) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("balance", BALANCES)
def test_the_best_number_of_chunks_is_where_the_formula_is_least(balance):
    stages = of(balance)
    best = best_count(stages)
    least = min(range(1, 1000), key=lambda count: predict(count, stages))
    assert predict(round(best), stages) == pytest.approx(predict(least, stages), rel=1e-4)


def test_breadth_first_needs_a_stream_for_each_chunk():
    cost = dict.fromkeys(STAGES, 1.0)
    assert finish(breadth_first(64), cost, 64) == finish(depth_first(64), cost, 4) == 66
    assert finish(breadth_first(64), cost, 4) > 180  # of 192


def test_one_slow_stage_leaves_one_chunk():
    assert best_count({"in": (0.0, 1.0), "kernel": (9.0, 1.0), "out": (0.0, 1.0)}) == 1


def notes(chunks, late=None):
    """Twice the calls of a pipeline whose stages take a ms each; the kernel of chunk `late` begins too early."""
    for turn in range(2):
        for chunk in range(chunks):
            for at, stage in enumerate(STAGES):
                start = 1e9 * turn + 1e6 * (chunk + at)
                start -= 5e5 * (chunk == late and stage == "kernel")
                yield 3 * (turn * chunks + chunk) + at, stage, start, start + 1e6


def test_the_second_run_is_told_in_chunks():
    rows = in_chunks(list(notes(3)))
    assert rows[2] == {"in": (2, 3), "kernel": (3, 4), "out": (4, 5)}
    assert broken(rows) == 0
    assert busy(rows) == [0, 2, 2, 1]


def test_several_notes_of_a_call_are_one():
    split = []
    for number, stage, start, end in notes(2):
        split += [(number, stage, start, start + 1e5), (number, stage, start + 2e5, end)]
    assert in_chunks(split) == in_chunks(list(notes(2)))


def test_a_stage_that_begins_too_early_is_noticed():
    assert broken(in_chunks(list(notes(4, late=2)))) == 1


def test_a_missing_copy_is_no_timeline():
    with pytest.raises(CudatutError, match="not the same stages"):
        in_chunks([one for one in notes(2) if one[0] not in (6, 7)])
