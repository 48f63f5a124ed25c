"""How flash_parts deals out keys: the rule on the host, and the arithmetic of the kernel, compiled for the host."""

import re
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

from cudatut.book.llm.kernels.attention import flash, flash_hopper_paged, flash_parts
from cudatut.errors import ToolMissing
from cudatut.gpu import nvcc
from cudatut.paths import examples_dir

SOURCE = (examples_dir() / flash_parts.SOURCE).read_text(encoding="utf-8")
# Reads: most parts, queries, keys and tile of a sequence; prints what an item of it is.
MAIN = """
#include <algorithm>
#include <cstdio>
#define __device__
#define __forceinline__ inline
using std::max, std::min;
%s
int main() {
  int most, starts[2] = {5}, lengths[1], work[2] = {0, 0};
  while (scanf("%%d %%d %%d %%d", &most, starts + 1, lengths, work + 1) == 4) {
    starts[1] += starts[0];
    const Item<%d, %d> it(work, starts, lengths, 0, most);
    printf("%%d %%d %%d %%d\\n", it.top, it.tiles, it.share, it.count);
  }
}
"""


def test_both_files_mean_the_same():
    assert f"LEAST = {flash_parts.LEAST};" in SOURCE
    assert f"MERGE_THREADS = {flash_parts.MERGE_THREADS};" in SOURCE


@pytest.mark.parametrize("head_dim", [64, 256])
def test_each_tile_of_keys_is_in_one_part(head_dim, tmp_path, missing):
    try:
        compiler = nvcc.find_host_compiler()
    except ToolMissing as error:
        missing(str(error))
    tile, rng, asked = flash.tile_for(head_dim), np.random.default_rng(head_dim), []
    region = re.search(r"// --8<-- \[start:deal\]\n(.*?)// --8<-- \[end:deal\]", SOURCE, re.S)[1]
    (tmp_path / "item.cpp").write_text(MAIN % (region, tile.bm, tile.bn), encoding="utf-8")
    subprocess.run([compiler, "-std=c++17", "-o", "item", "item.cpp"], cwd=tmp_path, check=True)
    for _ in range(500):
        most, queries = int(rng.integers(1, 40)), int(rng.integers(1, 300))
        keys = queries + int(rng.choice([0, 1, 63, 64, 928, rng.integers(0, 9000)]))
        for _, number in flash.order([0, queries], [keys], tile):
            asked.append((most, queries, keys, int(number)))
    lines = "\n".join(" ".join(map(str, one)) for one in asked)
    done = subprocess.run(
        [tmp_path / "item"], input=lines, capture_output=True, text=True, check=True
    )
    found = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(found) == len(asked)
    for (most, queries, keys, number), (top, tiles, share, count) in zip(asked, found):
        # Rows of the tile begin at a position that is a multiple of bm.
        assert (keys - queries + top) % tile.bm == 0 and top > -tile.bm
        assert top == number * tile.bm - (keys - queries) % tile.bm
        last = keys - queries + min(top + tile.bm, queries)  # keys that its last query sees
        dealt = [
            k for part in range(count) for k in range(part * share, min((part + 1) * share, tiles))
        ]
        assert dealt == list(range(-(-last // tile.bn)))
        assert 1 <= count <= most and (count - 1) * share < tiles, "no part is empty"
        assert count == 1 or share >= flash_parts.LEAST


@pytest.mark.parametrize("head_dim", [64, 80, 128, 256])
@pytest.mark.parametrize("sms", [1, 16, 132])
def test_no_block_waits_for_an_sm_and_partials_have_room(head_dim, sms):
    tile, dealt = flash.tile_for(head_dim), 0
    for items in (0, 1, 2, 4, 8, 16, 64):
        for heads in (1, 9, 32):
            for longest in (1, 16, 512, 1000, 8192, 1 << 20):
                parts = flash_parts.parts(items, heads, longest, tile, sms)
                blocks = items * heads * parts
                assert parts >= 1
                if parts > 1:
                    dealt += 1
                    assert blocks <= sms * tile.blocks
                    assert blocks * tile.bm * (tile.d + 2) <= flash_parts.room(tile, sms)
                    assert parts <= -(-longest // tile.bn) // flash_parts.LEAST + 1
    assert dealt


@pytest.mark.parametrize(("items", "expected"), [(1, "parts"), (100, "many")])
def test_many_tiles_go_to_the_kernel_that_is_named(monkeypatch, items, expected):
    called = []
    monkeypatch.setattr(flash_parts.ct, "device", lambda: SimpleNamespace(sm_count=132))
    monkeypatch.setattr(flash_parts, "paged", lambda *_, **how: called.append(("parts", how)))
    keys, tables, work = (SimpleNamespace(shape=s) for s in ((4096, 3, 64), (1, 256), (items, 2)))
    out = SimpleNamespace(shape=(100, 9, 64))
    flash_parts.few_or_many(
        None, keys, keys, out, None, None, tables, 16, work, None,
        many=lambda *_, **how: called.append(("many", how)),
    )  # fmt: skip
    assert [name for name, _ in called] == [expected]


def test_full_tiles_are_worth_while_on_hopper():
    worthwhile = flash_hopper_paged.worthwhile
    assert worthwhile(8192, 64) and worthwhile(512, 16)  # as they are rounded up
    assert not worthwhile(2048, 256) and not worthwhile(64, 16)
