"""The PCIe link between host and GPU: which generation and how many lanes it
has now, and what these can carry. An idle link may run as an older generation,
so ask while copies run.
"""

import ctypes
import statistics
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

# Of each generation: billions of transfers a second and lane, a bit each, and
# the part of these bits that is data.
_SPEEDS = {
    1: (2.5, 8 / 10),
    2: (5.0, 8 / 10),
    3: (8.0, 128 / 130),
    4: (16.0, 128 / 130),
    5: (32.0, 128 / 130),
    6: (64.0, 242 / 256),
}


class Link(NamedTuple):
    """Of PCIe: the generation, and the number of lanes."""

    generation: int
    lanes: int

    @property
    def rate(self) -> float:
        """GB/s in each direction, headers of packets included."""
        transfers, data = _SPEEDS[self.generation]
        return transfers * data * self.lanes / 8


def now(bus_id: str) -> Link:
    """The link of the GPU at this address of the PCI bus, '0000:1B:00.0', as
    NVML tells it, or else Linux. Raises RuntimeError where nobody does.
    """
    found = _by_nvml(bus_id) or _by_linux(Path("/sys/bus/pci/devices"), bus_id)
    if found is None:
        raise RuntimeError(f"neither NVML nor /sys knows the link of {bus_id}")
    return found


def while_busy(bus_id: str, busy: Callable[[], bool]) -> Link:
    """The link that is seen most often until `busy` says False; at least one
    look.
    """
    seen = [now(bus_id)]
    while busy():
        seen.append(now(bus_id))
    return statistics.mode(seen)


@cache
def _nvml() -> Any:
    """The library, started; None without it."""
    name = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return None
    return None if library.nvmlInit_v2() else library


def _by_nvml(bus_id: str) -> Link | None:
    nvml, device = _nvml(), ctypes.c_void_p()
    if nvml is None or nvml.nvmlDeviceGetHandleByPciBusId_v2(
        bus_id.encode(), ctypes.byref(device)
    ):
        return None
    values = []
    for what in ("Generation", "Width"):
        value = ctypes.c_uint(0)
        ask = getattr(nvml, f"nvmlDeviceGetCurrPcieLink{what}")
        if ask(device, ctypes.byref(value)):
            return None
        values.append(value.value)
    known = values[0] in _SPEEDS and values[1] > 0
    return Link(*values) if known else None


def _by_linux(devices: Path, bus_id: str) -> Link | None:
    """From files such as current_link_speed, which says '32.0 GT/s PCIe'."""
    folder = devices / bus_id.lower()
    try:
        speed = float((folder / "current_link_speed").read_text().split()[0])
        lanes = int((folder / "current_link_width").read_text())
    except (OSError, ValueError, IndexError):
        return None
    for generation, (transfers, _) in _SPEEDS.items():
        if speed == transfers and lanes > 0:
            return Link(generation, lanes)
    return None
