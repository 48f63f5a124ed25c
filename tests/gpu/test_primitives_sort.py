"""Radix sorts: every way and type on ragged sizes, stability, NaN and zeros, planted faults, and arrays that do not fit."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.primitives.sort.sort import TYPES, Direct, OneTile, Passes, Sweep, fastest

LENGTHS = (*ct.RAGGED, 2, 255, 257, 8191, 8192, 8193, 100_003)
SMALL = {"THREADS": 256, "ITEMS": 4}
PLANS = [
    {},
    {"WINDOW": 1},
    {"BUMP": 0},
    {"MATCH": 1},
    {"MATCH": 2, "SHIFTED": 1},
    {"COLUMNS": 0},
    {"COLUMNS": 1},
    {"FIRST_ANY": 0},
    {"WIDE": 1, "ITEMS": 16},
    {"THREADS": 512, "ITEMS": 16, "MIN_BLOCKS": 1},
    {"TOGETHER": 1, "THREADS": 256, "ITEMS": 24},
    {"THREADS": 320, "ITEMS": 9},  # ranks and digits fill no word
    SMALL,
]


def numbers(n, dtype, few=False, seed=0):
    """Random bits, so floats have every kind of NaN; few: many equal ones, zeros of both signs among them."""
    kind, chance = np.dtype(dtype), ct.rng(seed + n)
    if few:
        whole = np.round(2 * chance.standard_normal(n))
        if kind.kind == "f":
            whole[chance.random(n) < 0.1] = np.nan
            whole[chance.random(n) < 0.1] = np.inf
            return whole.astype(dtype)
        return whole.astype("int64").astype(dtype)
    return chance.integers(0, 256, n * kind.itemsize, dtype="uint8").view(kind)


def expect(sort, x, launches=2):
    """NumPy's stable sort, bit by bit; twice, so that what a sort leaves behind is right for the next."""
    n, word, order = x.size, f"uint{8 * x.itemsize}", np.argsort(x, kind="stable")
    keys, out = ct.to_device(x), ct.empty(n, x.dtype)
    value = ct.rng(1).integers(0, 1 << 32, n, dtype="uint32")
    values, moved = ct.to_device(value), ct.empty(n, "uint32")
    for _ in range(launches):
        ct.poison(out), ct.poison(moved)
        if sort.pairs:
            sort(keys, out, values, moved)
            ct.check(moved, value[order], name=f"n={n}: values", rtol=0)
        else:
            sort(keys, out)
        ct.check(out.get().view(word), x[order].view(word), name=f"n={n}", rtol=0)
    assert (keys.get().view(word) == x.view(word)).all(), "the input has changed"


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("way", [Direct, Passes, Sweep])
def test_ways(way, pairs):
    for n in LENGTHS:
        expect(way("uint32", pairs), numbers(n, "uint32"))
        expect(way("uint32", pairs), numbers(n, "uint32", few=True))


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype, pairs):
    for n in (1, 257, 8193, 100_003):
        for few in (False, True):
            expect(Sweep(dtype, pairs), numbers(n, dtype, few))


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_one_block(dtype, pairs):
    """Each number of keys per thread, full and not; the last type of key stands where nothing is."""
    sort = OneTile(dtype, pairs)
    for n in (1, 2, 33, 1023, 1024, 1025, 4095, 4096, 4097, sort.most):
        if n <= sort.most:
            for few in (False, True):
                expect(sort, numbers(n, dtype, few))
    last = np.full(999, -1, "int64").view("uint64").astype(sort.key, casting="unsafe")
    expect(sort, last)
    with pytest.raises(ValueError, match=f"one block sorts {sort.most}"):
        expect(sort, numbers(sort.most + 1, dtype))


