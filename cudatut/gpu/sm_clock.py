"""The clock of the SMs while a kernel runs, read off the SMs themselves.

A GPU at its power limit lowers its clock, and then a time says as much about the power as about the kernel. Right before
and right after a kernel each SM notes its cycle counter and the GPU's timer; the one over the other is the clock.
"""

import statistics
from functools import cache

from cudatut.gpu.device import device
from cudatut.gpu.memory import empty
from cudatut.gpu.probes import probe

# Beside a shorter run, the notes themselves take too much of the time between them.
LEAST_US = 20
_MOST_SMS = 1024


class Stamps:
    """What the SMs note before and after a run: `before`, the run, `after`, wait for the GPU, `mhz`."""

    def __init__(self):
        # Of each SM: its cycles, the timer in ns, and the number of the run.
        self._notes = [empty((_MOST_SMS, 3), "uint64") for _ in range(2)]
        self._number = 0

    def before(self) -> None:
        """Enqueue the first note."""
        self._number += 1
        self._note(0)

    def after(self) -> None:
        """Enqueue the second note."""
        self._note(1)

    def _note(self, which: int) -> None:
        # Twice as many blocks as SMs, so that each SM gets one.
        grid = 2 * device().sm_count
        notes = self._notes[which]
        probe("stamp_probe")(notes, _MOST_SMS, self._number, grid=grid, block=32)

    def mhz(self) -> float | None:
        """The clock in MHz between the two notes, the median of the SMs that made both; None if none did."""
        first, last = (notes.get().astype("int64") for notes in self._notes)
        both = (first[:, 2] == self._number) & (last[:, 2] == self._number)
        cycles, ns = (last[both, i] - first[both, i] for i in range(2))
        return statistics.median(1e3 * cycles[ns > 0] / ns[ns > 0]) if (ns > 0).any() else None


@cache
def stamps() -> Stamps:
    """The stamps of this process."""
    return Stamps()
