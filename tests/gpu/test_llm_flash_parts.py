"""Attention of few queries over many keys, examples/llm/kernels/attention/flash_parts.cu, against float64: by the number of parts, unequal
sequences over blocks in any order, what must not be read or written, the same bits again."""

import numpy as np
import pytest
from test_llm_flash import RAGGED, Fp8Paged, Paged, attention, check, needs_sm_80  # noqa: F401

import cudatut as ct
from cudatut.book.llm.kernels.attention import flash, flash_parts


class Dealt:
    """What a batch of test_llm_flash.py gives with its keys dealt out."""

    def run(self, parts, room=None, tile=None, spare=0, before=0, **options):
        tile = tile or flash.tile_for(self.d)
        work = flash.order(self.starts, self.lengths, tile, room)
        out = ct.to_device(
            np.full((self.starts[-1] + before, self.heads, self.d), 0x7FFF, "uint16")
        )
        lse = ct.empty(out.shape[:2], "float32")
        need = len(work) * self.heads * parts * tile.bm * (tile.d + 2)
        partials = ct.to_device(np.full(need + spare, np.nan, "float32"))
        q = np.concatenate([np.full((before, self.q.shape[1]), 0x7FFF, "uint16"), self.q])
        lists = self.starts + np.int32(before), self.lengths, self.tables
        flash_parts.paged(
            *map(ct.to_device, (q, self.keys, self.values)), out, *map(ct.to_device, lists),
            self.block_size, ct.to_device(work), parts, partials, lse, tile=tile, **self.more, **options,
        )  # fmt: skip
        assert np.isnan(partials.get()[need:]).all(), "more partials than there is room for"
        assert (out.get()[:before] == 0x7FFF).all(), "rows of others are written"
        return out.get()[before:], lse.get()[before:]

    def check(self, parts, **options):
        out, lse = self.run(parts, **options)
        for i, (q, keys, values) in enumerate(self.sequences):
            own = slice(self.starts[i], self.starts[i + 1])
            wanted = attention(q, keys, values, True, 0, 0.0, options.get("scale"))
            check(out[own], lse[own], wanted)


class Bf16(Dealt, Paged):
    pass


class Fp8(Dealt, Fp8Paged):
    pass


KINDS = {"bf16": Bf16, "fp8": Fp8}
PARTS = [1, 2, 3, 7, 14, 29, 100]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("batch", RAGGED)
def test_ragged(batch, parts, kind):
    KINDS[kind](RAGGED[batch], 9, 3, 64, 16).check(parts, spare=1000, before=3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block_size", [1, 7, 16, 256])
@pytest.mark.parametrize(("heads", "kv_heads"), [(6, 6), (8, 1), (9, 3)])
def test_heads_and_blocks(heads, kv_heads, block_size, kind):
    KINDS[kind]([(64, 1000), (1, 1), (72, 999)], heads, kv_heads, 64, block_size).check(5)


LENGTHS = [
    1,
    63,
    64,
    65,
    127,
    128,
    129,
    191,
    192,
    193,
    256,
    257,
    1000,
    1024,
    2047,
    4096,
    8000,
    8192,
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keys", LENGTHS)
def test_from_one_key_to_many(keys, kind):
    for queries in {1, min(keys, 64), min(keys, 129)}:
        KINDS[kind]([(queries, keys)], 3, 1, 64, 16).check(29)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [16, 32, 48, 80, 96, 112, 128, 160, 192, 256])
def test_head_sizes(d, kind):
    KINDS[kind]([(9, 573), (1, 1), (164, 700)], 4, 2, d, 16).check(4)


@pytest.mark.parametrize(
    "tile", [(64, 128, 64, 8, 1), (64, 128, 64, 8, 2), (64, 64, 64, 4, 2)], ids=str
)
def test_other_tiles(tile):
    Bf16([(64, 1000), (1, 1), (200, 999)], 9, 3, 64, 16).check(5, tile=flash.Tile(*tile))


def test_scores_that_grow_from_part_to_part():
    batch = Bf16([(64, 2000), (130, 900)], 2, 1, 64, 16, by=40.0)
    batch.check(16)
    batch.check(16, scale=2.0)


def test_work_may_have_room_left_over():
    Bf16([(100, 2000), (1, 30)], 2, 1, 64, 16).check(
        6, room=flash.most_items(101, 2, flash.tile_for(64))
    )


@pytest.mark.parametrize("parts", [2, 29])
def test_the_same_bits_again(parts):
    batch = Bf16([(64, 4000), (200, 900)], 9, 3, 64, 16)
    first = batch.run(parts)
    for _ in range(5):
        for x, y in zip(batch.run(parts), first):
            np.testing.assert_array_equal(x, y)


def test_one_part_gives_the_bits_of_flash():
    lengths = [(64, 1000), (1, 1), (200, 999)]
    for x, y in zip(Bf16(lengths, 9, 3, 64, 16).run(1), Paged(lengths, 9, 3, 64, 16).run()):
        np.testing.assert_array_equal(x, y)


def test_what_does_not_fit_is_refused():
    batch = Bf16([(9, 100)], 4, 2, 64, 16)
    with pytest.raises(ValueError, match="elements, and needs"):
        batch.run(2, spare=-1)
    with pytest.raises(ValueError, match="parts=0"):
        batch.run(0)
    with pytest.raises(ValueError, match="a multiple of 16"):
        Bf16([(9, 100)], 4, 2, 40, 16).run(2)
