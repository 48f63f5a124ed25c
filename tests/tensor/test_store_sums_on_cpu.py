"""store_sums of examples/tensor/ladder/products.cuh on a CPU: every sum at its place, whole sectors. Faults that are planted are
noticed."""

import pytest
from emulator import HERE, built, ended, expect, fault


def program_of(folder, change=lambda text: text):
    return built(folder, HERE / "store_sums.cpp", "tensor/ladder/products.cuh", change)


def wrong(program, *numbers):
    """What is wrong, or None; m, n, top, left, seed."""
    return ended(program, numbers)[1]


# A tile inside of C; over its lower edge, all of some warps outside; over its right edge, in the middle of 16 columns.
PLACES = [
    (64, 64, 0, 0),
    (200, 192, 64, 128),
    (75, 64, 64, 0),
    (1, 8, 0, 0),
    (130, 104, 64, 64),
    (64, 64, 64, 0),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return program_of(tmp_path_factory.mktemp("store"))


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_results(program, place):
    assert [wrong(program, *place, seed) for seed in range(2)] == [None, None]


FAULTS = {
    "the wrong pair is traded": ("odd ? low : high, 1", "odd ? high : low, 1", "results"),
    "halves in the wrong order": ("odd ? make_uint2(got, high)", "odd ? make_uint2(high, got)", "results"),
    "nobody looks at the right edge": (" && column < n", "", "beside C|results"),
    "nobody looks at the lower edge": ("row + half * 8 < m && ", "", "beside C"),
    "lanes that trade nothing": (
        "(j + odd) * 8 + t % 4 / 2 * 4",
        "j * 8 + t % 4 * 4",
        "results",
    ),
    "sectors are filled in two stores": ("if (row + half * 8 < m", "for (int turn = 0; turn < 2; stores[t] += turn++ != t % 4 / 2) if (turn == t % 4 / 2 && row + half * 8 < m", "sector"),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_noticed(name, tmp_path):
    before, after, expected = FAULTS[name]
    program = program_of(tmp_path, fault(before, after))
    expect(expected, (wrong(program, *place, 0) for place in PLACES))
