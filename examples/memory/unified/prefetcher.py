"""Which touches of managed memory fault: the rule of NVIDIA's driver, as its
published source has it, in a few lines. No GPU is needed.
"""

from collections.abc import Iterable

# --8<-- [start:rule]
PAGE = 4096  # bytes
BIG = 16  # pages of 64 KB: they move together
BLOCK = 512  # pages of 2 MB: no decision looks beyond them
PERCENT = 51


def faults(pages: Iterable[int]) -> list[bool]:
    """Of touches, one after the other, by one processor: which find their page
    on the other side? All pages are there at first.
    """
    here, found = set[int](), []
    for page in pages:
        found.append(page not in here)
        if page in here:
            continue
        start = page - page % BIG
        moves, wide = range(start, start + BIG), BIG
        here.update(moves)
        while wide < BLOCK:  # is more than half of a larger piece here?
            wide *= 2
            start = page - page % wide
            piece = range(start, start + wide)
            if 100 * sum(one in here for one in piece) > PERCENT * wide:
                moves = piece
        here.update(moves)
    return found


# --8<-- [end:rule]


def patterns(blocks: int, order) -> dict[str, list[int]]:
    """Ways to touch the pages of so many blocks. order: a random generator."""
    every = list(range(blocks * BLOCK))
    return {
        "every page, upwards": every,
        "every page, downwards": every[::-1],
        "every page, in random order": order.permutation(every).tolist(),
        "every other 64 KB": [
            page for page in every if page // BIG % 2 == 0 and page % BIG == 0
        ],
        "one page of each 2 MB": every[::BLOCK],
    }
