"""Compactions and partitions: every kernel on ragged lengths, their properties, planted faults, and arrays that do not fit."""

import itertools

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.primitives.compaction.compactions import (
    Atomic,
    Compaction,
    Shape,
    ThreeLaunches,
    fastest,
)

LENGTHS = (0, *ct.RAGGED, 2, 257, 4097, 65_537)
SHAPES = {
    "look_back": [
        Shape(256, 8, resident=3, look=2),
        Shape(128, 3, look=4),
        Shape(32, 1),
        Shape(256, 4, more=(("STREAMED", 1),)),
        Shape(256, 8, more=(("PACKED", 0),)),
        Shape(256, 8, width=4),
    ],
    "bulk": [
        Shape(256, 8, resident=2, look=2, buffers=2),
        Shape(128, 4, buffers=3),
    ],
    "carried": [
        Shape(256, 8, resident=2, look=9, buffers=3),
        Shape(256, 6, resident=2, look=9, buffers=4, more=(("AHEAD", 2),)),
        Shape(256, 5, resident=2, look=9, buffers=5, more=(("AHEAD", 3),)),
        Shape(512, 4, resident=2, look=5, buffers=3),
        Shape(32, 1, look=1, buffers=3),
        Shape(128, 2, look=2, buffers=5, more=(("AHEAD", 2),)),
        Shape(256, 6, look=9, buffers=4, more=(("PACKED", 0),)),
    ],
}
CASES = [(kind, shape) for kind, shapes in SHAPES.items() for shape in shapes]
HOPPER = ("bulk", "carried")


def numbers(n, dtype, share, seed=0):
    """Data of which so many are above 0, and which these are."""
    chance = ct.rng(seed)
    size, stays = chance.integers(1, 1 << 30, n), chance.random(n) < share
    return np.where(stays, size, -size).astype(dtype), stays


def compacted(run, x, mask=None):
    """The output after one launch, whole, and how many stay."""
    out, count = ct.empty(x.size, x.dtype), ct.empty(1, "int64")
    ct.poison(out), ct.poison(count)
    run(ct.to_device(x), out, count, None if mask is None else ct.to_device(mask.astype("uint8")))
    return out.get(), int(count.get()[0])


def expect(run, x, stays, launches=2):
    mask = stays if run.flags else None
    for _ in range(launches):  # the state serves the next one
        got, kept = compacted(run, x, mask)
        assert kept == stays.sum()
        assert np.array_equal(got[:kept], x[stays])
        if run.partition:
            assert np.array_equal(got[kept:], x[~stays][::-1])
        elif kept < x.size:
            poison = got[kept:].view("uint8")
            assert (poison == poison[0]).all(), "it wrote behind what stays"


@pytest.mark.parametrize("kind, shape", CASES)
def test_any_length_and_any_share(kind, shape):
    if kind in HOPPER:
        ct.require("sm_90")
    for n in LENGTHS:
        for share in (0, 0.02, 0.5, 1):
            run = Compaction(n, kind=kind, shape=shape)
            expect(run, *numbers(n, "float32", share, seed=n))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("kind", SHAPES)
def test_types_flags_and_partitions(kind, dtype):
    if kind in HOPPER:
        ct.require("sm_90")
    shape = SHAPES[kind][5 if kind == "carried" else 0]
    for flags, partition in itertools.product((False, True), repeat=2):
        for n in (1, 33, 4097, 65_537):
            run = Compaction(n, dtype, flags=flags, partition=partition, kind=kind, shape=shape)
            x, stays = numbers(n, dtype, 0.3, seed=n)
            if flags:
                stays = ct.rng(n).random(n) < 0.6  # says nothing of the elements
            expect(run, x, stays)


@pytest.mark.parametrize("kind", ["look_back", *HOPPER])
def test_many_tiles_for_each_block(kind):
    if kind in HOPPER:
        ct.require("sm_90")
    n = 9_000_001
    x, stays = numbers(n, "float32", 0.5)
    expect(Compaction(n, kind=kind), x, stays, launches=20)


