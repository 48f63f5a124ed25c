"""What a subdivision does to a picture whose dwells are known: which tiles it
fills, computes or divides, how many launches and how much work that is.

    tiles = plan(dwells, first=128, split=2, least=16)
    ct.check(out, drawn(dwells, tiles))
"""

from dataclasses import dataclass

import numpy as np


# --8<-- [start:plan]
@dataclass(frozen=True)
class Tile:
    """kind: "filled" with its value, "computed" pixel by pixel, "divided"."""

    x: int
    y: int
    side: int
    kind: str
    value: int = 0


def plan(dwells: np.ndarray, first: int, split: int, least: int) -> list[Tile]:
    """The tiles of a subdivision, those of `first` pixels before their parts."""
    n, found, side = len(dwells), list[Tile](), first
    todo = [(x, y) for y in range(0, n, first) for x in range(0, n, first)]
    while todo:
        parts = []
        for x, y in todo:
            kind, value = decide(dwells[y : y + side, x : x + side], least)
            found.append(Tile(x, y, side, kind, value))
            if kind == "divided":
                step = range(0, side, side // split)
                parts += [(x + i, y + j) for j in step for i in step]
        todo, side = parts, side // split
    return found


def decide(tile: np.ndarray, least: int) -> tuple[str, int]:
    """What becomes of a tile, and the value that fills it."""
    if len(tile) <= least:
        return "computed", 0
    corner = tile[0, 0]
    edges = tile[0], tile[-1], tile[:, 0], tile[:, -1]
    same = all((edge == corner).all() for edge in edges)
    return ("filled", int(corner)) if same else ("divided", 0)


# --8<-- [end:plan]


def drawn(dwells: np.ndarray, tiles: list[Tile]) -> np.ndarray:
    """The picture that the subdivision draws: what is filled may differ."""
    out = dwells.copy()
    for tile in tiles:
        if tile.kind == "filled":
            end = tile.y + tile.side, tile.x + tile.side
            out[tile.y : end[0], tile.x : end[1]] = tile.value
    return out


def work(dwells: np.ndarray, tiles: list[Tile]) -> int:
    """Steps of the recurrence that the subdivision makes; all pixels need
    dwells.sum().
    """
    total = 0
    for tile in tiles:
        end = tile.y + tile.side, tile.x + tile.side
        part = dwells[tile.y : end[0], tile.x : end[1]].astype("int64")
        inside = 0 if tile.kind == "computed" else part[1:-1, 1:-1].sum()
        total += int(part.sum() - inside)
    return total


def divided(tiles: list[Tile]) -> int:
    """Tiles that are divided; each of them is a launch."""
    return sum(tile.kind == "divided" for tile in tiles)


def by_numpy(
    left: float, top: float, step: float, n: int, most: int
) -> np.ndarray:
    """Dwells in fp32, with the operations and the order of the kernels."""
    along = np.arange(n, dtype="float32") * np.float32(step)
    a = np.tile(np.float32(left) + along, n)
    b = np.repeat(np.float32(top) + along, n)
    out = np.zeros(n * n, "uint16")
    u, v, still = np.zeros_like(a), np.zeros_like(a), np.arange(n * n)
    for _ in range(most):
        inside = u * u + v * v < 4
        a, b, u, v, still = (one[inside] for one in (a, b, u, v, still))
        u, v = u * u - v * v + a, 2 * u * v + b
        out[still] += 1
    return out.reshape(n, n)


def letters(tiles: list[Tile], n: int, least: int, most: int) -> list[str]:
    """A row of text for each `least` rows of pixels: of the tile that covers
    its place the size, as a letter for one that was computed ("a": `least`
    pixels), a capital for one that was filled, and a digit for one that was
    filled with `most`.
    """
    rows = np.full((n // least, n // least), ".")
    for tile in tiles:
        if tile.kind == "divided":
            continue
        size = (tile.side // least).bit_length() - 1
        kinds = "abcdefgh" if tile.kind == "computed" else "ABCDEFGH"
        if tile.kind == "filled" and tile.value == most:
            kinds = "01234567"
        y, x, wide = tile.y // least, tile.x // least, 1 << size
        rows[y : y + wide, x : x + wide] = kinds[size]
    return ["".join(row) for row in rows]
