"""A gate in a stream: the GPU waits there until the host opens it, so that all behind it is enqueued before it begins.

The gate is a kernel of one thread that looks at a word in the host's memory. If the host itself waits for the GPU while
the gate is shut, neither would go on; so the gate loses patience after a while, and says so.
"""

from functools import cache

import numpy as np

from cudatut.gpu.device import pycuda_driver
from cudatut.gpu.probes import probe

_PATIENCE_NS = 20_000_000  # more than any launch of the book takes the host


class Gate:
    """One gate, used again and again: `shut`, enqueue what is to be timed, `open`, wait for the GPU, `held`."""

    def __init__(self):
        cuda = pycuda_driver()
        # The GPU sees these two words where they lie, in the host's memory: the number of the gate that the host opened,
        # and of one that lost patience.
        self._words = cuda.pagelocked_zeros(2, np.uint32, mem_flags=cuda.host_alloc_flags.DEVICEMAP)
        self._address = self._words.base.get_device_pointer()
        self._number = 0

    def shut(self) -> None:
        """Enqueue a gate that is shut."""
        self._number = self._number % 0xFFFF_FFFF + 1  # never 0, which the words begin with
        opened, gave_up = np.uint64(self._address), np.uint64(self._address + 4)
        probe("gate_probe")(opened, gave_up, self._number, _PATIENCE_NS, grid=1, block=1)

    def open(self) -> None:
        """Let the GPU go on."""
        self._words[0] = self._number

    def held(self) -> bool:
        """Whether the last gate stood until the host opened it. To be asked once the GPU has passed it."""
        return int(self._words[1]) != self._number


@cache
def gate() -> Gate:
    """The gate of this process."""
    return Gate()
