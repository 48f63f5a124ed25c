"""What `memory/dynamic` says of a subdivision whose dwells are known: its tiles, its work, its picture, and the drawing of them."""

import numpy as np
import pytest

from cudatut.book.memory.dynamic.plan import by_numpy, divided, drawn, letters, plan, work

N, MOST = 128, 60


@pytest.fixture(scope="module")
def dwells():
    return by_numpy(-2.25, -1.5, 3 / N, N, MOST)


def test_dwells_are_those_of_a_loop(dwells):
    f = np.float32
    for y, x in ((0, 0), (64, 90), (64, 64), (40, 70), (127, 3)):
        a, b = f(-2.25) + f(x) * f(3 / N), f(-1.5) + f(y) * f(3 / N)
        u = v = f(0)
        steps = 0
        while steps < MOST and u * u + v * v < 4:
            u, v = u * u - v * v + a, f(2) * u * v + b
            steps += 1
        assert dwells[y, x] == steps
    assert dwells.max() == MOST


@pytest.mark.parametrize(("first", "split", "least"), [(32, 2, 4), (64, 4, 4), (128, 2, 128)])
def test_tiles_cover_the_picture_once(dwells, first, split, least):
    tiles = plan(dwells, first, split, least)
    seen = np.zeros((N, N), int)
    for tile in tiles:
        if tile.kind != "divided":
            seen[tile.y : tile.y + tile.side, tile.x : tile.x + tile.side] += 1
            assert tile.side >= least
    assert (seen == 1).all()
    assert len(tiles) == (N // first) ** 2 + split**2 * divided(tiles)


def test_what_is_filled_is_what_the_border_says(dwells):
    tiles = plan(dwells, 32, 2, 4)
    assert (drawn(dwells, tiles) == dwells).mean() > 0.99
    hidden = np.zeros((32, 32), "uint16")
    hidden[10:20, 10:20] = 7  # no border of a tile shows it
    (tile,) = plan(hidden, 32, 2, 4)
    assert (tile.kind, tile.value) == ("filled", 0)
    assert not drawn(hidden, [tile]).any()


def test_work_counts_borders_and_what_is_computed():
    flat = np.full((16, 16), 3, "uint16")
    assert work(flat, plan(flat, 16, 2, 4)) == 3 * 4 * 15
    assert work(flat, plan(flat, 16, 2, 16)) == 3 * 16 * 16
    noise = np.arange(256, dtype="uint16").reshape(16, 16)
    tiles = plan(noise, 16, 2, 8)
    border = noise.sum() - noise[1:-1, 1:-1].sum()
    assert work(noise, tiles) == border + noise.sum()


def test_letters_say_side_and_kind(dwells):
    tiles = plan(dwells, 32, 2, 4)
    rows = letters(tiles, N, 4, MOST)
    assert len(rows) == N // 4 and {len(row) for row in rows} == {N // 4}
    for tile in tiles:
        if tile.kind == "divided":
            continue
        letter = rows[tile.y // 4][tile.x // 4]
        size = int(letter) if letter.isdigit() else ord(letter.lower()) - ord("a")
        assert 4 << size == tile.side
        assert letter.islower() == (tile.kind == "computed")
        assert letter.isdigit() == (tile.kind == "filled" and tile.value == MOST)
