"""examples/tensor/ladder/autotuning_space.py: what is searched, without a GPU."""

from types import SimpleNamespace

import pytest

from cudatut.book.tensor.gemm import gemm
from cudatut.book.tensor.ladder import autotuning_space as module

H100 = SimpleNamespace(sm_count=132, shared_per_block_optin=227 << 10)
SIZES = [(4096, 4096, 4096), (300, 260, 128), (1, 1, 1), (2304, 2304, 4096)]


def test_rules_leave_what_the_kernel_can_be_and_its_own_tiles():
    steps, tiles = module.prune(227 << 10)
    counts = [count for _, count in steps]
    assert [name for name, _ in steps] == ["all tiles", *module.RULES]
    assert counts == sorted(counts, reverse=True) and counts[-1] == len(tiles) == len(set(tiles))
    assert set(gemm.TILES) <= set(tiles)
    for tile in tiles:
        assert tile.shared <= 227 << 10 and tile.stages > 1
        assert tile.columns % (64 * tile.cluster) == 0  # as final.cu's static_assert wants it
        assert tile.buffers <= tile.columns // 64
    assert len(module.prune(99 << 10)[1]) < len(tiles)


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_candidates_are_plans_of_the_size_each_once(m, n, k):
    size = {"m": m, "n": n, "k": k}
    steps, found = module.SPACE.prune(H100, size)
    assert steps[-1] == ("with orders and shares", len(found))
    assert len({one.label for one in found}) == len(found)
    assert len({tuple(one.numbers.values()) for one in found}) == len(found)
    for one in found:
        tile = one.plan.tile
        assert one.plan in gemm.plans(m, n, k, tile, 132)
        assert one.group >= 1
    # What is chosen untuned is one of them, where the TMA can read the rows.
    default = module.SPACE.default(SimpleNamespace(**size, a=aligned(), b=aligned()), H100)
    assert default.numbers in [one.numbers for one in found] or default.group > -(-m // 128)


def aligned():
    return SimpleNamespace(shape=(8, 8), nbytes=128, __cuda_array_interface__={"data": (256,)})


def test_an_instance_names_its_architecture():
    _, found = module.SPACE.prune(H100, {"m": 64, "n": 64, "k": 64})
    source, name, _, _, arch = module.SPACE.instance(found[0])
    assert (source, arch) == ("tensor/ladder/final.cu", "sm_90a")
    tile = found[0].plan.tile
    assert not found[0].plan.share and not found[0].plan.plain
    assert name == f"gemm<{','.join(map(str, tile))},false,false,__nv_bfloat16,false,Bare>"
    hash(module.SPACE.instance(found[0]))


def test_lines_for_the_tables():
    _, found = module.SPACE.prune(H100, {"m": 64, "n": 64, "k": 63})
    tiles, costs = module.SPACE.lines({"m": 64, "n": 64, "k": 63}, found[0])
    assert str(found[0].plan.tile) in tiles and ("stands there" in tiles) == (
        found[0].plan.tile in gemm.TILES
    )
    cycles = gemm.cycles(found[0].plan, 63, unaligned=2 * 64 * 63)  # B's rows are aligned
    assert costs.startswith(f"COSTS say {cycles:,.0f} cycles: Costs(flop=")
