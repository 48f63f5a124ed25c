"""Is a sanitizer or profiler running this process, and is it being recorded? Said by environment variables."""

import json
import os
import time
from pathlib import Path
from typing import TypeVar

Size = TypeVar("Size")

SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")


def running() -> str | None:
    """Name of the tool that runs this process ('memcheck' ... 'ncu'), or None."""
    return os.environ.get("CUDATUT_TOOL") or None


def recording() -> bool:
    """True while an example is being recorded: then a missing tool is an error, not a note."""
    return os.environ.get("CUDATUT_RECORDING") == "1"


def size(n: Size, small: Size, profiled: Size | None = None) -> Size:
    """`n`, or `small` while a sanitizer or profiler runs the example: instrumented kernels are 10 to 100 times slower.

    n, small: numbers, or tuples of them (lengths to check, extents of a matrix).
    profiled: what a profiler sees instead of `small`, where the counters of just that size are wanted.
    """
    if running() in SANITIZERS or (running() and profiled is None):
        return small
    return profiled if running() else n


def wait_at_gate() -> None:
    """A process that was started ahead of its turn on the GPU waits here for it; its parent's end is its own."""
    gate, parent = os.environ.get("CUDATUT_GATE"), os.getppid()
    while gate and not os.path.exists(gate):
        if os.getppid() != parent:
            raise SystemExit("whoever started this process is gone")
        time.sleep(0.005)


def environment_for(tool: str) -> dict[str, str]:
    """The environment in which a tool runs a process: CUDATUT_TOOL names it, CUDATUT_BEFORE keeps what was there before.

    PYTHONPATH makes sure that the process imports this very package, installed or not.
    """
    here = str(Path(__file__).resolve().parent.parent)
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    before = json.dumps(dict(os.environ))
    return {**os.environ, "PYTHONPATH": path, "CUDATUT_TOOL": tool, "CUDATUT_BEFORE": before}


def environment_before() -> dict[str, str]:
    """The environment without what a tool that runs this process put into it.

    A tool injects itself through variables; a child that inherits them asks for a connection to it, and with many
    children it waits for one in vain.
    """
    before = os.environ.get("CUDATUT_BEFORE")
    return json.loads(before) if running() and before else dict(os.environ)
