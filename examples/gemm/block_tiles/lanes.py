"""Passes and sectors of one instruction of a warp, from its lanes' addresses."""

import numpy as np

BANKS, LANES = 32, np.arange(32)


# --8<-- [start:passes]
def passes(first, words=1):
    """Passes that one access of a warp to shared memory takes.

    first: index of each lane's first word. words: 1, 2 or 4 for each lane. In a
    pass each bank gives one word, and every lane that wants it gets it. Wide
    accesses go by groups of 32 / words lanes. Two neighboring groups go together
    where all lanes want the same as their neighbor, or all the same as their
    next but one: NVIDIA does not say so, the counters do.
    """
    first = np.asarray(first)
    group = 32 // words
    if words > 1 and any(
        (first == first[LANES ^ other]).all() for other in (1, 2)
    ):
        group *= 2
    total = 0
    for begin in range(0, 32, group):
        wanted = np.unique(
            first[begin : begin + group, None] + np.arange(words)
        )
        total += np.bincount(wanted % BANKS).max()
    return int(total)


# --8<-- [end:passes]


def sectors(first, words=1):
    """Sectors of 32 bytes that a warp touches. first: as in `passes`."""
    return len(np.unique((np.asarray(first)[:, None] + np.arange(words)) // 8))


def place(t, bn, tm, tn):
    """First column and row of thread t's results, as in the kernels."""
    return t % (bn // tn) * tn, t // (bn // tn) * tm
