"""What the sorts and top-k of examples/primitives refuse, and plan, before any launch."""

import itertools
import sys
from types import ModuleType

import compiles_nothing
import numpy as np
import pytest

import cudatut as ct
from cudatut.book.primitives.sort import sort as sorts
from cudatut.book.primitives.sort.sort import TYPES, Direct, OneTile, Passes, Sweep, fastest
from cudatut.book.primitives.topk import topk
from cudatut.book.primitives.topk.topk import TopK, power_of_two


@pytest.mark.parametrize("way", [Direct, Passes, Sweep, OneTile])
def test_types_of_keys(way):
    for dtype in TYPES:
        assert way(dtype).passes == np.dtype(dtype).itemsize
    for other in ("int16", "uint8", "complex64", "bool"):
        with pytest.raises(TypeError, match=f"sort: keys of {other}"):
            way(other)


def test_plans():
    assert Sweep("uint32").defines["KIND"] == 0
    assert Sweep("int64").defines["KIND"] == 1
    assert Sweep("float64", pairs=True).defines["PAIRS"] == 1
    assert Sweep("uint32", plan={"THREADS": 512}).threads == 512
    for dtype in TYPES:
        for pairs in (False, True):
            sort = Sweep(dtype, pairs)
            # Two blocks fit on an SM with 164 KB, and one on that of sm_75, which has 64 KB; 1 KB is left for variables.
            assert sort.shared() <= 63 << 10
            assert sort.tile >= 4096


def test_shared_memory_of_a_tile():
    sort = Sweep("uint32", plan={"THREADS": 256, "ITEMS": 4})
    assert sort.shared() == 4 * 1024 + 4 * 256 + 4 * 256 * 8
    assert sort.shared(match=3) == 4 * 1024 + 4 * 256 + 4 * 256
    assert sort.shared(staged=False) == 4 * 256 + 4 * 256 * 8


def test_values_that_go_after_their_keys_need_no_memory_of_their_own():
    plan = {"THREADS": 256, "ITEMS": 24}
    alone, later = Sweep("uint32", plan=plan), Sweep("uint32", True, plan)
    beside = Sweep("uint32", True, {**plan, "TOGETHER": 1})
    assert later.shared() == alone.shared() == beside.shared() - 4 * 256 * 24
    assert Passes("uint32", True, plan).shared() == beside.shared()


@pytest.mark.parametrize("nbytes", [227 << 10, 99 << 10, 64 << 10])
def test_tiles_of_three_launches_fit_into_a_block(nbytes, monkeypatch):
    compiles_nothing.stands_in(monkeypatch).shared_per_block_optin = nbytes
    for dtype in TYPES:
        for pairs in (False, True):
            assert Passes(dtype, pairs).shared() + 1024 <= nbytes
    assert Passes("uint64", True).tile == (3840 if nbytes == 64 << 10 else 4608)
    assert Passes("uint64", True, {"ITEMS": 4}).tile == 1536  # as asked for


def test_one_block_has_no_places_of_digits(monkeypatch):
    compiles_nothing.stands_in(monkeypatch)
    for pairs, size in ((False, 4), (True, 8)):
        sort = OneTile("uint32", pairs)
        assert sort.shared() == size * sort.tile + 4 * 256 * 8


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
@pytest.mark.parametrize("pairs", [False, True])
def test_passes_take_turns_and_end_in_out(dtype, pairs):
    sort = Sweep(dtype, pairs)
    sort.other, sort.other_values, sort.no_values = "other", "other values", "none"
    steps = list(sort.steps("keys", "out", "values", "values out"))
    assert [step for step, *_ in steps] == list(range(sort.passes))
    assert steps[0][1] == "keys" and steps[-1][3] == "out"
    for before, after in itertools.pairwise(steps):
        assert before[3:] == after[1:3]  # each pass reads what the last one wrote
    for _, here, values, there, values_out in steps:
        assert here != there and there != "keys"
        own = {"keys": "values", "out": "values out", "other": "other values"}
        if pairs:
            assert (values, values_out) == (own[here], own[there])