def test_the_fastest_sort_by_length():
    most = OneTile("uint32").most
    assert isinstance(fastest(most), OneTile) and isinstance(fastest(most + 1), Sweep)
    for n in (most, most + 1):
        for pairs in (False, True):
            expect(fastest(n, "int32", pairs), numbers(n, "int32"))


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_plans(plan, pairs):
    if pairs and plan.get("THREADS") == 512:
        plan = {**plan, "ITEMS": 12}
    for n in (33, 8191, 300_007):
        expect(Sweep("uint32", pairs, plan), numbers(n, "uint32"))
        expect(Sweep("float32", pairs, plan), numbers(n, "float32", few=True))


@pytest.mark.parametrize("way", [Direct, Passes])
def test_three_launches_for_pairs_of_64_bits(way):
    for n in (33, 3841, 4609, 100_003):
        expect(way("uint64", True), numbers(n, "uint64"))
        expect(way("uint64", True, {"ITEMS": 10}), numbers(n, "uint64", few=True))  # as on sm_75


def test_data_of_other_kinds():
    n = 200_003
    rising = np.arange(n, dtype="uint32")
    for x in (rising, rising[::-1].copy(), np.full(n, 7, "uint32"), rising << np.uint32(16)):
        expect(Sweep("uint32", True), x)
        expect(Sweep("uint32"), x)


def test_one_object_for_several_lengths():
    sort = Sweep("int32", True, SMALL)
    for n in (5000, 70_001, 1, 5000):
        expect(sort, numbers(n, "int32"))


def test_keys_that_begin_anywhere():
    x = numbers(10_007, "uint32")
    for first in range(5):
        out = ct.empty(x.size - first, "uint32")
        Sweep("uint32")(ct.to_device(x)[first:], out)
        ct.check(out, np.sort(x[first:]), name=f"from {first}", rtol=0)


def test_no_keys():
    Sweep("uint32")(ct.empty(0, "uint32"), ct.empty(0, "uint32"))


def test_what_does_not_fit():
    keys, out = ct.to_device(numbers(100, "uint32")), ct.empty(100, "uint32")
    with pytest.raises(TypeError, match="int16"):
        Sweep("int16")
    with pytest.raises((TypeError, ValueError)):
        Sweep("int32")(keys, out)
    with pytest.raises((TypeError, ValueError)):
        Sweep("uint32")(keys, out[:99])
    with pytest.raises((TypeError, ValueError)):
        Sweep("uint32")(keys, keys)
    with pytest.raises((TypeError, ValueError)):
        Sweep("uint32")(keys[::2], out[:50])
    with pytest.raises(TypeError, match="pairs=True"):
        Sweep("uint32")(keys, out, keys, out)
    with pytest.raises(TypeError, match="pairs=True"):
        Sweep("uint32", pairs=True)(keys, out)
    with pytest.raises(TypeError, match="32 bits"):
        values = ct.empty(100, "uint64")
        Sweep("uint32", pairs=True)(keys, out, values, ct.empty(100, "uint64"))


FAULTS = {
    # None of these writes outside of the output: where keys are lost before the last pass, the counts no longer fit.
    "digits begin at 0": ("place = places[threadIdx.x];", "place = 0;"),
    "tiles begin anew": ("const Count before = look_back(states, tile);", "const Count before = shift == 24 ? 0 : look_back(states, tile);"),
    "order of lanes is lost": ("place(i, old + number - 1);", "place(i, old + __popc(same) - number);"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_that_are_planted(fault, monkeypatch):
    folder = ct.paths.examples_dir() / "primitives/sort"
    radix = (folder / "radix.cuh").read_text(encoding="utf-8").replace("#pragma once", "")
    whole = (folder / "onesweep.cu").read_text(encoding="utf-8")
    whole = whole.replace('#include "radix.cuh"', radix)
    old, new = FAULTS[fault]
    assert old in whole
    text, pairs = whole.replace(old, new), fault == "order of lanes is lost"

    def compiled(self, file, name, **more):
        return ct.Kernel(text, name, {**self.defines, **more})

    x = numbers(8192 * 4 + 5, "uint32", few=pairs)
    monkeypatch.setattr(Sweep, "compiled", compiled)
    with pytest.raises((ct.CheckError, AssertionError)):
        expect(Sweep("uint32", pairs), x, launches=1)
