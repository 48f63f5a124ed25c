"""Attention of prompts on Hopper, examples/llm/kernels/attention/flash_hopper_paged.cu, against float64: unequal sequences over blocks in
any order, what must not be read, work that is left over, rows of others. That the engine takes it: test_llm_backend.py."""

import numpy as np
import pytest
from test_llm_flash import NAN, RAGGED, Paged

import cudatut as ct
from cudatut.book.llm.kernels.attention import flash, flash_hopper_paged


@pytest.fixture(autouse=True)
def needs_hopper():
    if not flash_hopper_paged.available(64, 16):
        pytest.skip("flash_hopper_paged.cu needs sm_90a")


class OnHopper(Paged):
    """Blocks in any order, as in test_llm_flash; a first row of nobody, and work that is left over."""

    def run(self, spare=7, plan=None, repeat=1, **options):
        options.pop("causal", None), options.pop("window", None), options.pop("softcap", None)
        plan = plan or flash_hopper_paged.plan_for(self.d, self.block_size)
        work = flash.order(self.starts, self.lengths, plan)
        work = np.concatenate([work, np.full((spare, 2), -1, "int32")])
        shape = (self.starts[-1], self.heads, self.d)
        out = ct.to_device(np.full(shape, NAN, "uint16"))
        lse = ct.empty(shape[:2], "float32")
        arrays = [*map(ct.to_device, (self.q, self.keys, self.values))]
        lists = [*map(ct.to_device, (self.starts, self.lengths, self.tables))]
        for _ in range(repeat):
            flash_hopper_paged.paged(
                *arrays, out, *lists, self.block_size, ct.to_device(work), lse, plan=plan, **options
            )
        return out.get(), lse.get()


@pytest.mark.parametrize("batch", RAGGED)
@pytest.mark.parametrize("block_size", [8, 16, 64, 128])
@pytest.mark.parametrize(("heads", "kv_heads", "d"), [(6, 6, 64), (8, 1, 128), (9, 3, 64)])
def test_paged(batch, block_size, heads, kv_heads, d):
    OnHopper(RAGGED[batch], heads, kv_heads, d, block_size).check()


def test_many_keys_and_many_tiles():
    batch = [(2048, 8000), (3000, 3000), *((n, n) for n in range(250, 330, 8))]
    OnHopper(batch, 9, 3, 64, 16).check()


@pytest.mark.parametrize("by", [20.0, 60.0])
def test_scores_that_grow_from_tile_to_tile(by):
    OnHopper([(300, 900), (700, 700)], 4, 2, 64, 16, by=by).check()


@pytest.mark.parametrize(("consumers", "turns"), [(2, True), (2, False), (3, True)])
@pytest.mark.parametrize("bn", [64, 128])
def test_other_plans(consumers, turns, bn):
    plan = flash_hopper_paged.Plan(64, consumers, bn, 2, 1, 16, turns)
    OnHopper([(300, 450), (64, 64), (700, 700)], 6, 2, 64, 16).check(plan=plan)


def test_bits_are_the_same_again():
    batch = OnHopper(RAGGED["prefill"], 9, 3, 64, 16)
    first, again = batch.run(), batch.run(repeat=3)
    for one, other in zip(first, again):
        np.testing.assert_array_equal(one, other)


def test_only_work_that_is_none():
    batch = OnHopper([(100, 200)], 2, 1, 64, 16)
    out = ct.to_device(np.full((100, 2, 64), NAN, "uint16"))
    arrays = map(ct.to_device, (batch.q, batch.keys, batch.values))
    lists = map(ct.to_device, (batch.starts, batch.lengths, batch.tables))
    work = ct.to_device(np.full((40, 2), -1, "int32"))
    flash_hopper_paged.paged(*arrays, out, *lists, 16, work)
    assert (out.get() == NAN).all()
    batch.check()  # the counters are as they were


def test_what_does_not_fit():
    batch = OnHopper([(100, 200)], 2, 1, 64, 16)
    batch.block_size = 7
    with pytest.raises(ValueError, match="blocks of 7"):
        batch.run(plan=flash_hopper_paged.plan_for(64, 16))
    with pytest.raises(ValueError, match="above 0"):
        OnHopper([(100, 200)], 2, 1, 64, 16).run(scale=-1.0)
