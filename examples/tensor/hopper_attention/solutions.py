# ---
# jupyter:
#   cudatut:
#     title: {en: "FlashAttention on Hopper: solutions", zh: "Hopper 上的 FlashAttention：参考答案"}
#     requires: sm_75
#     alone: false
# ---

# %% [markdown]
# Where scores are, the parities of a ring, and an order for unequal tiles.

# %% given-1
import numpy as np


# %% solution-1
def holder(row, column):
    warp, row = divmod(row, 16)
    lane = row % 8 * 4 + column % 8 // 2
    return warp, lane, column // 8 * 4 + row // 8 * 2 + column % 2


# %% check-1
import cudatut as ct

expected = np.empty((64, 128, 3), int)
for thread in range(128):
    warp, lane = divmod(thread, 32)
    for i in range(64):
        at = warp * 16 + lane // 4 + i % 4 // 2 * 8
        expected[at, i // 4 * 8 + lane % 4 * 2 + i % 2] = warp, lane, i
got = [[holder(r, c) for c in range(128)] for r in range(64)]
ct.check(np.array(got), expected, name="warp, lane and register")

# %% given-2
import random


# %% solution-2
def places(n, stages):
    turn = n // stages
    return n % stages, (turn + 1) % 2, turn % 2


# %% check-2
import numpy as np

import cudatut as ct


def simulate(stages, tiles, seed):
    """The tiles as the consumer finds them; -1 in front of a deadlock."""
    order, buffer = random.Random(seed), [-1] * stages
    full, empty = [0] * stages, [0] * stages  # phases that have ended
    copied, found, idle = 0, [], 0
    while len(found) < tiles and idle < 1000:
        idle += 1
        producer = order.random() < 0.5
        at, of_empty, of_full = places(
            copied if producer else len(found), stages
        )
        if producer and copied < tiles and empty[at] % 2 != of_empty:
            buffer[at], full[at], copied = copied, full[at] + 1, copied + 1
            idle = 0
        if not producer and full[at] % 2 != of_full:
            found.append(buffer[at])
            empty[at], idle = empty[at] + 1, 0
    return found + [-1] * (tiles - len(found))


got = [simulate(stages, 9, seed) for stages in (1, 2, 3) for seed in range(50)]
ct.check(np.array(got), np.tile(np.arange(9), (150, 1)), name="tiles in order")

# %% given-3
import heapq


def last_end(works, blocks):
    """Steps until the last block ends, if each draws the next work at once."""
    ends = [0] * blocks
    for _, tile in works:
        heapq.heapreplace(ends, ends[0] + tile + 1)
    return max(ends)


# %% solution-3
def order(heads, tiles):
    longest_first = range(tiles - 1, -1, -1)
    return [(head, tile) for tile in longest_first for head in range(heads)]


# %% check-3
import numpy as np

import cudatut as ct

heads, tiles, blocks = 32, 64, 132
works = order(heads, tiles)
everything = [(head, tile) for head in range(heads) for tile in range(tiles)]
ct.check(np.array(sorted(works)), np.array(everything), name="all pairs")
average = heads * tiles * (tiles + 1) / 2 / blocks
steps = last_end(works, blocks)
late = np.array(max(0.0, steps / average - 1.01))
ct.check(late, np.array(0.0), name="steps of the last block")