@pytest.mark.parametrize(
    "nbytes, most",  # the last is just too little for 16 keys of a thread
    [(227 << 10, 8192), (99 << 10, 8192), (64 << 10, 8192), (40 << 10, 4096), (25_088, 1024)],
)
def test_one_block_takes_what_its_memory_holds(nbytes, most, monkeypatch):
    gpu = compiles_nothing.stands_in(monkeypatch)
    gpu.shared_per_block_optin = nbytes
    assert OneTile("uint32").most == most
    for dtype in TYPES:
        for pairs in (False, True):
            sort = OneTile(dtype, pairs)
            for n in (1, 1024, min(1025, sort.most), sort.most):
                sort._n = n
                assert n <= sort.tile and sort.shared() + 1024 <= nbytes  # and what it declares
            assert type(fastest(sort.most, dtype, pairs)) is OneTile
            assert type(fastest(sort.most + 1, dtype, pairs)) is Sweep


def test_kernels_are_compiled_ahead_as_they_are_asked_for_later(monkeypatch):
    compiles_nothing.stands_in(monkeypatch)
    ahead = []
    monkeypatch.setattr(ct, "compile_ahead", lambda instances: ahead.extend({*instances}))
    passes = Passes("uint32", True)
    sorts.compile_ahead([passes, Passes("uint32", True)])  # those of both are the same
    assert {name for _, name, _ in ahead} == {"count_tiles", "scan_tiles", "scatter"}
    assert len(ahead) == 3
    later = passes.compiled("counting", "scatter", STAGED=1)
    assert (later.source, later.name, later.defines) in ahead
    ahead.clear()
    topk.compile_ahead([("stream", {"BLOCKS": 2}), ("select", {})])
    assert sorted((name, own["VEC"]) for _, name, own in ahead) == [
        ("topk_select", 1),
        ("topk_stream", 1),
        ("topk_stream", 4),
    ]
    later = TopK(1, 100, 5, BLOCKS=2).compiled(4)
    assert (later.source, later.name, later.defines) in ahead


def test_only_the_first_pass_of_whole_numbers_may_take_any_order():
    assert Sweep("uint32").any_order(0) and Sweep("int64").any_order(0)
    assert not any(Sweep("uint32").any_order(step) for step in (1, 2, 3))
    assert not Sweep("float32").any_order(0)
    assert not Sweep("uint32", pairs=True).any_order(0)
    assert not Sweep("uint32", plan={"FIRST_ANY": 0}).any_order(0)


def test_top_k_refuses(monkeypatch):
    for rows, n, k in ((0, 5, 1), (1, 5, 0), (1, 5, 6), (1, 1 << 31, 5)):
        with pytest.raises(ValueError, match="top-k"):
            TopK(rows, n, k, BLOCKS=1)
    with pytest.raises(ValueError, match="too large for this plan"):
        TopK(1, 1 << 20, 1900, BLOCKS=1)
    with pytest.raises(ValueError, match="too large for this plan"):
        TopK(1, 1 << 20, 1000, BLOCKS=8)
    with pytest.raises(ValueError, match="a warp keeps 32"):
        TopK(1, 100, 33, "lanes")
    with pytest.raises(ValueError, match="first step has 512 numbers: take THREADS=256"):
        TopK(1, 1 << 20, 513, BLOCKS=1, THREADS=128)
    compiles_nothing.stands_in(monkeypatch)
    for k, plan in ((512, {"THREADS": 128}), (513, {"THREADS": 256}), (1024, {})):
        assert TopK(1, 1 << 20, k, BLOCKS=1, **plan).k == k
    assert TopK(1, 1 << 20, 513, "select", THREADS=128).k == 513  # reads rows again
    assert [power_of_two(k) for k in (1, 2, 3, 50, 64, 65)] == [1, 2, 4, 64, 64, 128]


def test_keys_whose_order_is_known(monkeypatch):
    """data.py knows the order of repeated keys, equal ones as they stood."""
    driver = ModuleType("pycuda.driver")
    monkeypatch.setitem(sys.modules, "pycuda", ModuleType("pycuda"))
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    monkeypatch.setattr(sys.modules["pycuda"], "driver", driver, raising=False)
    name = "cudatut.book.primitives.sort.data"
    monkeypatch.delitem(sys.modules, name, raising=False)
    from importlib import import_module

    keys = import_module(name).Keys.__new__(import_module(name).Keys)
    for most in (3, 100, 1 << 32):
        keys.host = np.random.default_rng(most).integers(0, most, 500, dtype="uint32")
        keys.period, keys.times = 500, 4
        whole = np.tile(keys.host, 4)
        assert (keys.order() == np.sort(whole)).all()
        assert (keys.where() == np.argsort(whole, kind="stable")).all()
    monkeypatch.delitem(sys.modules, name, raising=False)
