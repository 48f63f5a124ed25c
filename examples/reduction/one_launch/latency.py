"""How long one load takes (a walk in which every load needs the one before, as in 'The programming model, measured'),
and how long a fence and an atomic take."""

import numpy as np

import cudatut as ct

WORDS = 32  # a cache line of 128 bytes


def latency_ns(places: int, steps: int, warm: int = 0) -> float:
    """Nanoseconds per load on a random cycle through `places` cache lines, after `warm` loads that are not counted.

    With warm = 0 nothing of the cycle is in a cache; with warm = places it is where it fits, and a cycle that does not
    fit into the L1 cache is served by L2.
    """
    order = np.concatenate([[0], 1 + ct.rng().permutation(places - 1)])
    following = np.zeros((places, WORDS), "int32")
    following[order, 0] = WORDS * np.roll(order, -1)
    cycle, last, ticks = (
        ct.to_device(following.reshape(-1)),
        ct.empty(1, "int32"),
        ct.empty(2, "int64"),
    )
    evict = ct.empty(
        2 * ct.device().l2_bytes, "uint8"
    )  # filling it empties the L2 cache of the cycle
    chase = ct.Kernel("start/programming_model/programming_model.cu", "chase")
    chase(cycle, last, ticks, warm, steps, grid=1, block=1)
    ct.check(
        last,
        WORDS * order[[(warm + steps) % places]],
        name=f"walk through {places} lines",
    )
    del evict
    return float(ticks.get()[1] / steps)


def dram_ns() -> float:
    """One load from memory."""
    return latency_ns(ct.size(1 << 20, 1 << 10), ct.size(20_000, 500))


def l2_ns() -> float:
    """One load from the L2 cache."""
    return latency_ns(
        ct.size(1 << 14, 1 << 9),
        ct.size(20_000, 500),
        warm=ct.size(1 << 14, 1 << 9),
    )


def handover_ns() -> dict[str, float]:
    """What the steps of handing over a partial sum take by a ticket, beside the load from L2 at the end."""
    steps = ct.size(2_000, 50)
    words, total = ct.to_device(np.zeros(2, "uint32")), ct.empty(3, "int64")
    ct.Kernel("reduction/one_launch/handover.cu", "handover")(
        words, total, steps, grid=1, block=1
    )
    ct.check(words, np.array([steps - 1, 0]), name="what the steps left")
    return dict(
        zip(
            ("store and fence", "ticket", "fence"),
            (total.get() / steps).tolist(),
        )
    )
