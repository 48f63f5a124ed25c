"""After every test: did a kernel write beside an array? `ct.check` asks that, but many tests compare by other means.

The red zones of an array are looked at when it is freed, and those of arrays that live on after each test. Set
CUDATUT_WATCH_ZONES=0 to do without, where that is in the way of something else.
"""

import os
import weakref
from contextlib import suppress

from cudatut.gpu import memory

_found: list[str] = []
_told: "weakref.WeakSet[memory.Allocation]" = weakref.WeakSet()


def watch() -> None:
    """Look at the zones of every array that is made from now on."""
    if os.environ.get("CUDATUT_WATCH_ZONES") == "0":
        return

    class Watched(memory.Allocation):
        def __del__(self):
            if self not in _told:
                _look(self)

    memory.Allocation = Watched


def _look(allocation: memory.Allocation) -> None:
    with suppress(Exception):  # one that was never made; a context that is lost, or ended
        memory.synchronize()
        if damage := allocation.damage():
            _found.append(damage)
            _told.add(allocation)


def damaged() -> list[str]:
    """What was written beside arrays since it was asked last."""
    if os.environ.get("CUDATUT_WATCH_ZONES") != "0":
        for allocation in list(memory._live):
            if allocation not in _told:
                _look(allocation)
    found = _found[:]
    _found.clear()
    return found
