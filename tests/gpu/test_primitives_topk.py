"""Top-k: every way on ragged sizes, ties, NaN and zeros of both signs, strided rows, planted faults, and arrays that do not fit."""

import itertools

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.primitives.topk.topk import TopK

PLANS = [
    {"BLOCKS": 1},
    {"BLOCKS": 2},
    {"BLOCKS": 4},
    {"BLOCKS": 2, "AHEAD": 1},
    {"BLOCKS": 1, "THREADS": 256, "ROOM": 1024, "SLACK": 32, "DIGIT_BITS": 8},
    {"BLOCKS": 2, "INLINED": 1, "SLACK": 16},
]
KINDS = ("random", "rising", "falling", "few", "zeros", "NaN", "late NaN", "all NaN", "-inf")


def data(kind, rows, n, seed=0):
    chance = ct.rng(seed)
    x = chance.standard_normal((rows, n), dtype="float32")
    if kind in ("rising", "falling"):
        x.sort(axis=1)
        x = x[:, ::-1].copy() if kind == "falling" else x
    if kind == "few":
        x = np.round(x)
    if kind == "zeros":
        x = np.where(x > 0, np.float32(0), np.float32(-0.0))
    if kind == "NaN":
        x[chance.random(x.shape) < 0.3] = np.nan
        x[chance.random(x.shape) < 0.3] = -np.inf
        x[chance.random(x.shape) < 0.1] = np.inf
    if kind == "late NaN":  # after the first step, which comes in as it is
        x[:, 5_000::997] = np.nan
    if kind == "all NaN":
        x[:] = np.nan
    if kind == "-inf":
        x[:] = -np.inf
    return x


def places(x, k):
    """NaN first, then the largest; of equals the smaller index."""
    nan, at = np.isnan(x), np.arange(x.shape[1])
    large = np.where(nan, np.inf, x)
    return np.array([np.lexsort((at, -large[r], ~nan[r]))[:k] for r in range(len(x))])


def expect(run, x, device=None):
    values, indices = ct.empty((run.rows, run.k), "float32"), ct.empty((run.rows, run.k), "int32")
    at = places(x, run.k)
    bits = np.take_along_axis(x, at, axis=1).view("uint32")
    for _ in range(2):  # the tickets are as before
        ct.poison(values), ct.poison(indices)
        run(ct.to_device(x) if device is None else device, values, indices)
        ct.check(indices, at, name="where they lie", rtol=0)
        assert (values.get().view("uint32") == bits).all()


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_stream(plan, kind):
    for n, k in ((1, 1), (33, 20), (4097, 50), (20_011, 50), (20_012, 200)):
        if k + plan.get("SLACK", 256) <= plan.get("ROOM", 2048):
            expect(TopK(2, n, k, **plan), data(kind, 2, n))


@pytest.mark.parametrize("way", ["select", "lanes", "stream"])
def test_ways(way):
    for n, kind in itertools.product(ct.RAGGED, ("random", "few", "NaN")):
        expect(TopK(3, n, min(n, 32), way), data(kind, 3, n))


def test_k_up_to_its_limit():
    expect(TopK(1, 50_001, 1024), data("few", 1, 50_001))
    expect(TopK(1, 300_001, 1000), data("random", 1, 300_001))
    # All of the first step, and nothing after it: -inf comes in with no later one.
    for slack in (0, 256):
        run = TopK(1, 20_003, 512, BLOCKS=2, THREADS=128, SLACK=slack)
        for kind in ("-inf", "random"):
            expect(run, data(kind, 1, 20_003))


def test_rows_of_a_wider_matrix():
    """Rows may lie apart, and begin where 16 bytes do not."""
    x = data("random", 3, 5_003)
    for first, last in ((0, 5_003), (1, 4_098), (4, 4_100)):
        view = ct.to_device(x)[:, first:last]
        part = np.ascontiguousarray(x[:, first:last])
        expect(TopK(3, last - first, 20), part, device=view)


def test_many_rows_of_few():
    expect(TopK(4096, 70, 8), data("few", 4096, 70))


FAULTS = {  # none of them writes outside of the output
    "late NaN": [("if (x <= limit || index >= end)", "if (!(x > limit) || index >= end)")],
    "few": [  # ties go to the larger index
        ("(Word)order(x) << 32 | ~index", "(Word)order(x) << 32 | index"),
        ("return ~(unsigned)word", "return (unsigned)word"),
    ],
}


def test_what_does_not_fit():
    x, values = ct.to_device(data("random", 2, 100)), ct.empty((2, 5), "float32")
    indices = ct.empty((2, 5), "int32")
    run = TopK(2, 100, 5)
    with pytest.raises((TypeError, ValueError)):
        run(ct.to_device(np.zeros((2, 100))), values, indices)
    with pytest.raises((TypeError, ValueError)):
        run(x[:, :99], values, indices)
    with pytest.raises((TypeError, ValueError)):
        run(x, values, ct.empty((2, 5), "int64"))
    with pytest.raises((TypeError, ValueError)):
        run(x, x[:, :5], indices)
    for rows, n, k in ((0, 5, 1), (1, 5, 0), (1, 5, 6)):
        with pytest.raises(ValueError, match="top-k"):
            TopK(rows, n, k)
    with pytest.raises(ValueError, match="too large"):
        TopK(1, 1 << 20, 1900)
    with pytest.raises(ValueError, match="keeps 32"):
        TopK(1, 100, 33, "lanes")
    with pytest.raises(ValueError, match="take THREADS=256"):
        TopK(1, 1 << 20, 513, BLOCKS=1, THREADS=128)


def test_faults_that_are_planted(monkeypatch):
    """NaN that stay out, and ties that go elsewhere, are noticed."""
    folder = ct.paths.examples_dir() / "primitives/topk"
    select = (folder / "select.cuh").read_text(encoding="utf-8")
    whole = (folder / "topk.cu").read_text(encoding="utf-8")
    whole = whole.replace('#include "select.cuh"', select.replace("#pragma once", ""))
    for kind, changes in FAULTS.items():
        text, run = whole, TopK(2, 9_001, 50, BLOCKS=1)
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        name = f"topk_{run.way}"
        broken = ct.Kernel(text, name, {**run.plan, "VEC": 1})
        monkeypatch.setattr(run, "compiled", lambda vec, broken=broken: broken)
        with pytest.raises((ct.CheckError, AssertionError)):
            expect(run, data(kind, 2, 9_001))
