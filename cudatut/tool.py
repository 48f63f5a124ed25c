"""Is a sanitizer or profiler running this process, and is it being recorded? Said by environment variables."""

import os

SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")


def running() -> str | None:
    """Name of the tool that runs this process ('memcheck' ... 'ncu'), or None."""
    return os.environ.get("CUDATUT_TOOL") or None


def recording() -> bool:
    """True while an example is being recorded: then a missing tool is an error, not a note."""
    return os.environ.get("CUDATUT_RECORDING") == "1"


def size(n: int, small: int) -> int:
    """`n`, or `small` while a sanitizer or profiler runs the example: instrumented kernels are 10 to 100 times slower."""
    return small if running() else n
