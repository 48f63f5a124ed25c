"""The scoreboard's contests: our kernel and every rival leave what the host computes, for short, odd and longer powers of two."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.primitives.scoreboard import field as fields
from cudatut.book.primitives.scoreboard.field import BYTES, Field

LARGEST = 20
# What rivals write to the same arrays as ours does; others return arrays of their own.
SAME = {
    "transpose": ("ours", "PyTorch"),
    "GELU": ("ours", "PyTorch"),
    "scan": ("ours", "CUB", "PyTorch"),
    "compaction": ("ours", "CUB"),
    "sort": ("ours", "CUB"),
}


@pytest.fixture(scope="module")
def field():
    return Field(1 << LARGEST)


@pytest.mark.parametrize("exponent", (10, 11, 13, 17, LARGEST))
@pytest.mark.parametrize("name", BYTES)
def test_contestants_do_the_same(field, name, exponent):
    contest = field.contest(name, exponent)
    for who in SAME.get(name, ("ours",)):
        if not contest[who]:  # a library that is not here
            continue
        for array in (field.out, field.sorted, field.count):
            ct.poison(array)
        contest[who]()
        fields.check(field, name, exponent)


def test_a_wrong_result_is_noticed(field):
    field.contest("scan", 12)["ours"]()
    field.out[2000:2001].fill(1e6)
    with pytest.raises(ct.CheckError):
        fields.check(field, "scan", 12)


def test_keys_with_values(field):
    n = 1 << 15
    field.pairs(15)["ours"]()
    keys = field.keys[:n].get()
    order = np.argsort(keys, kind="stable")
    ct.check(field.sorted[:n], keys[order], name="keys", rtol=0)
    values = field.residual[:n].view("uint32").get()
    ct.check(field.out[:n].view("uint32"), values[order], name="values", rtol=0)
