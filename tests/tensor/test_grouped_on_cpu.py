"""examples/tensor/gemm/grouped.cu on a CPU: its own text, with stand-ins for PTX (hopper_on_cpu/), in random interleavings,
against whole numbers. Faults that are planted are noticed."""

from functools import cache

import numpy as np
import pytest
from emulator import HERE, built, ended, expect, fault

from cudatut.book.numbers.bf16 import to_bf16
from cudatut.book.tensor.gemm import grouped_product

UNTOUCHED = 0x7FC1  # a NaN that the program fills C with


def program_of(tile, folder, change=lambda text: text):
    """The program for a tile, or for a kernel with a change."""
    instance = f"{tile.columns},{tile.stages}"
    return built(folder, HERE / "grouped.cpp", "tensor/gemm/grouped.cu", change, PLAN=instance)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Each tile's program, built when it is first asked for."""
    tiles = {tile.columns: tile for tile in grouped_product.TILES}
    return cache(lambda columns: program_of(tiles[columns], tmp_path_factory.mktemp("tile")))


def wrong(program, sizes, stacked, seed, order=2, blocks=3, by_demand=True, launches=1):
    """What is wrong with the products of these (m, n, k), or None. stacked: the rows of all in one matrix."""
    rng = np.random.default_rng(seed)
    factors = [
        [rng.integers(-4, 5, (rows, k)).astype("float32") for rows in (m, n)] for m, n, k in sizes
    ]
    ends = np.cumsum([m for m, _, _ in sizes]).astype("int32")
    if stacked:
        data = ends.tobytes()
        for some in zip(*factors):
            data += to_bf16(np.concatenate(some)).tobytes()
    else:
        data = b"".join(to_bf16(one).tobytes() for pair in factors for one in pair)
    numbers = (int(stacked), order, blocks, int(by_demand), launches, seed, len(sizes))
    out, bad = ended(program, numbers, np.array(sizes, "int32").tobytes() + data)
    if bad:
        return bad
    edge = np.full(8, UNTOUCHED, "uint16")
    want = [to_bf16(a.astype("float64") @ b.T).ravel() for a, b in factors]
    want = [*want, edge] if stacked else [x for one in want for x in (one, edge)]
    want = np.concatenate(want if stacked else [*want, edge])
    found = np.frombuffer(out, "uint16")
    return None if np.array_equal(found, want) else "results"


EXPERTS = [(m, 136, 200) for m in (70, 0, 1, 128, 0, 0, 195, 64, 0)]
DIFFERENT = [(1, 8, 8), (130, 264, 72), (64, 520, 136), (257, 8, 64), (100, 128, 320)]


@pytest.mark.parametrize("columns", [256, 128, 64])
@pytest.mark.parametrize("stacked", [True, False])
def test_results(programs, columns, stacked):
    sizes = EXPERTS if stacked else DIFFERENT
    for seed, by_demand in enumerate((True, False)):
        assert (
            wrong(programs(columns), sizes, stacked, seed, by_demand=by_demand, launches=2) is None
        )


def test_many_groups_without_rows(programs):
    rows = np.zeros(grouped_product.MOST_GROUPS, int)
    rows[[5, 31, 32, 200, 383]] = 3, 65, 1, 2, 7
    sizes = [(int(m), 8, 8) for m in rows]
    assert wrong(programs(64), sizes, True, 1) is None
    assert wrong(programs(64), [(0, 8, 8)] * 7, True, 1) is None


def test_the_host_knows_how_much_shared_memory_it_takes(programs):
    for tile in grouped_product.TILES:
        assert ended(programs(tile.columns), (0,) * 7)[0] == str(tile.shared).encode()


@pytest.mark.parametrize("rows, groups, n, k, columns", [
    (8192, 8, 14336, 4096, 256),  # large experts: the L2 cache limits
    (16384, 128, 768, 2048, 128),  # small ones: reading the weights does
    (2016, 64, 2048, 7168, 128),
])  # fmt: skip
def test_the_tile_that_is_chosen(rows, groups, n, k, columns):
    products = grouped_product.expected(rows, groups, n, k)
    assert grouped_product.choose(products, sms=132).columns == columns


FAULTS = {  # what is replaced, by what, and what is then wrong
    "an empty barrier is not waited for": ("        wait(&s.empty[i], ring.parity ^ 1);", "", "arrival|deadlock|results|sum"),
    "rows of the next group are written": ("row < tile.rows &&", "", "results"),
    "columns beyond n are written": ("&& column < tile.columns", "", "results"),
    "a group without tiles is taken": ("if (first[middle] <= tile)", "if (first[middle] < tile)", "results|deadlock|ended"),
    "B of the group before": ("group.row_b + left", "max(group.row_b - group.n, 0) + left", "results"),
    "rows of the second half are not announced": ("(both ? 2 : 1) * BOX", "BOX", "deadlock|arrival|results|copies"),
    "nobody says that there are no more tiles": ("    hand_out(s.tile, {}, parity);", "", "deadlock|ended|results"),
    "a tile is handed over before the last one is read": ("  wait(&slot.empty, parity ^ 1);\n", "", "arrival|deadlock|ended|results|turn"),
    "a tile is read before it is there": ("  wait(&slot.full, parity);\n  const unsigned word = lane < WORDS ? atomicOr(&slot.words[lane], 0) : 0;\n", "  const unsigned word = lane < WORDS ? atomicOr(&slot.words[lane], 0) : 0;\n  wait(&slot.full, parity);\n", "deadlock|ended|results|turn"),
    "nobody says that a tile has been read": ("  if (lane == 0) arrive(&slot.empty);\n", "", "deadlock"),
    "a stage is kept by the consumer without rows": ("            arrive(&s.empty[ring.stage]);", "", "deadlock"),
    "the last stage is not given back": ("      wait_for_products<0>();\n      if (t == 0) arrive(&s.empty[before]);", "      wait_for_products<0>();", "deadlock"),
    "results are used in flight": ("      wait_for_products<0>();", "", "touched|results"),
    "a box is written before it is read": ("turn ^= 1", "turn ^= 0", "results"),
    "the swizzle is off by one": ("(piece ^ line % 8) * 16);", "(piece ^ (line + 1) % 8) * 16);", "results"),
    "the counter does not turn": ("atomicInc(work.taken, tiles - 1)", "atomicInc(work.taken, tiles)", "counter"),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_noticed(name, tmp_path):
    before, after, expected = FAULTS[name]

    program = program_of(grouped_product.TILES[1], tmp_path, fault(before, after))
    kinds = (EXPERTS, True), (DIFFERENT, False)
    expect(expected, (wrong(program, *kind, seed) for seed in range(3) for kind in kinds))
