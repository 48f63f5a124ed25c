"""How many heads examples/tensor/attention/flash_hopper.py has at work at a time."""

import pytest

from cudatut.book.tensor.attention import flash_hopper

LENGTHS = (128, 512, 700, 1024, 2048, 4096, 8192, 16384, 100_000)


def together(d, length, heads=16, kv_heads=16, pairs=512, blocks=132, causal=True):
    plan = flash_hopper.plan_for(d, causal, length, length)
    return flash_hopper.heads_together(plan, heads, kv_heads, length, pairs, blocks)


@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize("d", [64, 128])
def test_no_more_than_l2_holds_and_than_blocks_share(d, group):
    for length in LENGTHS:
        at_a_time, rest = divmod(together(d, length, heads=16 * group, pairs=4096), group)
        assert rest == 0 and at_a_time >= 1
        if at_a_time > 1:
            assert at_a_time * 4 * d * length <= 32 << 20
            assert 4 * at_a_time <= 132
        more = at_a_time + 1  # and no fewer than these bounds allow
        assert more * 4 * d * length > 32 << 20 or 4 * more > 132


def test_at_some_lengths():
    assert [together(128, n) for n in LENGTHS[3:]] == [33, 32, 16, 8, 4, 1]
    assert [together(64, n) for n in LENGTHS[3:]] == [33, 33, 32, 16, 8, 1]


def test_few_heads_few_blocks_and_no_mask():
    assert together(128, 512, pairs=5) == 5
    assert together(128, 512, blocks=3) == 1
    assert together(128, 512, causal=False) == 1
