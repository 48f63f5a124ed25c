"""A kernel that runs again and again, and what nvidia-smi reads meanwhile.

run = sustained(launch, flops, seconds=60)
run.rate                # TFLOP/s in the second half of the time
run.late().watts        # the median of the second half
"""

import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import pycuda.driver as cuda

import cudatut as ct

ASKED = "clocks.sm,power.draw.instant,temperature.gpu,power.limit"
BATCH = 16  # launches between two looks at the time


class Reading(NamedTuple):
    """What nvidia-smi reads at one time, in the order of ASKED; None for what
    this GPU does not tell.
    """

    mhz: float | None
    watts: float | None
    degrees: float | None  # Celsius
    limit: float | None  # watts


@dataclass(frozen=True)
class Sustained:
    """TFLOP/s in the second half of the time, and all readings in order."""

    rate: float
    readings: list[Reading]

    def late(self) -> Reading:
        """The medians of the second half."""
        return median(self.readings[len(self.readings) // 2 :])


def sustained(
    launch: Callable[[], object],
    flops: float,
    seconds: float,
    every_ms: int = 500,
) -> Sustained:
    """Launch without pauses for so many seconds; a launch does `flops`.

    Raises ct.ToolMissing without nvidia-smi, or where it reads nothing.
    """
    launch()  # what is compiled or allocated at first does not count
    ct.synchronize()
    done = []  # seconds since the start, after each batch
    with watched(every_ms) as readings:
        start = time.monotonic()
        while len(done) < 2 or done[-2] < seconds / 2 or done[-1] < seconds:
            for _ in range(BATCH):
                launch()
            ct.synchronize()
            done.append(time.monotonic() - start)
    if not readings:
        raise ct.ToolMissing(
            f"nvidia-smi read nothing of this GPU in {seconds} s; see what "
            f"`nvidia-smi --query-gpu={ASKED} --format=csv` says"
        )
    late = [at for at in done if at >= seconds / 2]
    rate = BATCH * (len(late) - 1) * flops / (late[-1] - late[0]) / 1e12
    return Sustained(rate, readings)


@contextmanager
def watched(every_ms: int) -> Iterator[list[Reading]]:
    """nvidia-smi runs meanwhile; behind the block the list has its readings."""
    command = ["nvidia-smi", "-i", cuda.Device(0).pci_bus_id()]
    command += ["-lms", str(every_ms), f"--query-gpu={ASKED}"]
    command += ["--format=csv,noheader,nounits"]
    readings: list[Reading] = []
    try:
        smi = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        raise ct.ToolMissing(
            "nvidia-smi is not on PATH; it comes with NVIDIA's driver"
        ) from None
    with smi:
        try:
            yield readings
        finally:
            smi.terminate()  # by itself it never ends
            readings += parse(smi.stdout)


def parse(lines: Iterable[str]) -> list[Reading]:
    """The readings in what nvidia-smi prints. The last line may be cut off, and
    a message may stand among them.
    """
    found = []
    for line in lines:
        words = line.split(",")
        if line.endswith("\n") and len(words) == len(Reading._fields):
            found.append(Reading(*map(number, words)))
    return found


def number(word: str) -> float | None:
    """None for `[N/A]` and the like."""
    try:
        return float(word)
    except ValueError:
        return None


def median(readings: Iterable[Reading]) -> Reading:
    """Of each value by itself, where it was read at all."""
    columns = ([x for x in c if x is not None] for c in zip(*readings))
    return Reading(*(statistics.median(c) if c else None for c in columns))
