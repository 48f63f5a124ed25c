"""Is a sanitizer or profiler running this process, and is it being recorded? Said by environment variables."""

import json
import os
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
    if not running():
        return n
    return small if running() in SANITIZERS or profiled is None else profiled


def environment() -> dict[str, str]:
    """The environment for a child process that imports this very package, installed or not."""
    here = str(Path(__file__).resolve().parent.parent)
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = os.pathsep.join([here, *(one for one in known if one and one != here)])
    return os.environ | {"PYTHONPATH": path}


def environment_for(tool: str) -> dict[str, str]:
    """The environment in which a tool runs a process: CUDATUT_TOOL names it, CUDATUT_BEFORE keeps what was there before."""
    return {**environment(), "CUDATUT_TOOL": tool, "CUDATUT_BEFORE": json.dumps(dict(os.environ))}


def environment_before() -> dict[str, str]:
    """The environment without what a tool that runs this process put into it.

    A tool injects itself through variables; a child that inherits them asks for a connection to it, and with many
    children it waits for one in vain.
    """
    before = os.environ.get("CUDATUT_BEFORE")
    return json.loads(before) if running() and before else dict(os.environ)
