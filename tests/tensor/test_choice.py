"""Which plan gemm.py chooses."""

import ctypes

import pytest

from cudatut.book.tensor.gemm import gemm
from cudatut.paths import examples_dir


def test_what_is_copied_first_counts():
    """Little work: threads read rows that begin anywhere. Much: they are copied, and the TMA reads."""
    assert gemm.choose(111, 139, 54, 132, unaligned=27_000).plain
    assert not gemm.choose(111, 139, 54, 132).plain
    assert not gemm.choose(4095, 4097, 4099, 132, unaligned=67_000_000).plain


@pytest.mark.parametrize("side", [2048, 4096, 8192, 16384])
def test_large_squares_take_whole_tiles_of_the_widest(side):
    plan = gemm.choose(side, side, side, 132)
    assert plan.tile.columns == 256 and not plan.share


@pytest.mark.parametrize(
    ("side", "how", "end"),
    [(2048, {}, "Bare"), (4096, {}, "ByHalves"), (8192, {}, "ByHalves"), (4096, {"steps": 2}, "Bare"),
     (4096, {"transpose_a": True}, "Bare"), (4096, {"beta": 1.0}, "")],
    ids=str,
)  # fmt: skip
def test_tiles_end_by_halves_where_a_worker_has_several(side, how, end):
    assert gemm.end_of(gemm.choose(side, side, side, 132), mapped=True, **how) == end


def test_steps_by_halves_are_as_many_as_the_kernel_has():
    source = (examples_dir() / "tensor/gemm/halves.cuh").read_text()
    assert f"constexpr int HALVED<ByHalves> = {gemm.HALVED};" in source


def test_blocks_at_work_are_about_a_square():
    for tile in gemm.TILES:
        height = gemm.group_for(tile, 132) * gemm.ROWS * tile.cluster
        width = 132 * gemm.ROWS * tile.columns / height
        assert 0.5 < height / width < 2


def test_the_struct_is_as_large_as_that_of_the_kernel():
    source = (examples_dir() / "tensor/gemm/work.cuh").read_text()
    assert f"sizeof(Work<float>) == {ctypes.sizeof(gemm._Work)}," in source
