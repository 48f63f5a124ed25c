"""Touch one page after the other, and time each touch: one that finds its page on
the other side takes far longer.
"""

from collections.abc import Sequence
from functools import cache
from time import perf_counter_ns
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.memory.unified.managed import managed_empty
from cudatut.book.memory.unified.prefetcher import BLOCK, PAGE

# --8<-- [start:touches]
WORDS = PAGE // 4  # of a page
SLOW_US = 8  # longer than a read across the link, shorter than a page fault


def blocks_of_2mb(blocks: int) -> Any:
    """An array of managed memory that begins at a multiple of 2 MB: page p holds
    p in its first word, written by the host.
    """
    words = BLOCK * WORDS
    more = managed_empty((blocks + 1) * words, "int32")
    skip = -more.ctypes.data % (4 * words) // 4
    x = more[skip : skip + blocks * words]
    fill(x)
    return x


def fill(x: Any) -> None:
    """The host writes all of x: page p holds p in its first word."""
    x[:] = np.repeat(np.arange(x.size // WORDS, dtype="int32"), WORDS)


def by_host(x: Any, pages: Sequence[int]) -> list[float]:
    """Microseconds of each touch by the host."""
    times = []
    for page in pages:
        begin = perf_counter_ns()
        word = x[page * WORDS]
        times.append((perf_counter_ns() - begin) / 1e3)
        if word != page:
            raise ct.CheckError(f"page {page} holds {word}")
    return times


@cache
def touching() -> ct.Kernel:
    """The kernel, made once."""
    return ct.Kernel("memory/unified/unified.cu", "touch")


def by_gpu(x: Any, pages: Sequence[int]) -> list[float]:
    """Microseconds of each touch by one thread of the GPU."""
    order, count = ct.to_device(np.array(pages, "int32")), len(pages)
    cycles, found = ct.empty(count, "int64"), ct.empty(count, "int32")
    address = np.uint64(x.ctypes.data)  # the same on both sides
    touching()(address, order, cycles, found, count, grid=1, block=1)
    if not np.array_equal(found.get(), pages):
        raise ct.CheckError("the GPU found other words than the host wrote")
    mhz = ct.device().clock_khz / 1e3
    return (cycles.get() / mhz).tolist()


def slow(times: Sequence[float]) -> int:
    """How many touches took longer than any memory does."""
    return sum(us > SLOW_US for us in times)


def slow_each_time(walks: Sequence[Sequence[float]]) -> int:
    """How many touches were slow in every one of these walks over the same pages.

    An interrupt makes a touch of the host slow, too, but hardly the same one again.
    """
    return slow(np.min(walks, axis=0).tolist())


# --8<-- [end:touches]
