"""What a warp's access costs, counted from its addresses.

The port of an SM hands out one pass in a cycle. An access to global memory
takes a pass for each line of 128 bytes that it touches; one to shared memory as
many as the bank with most different words has.
"""

from collections.abc import Iterable

BANKS, LINE, VECTOR = 32, 128, 16  # words of 4 bytes; bytes; bytes


def lines(addresses: Iterable[int]) -> int:
    """Passes of an access to global memory; addresses in bytes."""
    return len({address // LINE for address in addresses})


def passes(words: Iterable[int]) -> int:
    """Passes of an access to shared memory; words by their number."""
    there: dict[int, set[int]] = {}
    for word in words:
        there.setdefault(word % BANKS, set()).add(word)
    return max(map(len, there.values()))


def by_vectors(firsts: Iterable[int]) -> int:
    """The same of accesses of 16 bytes, eight lanes at a time; `firsts` are the
    first words of the 32 lanes."""
    firsts = list(firsts)
    groups = (firsts[lane : lane + 8] for lane in range(0, 32, 8))
    return sum(
        passes(first + k for first in group for k in range(VECTOR // 4))
        for group in groups
    )


def per_line(rung: str, pitch: int = 16_384) -> dict[str, float]:
    """Passes of each step of a rung for 128 bytes of the matrix, 32 floats.

    pitch: floats from row to row. A step that a rung lacks has none.
    """
    row = [4 * lane for lane in range(32)]
    column = [4 * pitch * lane for lane in range(32)]
    if rung in ("naive", "naive, reads columns"):
        ways = [row, column] if rung == "naive" else [column, row]
        read, write = map(lines, ways)
        return {"read": read, "store": 0, "load": 0, "write": write}
    if rung == "vectors":
        # 32 lanes move 512 bytes: two rows of 16 vectors each.
        there = [
            4 * pitch * (lane // 16) + 16 * (lane % 16) for lane in range(32)
        ]
        stored = [_turned(4 * (lane % 16), lane // 16) for lane in range(32)]
        loaded = [_turned(lane // 16, lane % 16) for lane in range(32)]
        each = (
            lines(there),
            by_vectors(stored),
            by_vectors(loaded),
            lines(there),
        )
        return dict(
            zip(("read", "store", "load", "write"), (one / 4 for one in each))
        )
    words = {
        "tiled": lambda y, x: 32 * y + x,
        "padded": lambda y, x: 33 * y + x,
        "swizzled": lambda y, x: 32 * y + (x ^ y),
        "several": lambda y, x: 33 * y + x,
    }[rung]
    return {
        "read": lines(row),
        "store": passes(words(5, lane) for lane in range(32)),
        "load": passes(words(lane, 5) for lane in range(32)),
        "write": lines(row),
    }


def _turned(row: int, vector: int, wide: int = 16) -> int:
    """The first word of a vector in the turned tile of `vectors`, 64 x 64."""
    return 4 * (wide * row + (vector ^ row // 4 % 8))
