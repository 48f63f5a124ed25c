"""How gemm.py divides a product among the blocks of a GPU: every step of every tile once, and parts that find each other."""

import itertools

import pytest

import cudatut as ct
from cudatut.book.tensor.gemm import gemm, rounds

SHAPES = [
    (1, 1, 1), (128, 256, 64), (129, 257, 65), (64, 4096, 4096), (1000, 1000, 1000), (4096, 4096, 4096),
    (8192, 8192, 8192), (8192, 512, 2048), (300, 70, 20_000), (2304, 2304, 4096),
]  # fmt: skip
SMS = (132, 114, 78, 2)


def pieces(plan, tiles, steps, worker):
    """(tile, begin, end) in order, as `Schedule` in schedule.cuh gives them to a worker."""
    for tile in range(worker, plan.whole, plan.workers):
        yield tile, 0, steps
    row = (tiles - plan.whole) * steps
    at = min(worker * plan.share, row)
    stop = min(at + plan.share, row)
    while at < stop:
        begin = at % steps
        end = min(begin + stop - at, steps)
        yield plan.whole + at // steps, begin, end
        at += end - begin


@pytest.mark.parametrize("sms", SMS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_every_step_of_every_tile_once(shape, sms):
    m, n, k = shape
    for tile in gemm.TILES:
        tiles = ct.cdiv(m, gemm.ROWS * tile.cluster) * ct.cdiv(n, tile.columns)
        steps = ct.cdiv(k, gemm.DEPTH)
        for plan in gemm.plans(m, n, k, tile, sms):
            assert 1 <= plan.workers <= sms // tile.cluster
            covered = {}
            for worker in range(plan.workers):
                for piece in pieces(plan, tiles, steps, worker):
                    covered.setdefault(piece[0], []).append((*piece[1:], worker))
            assert sorted(covered) == list(range(tiles))
            for parts in covered.values():
                ordered = sorted(parts)
                assert ordered[0][0] == 0 and ordered[-1][1] == steps
                assert all(a[1] == b[0] for a, b in itertools.pairwise(ordered))


@pytest.mark.parametrize("sms", SMS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_a_worker_leaves_one_part_first_and_waits_last(shape, sms):
    """It has one slot for a part, and nobody may wait for one who waits for him."""
    m, n, k = shape
    steps = ct.cdiv(k, gemm.DEPTH)
    for tile in gemm.TILES:
        tiles = ct.cdiv(m, gemm.ROWS * tile.cluster) * ct.cdiv(n, tile.columns)
        for plan in gemm.plans(m, n, k, tile, sms):
            for worker in range(plan.workers):
                shared = [p for p in pieces(plan, tiles, steps, worker) if p[0] >= plan.whole]
                left = [i for i, (_, begin, _) in enumerate(shared) if begin > 0]
                waits = [i for i, (_, begin, end) in enumerate(shared) if not begin and end < steps]
                assert left in ([], [0])
                assert waits in ([], [len(shared) - 1])
                for i in waits:  # the kernel takes the parts from the workers that follow
                    at, follower = shared[i][2], worker + 1
                    while at < steps:
                        first = next(
                            p for p in pieces(plan, tiles, steps, follower) if p[0] >= plan.whole
                        )
                        assert first[:2] == (shared[i][0], at)
                        at, follower = first[2], follower + 1


def test_as_few_workers_as_take_no_more_rounds():
    for tiles, most in itertools.product(
        (1, 65, 66, 67, 132, 133, 1024, 4096), (1, 2, 64, 66, 132)
    ):
        few = rounds.workers(tiles, most)
        assert 1 <= few <= most
        assert ct.cdiv(tiles, few) == ct.cdiv(tiles, most)
        assert few == 1 or ct.cdiv(tiles, few - 1) > ct.cdiv(tiles, most)
    for side in (4096, 8192):  # 8 x 8 tiles of 256 x 256 at a time
        assert gemm.choose(side, side, side, 132).workers == 64


def test_shared_memory_fits():
    for tile in gemm.TILES:
        assert tile.shared <= 227 << 10
        # Boxes and stages begin at multiples of 1024 bytes, and barriers come last.
        assert tile.columns % (64 * tile.cluster) == 0


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_what_is_chosen_is_one_of_the_plans(m, n, k):
    plan = gemm.choose(m, n, k, 132)
    assert plan in gemm.plans(m, n, k, plan.tile, 132)


def test_large_products_get_large_tiles():
    for side in (2048, 4096, 8192, 16384):
        assert gemm.choose(side, side, side, 132).tile.columns == 256
    assert gemm.choose(256, 256, 256, 132).tile.columns == 64