def test_a_condition_of_ones_own_and_nan():
    x = ct.rng(0).integers(-99, 99, 10_001).astype("int32")
    got, kept = compacted(Compaction(x.size, "int32", keep="(x) % 3 == 0"), x)
    assert np.array_equal(got[:kept], x[x % 3 == 0])
    y = ct.rng(1).standard_normal(10_001, dtype="float32")
    y[::7] = np.nan
    got, kept = compacted(Compaction(y.size), y)
    assert np.array_equal(got[:kept], y[y > 0])
    got, kept = compacted(Compaction(y.size, keep="(x) != (x)"), y)
    assert kept == len(y[::7]) and np.isnan(got[:kept]).all()


def test_a_flag_is_any_byte_but_0():
    x, mask = np.arange(5000, dtype="float32"), ct.rng(0).integers(0, 256, 5000).astype("uint8")
    run, out, count = Compaction(5000, flags=True), ct.empty(5000, "float32"), ct.empty(1, "int64")
    run(ct.to_device(x), out, count, ct.to_device(mask))
    kept = int(count.get()[0])
    assert np.array_equal(out.get()[:kept], x[mask != 0])


def test_compaction_twice_changes_nothing_and_a_partition_is_a_permutation():
    x, _ = numbers(100_003, "int32", 0.5)
    once, kept = compacted(fastest(x.size, "int32"), x)
    again, same = compacted(fastest(kept, "int32"), once[:kept])
    assert same == kept and np.array_equal(again, once[:kept])
    parts, _ = compacted(fastest(x.size, "int32", partition=True), x)
    assert np.array_equal(np.sort(parts), np.sort(x))


def test_the_other_ways_agree():
    n = 100_003
    x, stays = numbers(n, "float32", 0.5)
    a, out, count = ct.to_device(x), ct.empty(n, "float32"), ct.empty(1, "int64")
    ThreeLaunches(n)(a, out, count)
    assert int(count.get()[0]) == stays.sum()
    assert np.array_equal(out.get()[: stays.sum()], x[stays])
    total = ct.to_device(np.zeros(1, "uint64"))
    Atomic(n)(a, out, total)
    assert int(total.get()[0]) == stays.sum()
    assert np.array_equal(np.sort(out.get()[: stays.sum()]), np.sort(x[stays]))


def test_arrays_that_do_not_fit_are_refused():
    run = Compaction(1000)
    x, out, count = ct.empty(1001, "float32"), ct.empty(1000, "float32"), ct.empty(1, "int64")
    with pytest.raises(ValueError, match="x"):
        run(x, out, count)
    with pytest.raises(ValueError, match="x"):
        run(x[1:], out, count)  # no vectors of 16 bytes
    with pytest.raises((TypeError, ValueError), match="count"):
        run(x[:1000], out, ct.empty(1, "int32"))
    with pytest.raises(ValueError):
        run(x[:1000], x[:1000], count)  # tiles would read what others wrote


FAULTS = {
    # A count of a row that has no room in a byte's place of the next rows.
    "a row's count takes 7 bits": ("<< 8 * (k - g)", "<< 7 * (k - g)"),
    "a lane counts itself": ("left = sums - own", "left = sums"),
    "a place of the row before": ("before[k];", "before[k ? k - 1 : 0];"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_noticed(fault, monkeypatch, tmp_path):
    """A copy of the kernels with one fault gives other results."""
    examples = ct.paths.examples_dir()
    text = (examples / "primitives/compaction/compact.cuh").read_text(encoding="utf-8")
    right, wrong = FAULTS[fault]
    assert right in text
    kernel = (examples / "primitives/compaction/compact.cu").read_text(encoding="utf-8")
    include = '#include "primitives/compaction/compact.cuh"'
    assert include in kernel
    source = kernel.replace(include, text.replace(right, wrong).replace("#pragma once", ""))
    run = Compaction(65_537)
    run.kernel = ct.Kernel(source, "compact", defines=run.shape.defines("float32"))
    x, stays = numbers(65_537, "float32", 0.5)
    try:
        got, kept = compacted(run, x)
    except ct.CudatutError:
        return  # it wrote where it may not
    assert kept != stays.sum() or not np.array_equal(got[:kept], x[stays])
