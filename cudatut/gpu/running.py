"""`python -m cudatut.gpu.running FILE [ARGUMENTS]`: run a file as `python FILE` does, but say briefly why it failed.

An error that cudatut raises on purpose explains itself: its traceback shows the lines of the file alone, without those of
this package, and without the error of PyCUDA that it replaces. CUDATUT_DEBUG=1 shows everything.
"""

import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from cudatut import words
from cudatut.errors import CudatutError
from cudatut.fingerprint import ran


def run_file(path: Path, arguments: Sequence[str] = ()) -> int:
    """Run a file in this process; returns its exit status. An exception is printed, and is status 1."""
    ran.file(path)
    sys.argv, sys.path[0] = [str(path), *arguments], str(path.parent)
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except Exception as error:
        print(explained(error, path), end="", file=sys.stderr)
        return 1
    return 0


def explained(error: Exception, path: Path) -> str:
    """The traceback of an exception that came out of this file."""
    whole = traceback.TracebackException.from_exception(error)
    if os.environ.get("CUDATUT_DEBUG") == "1":
        return "".join(whole.format())
    frames = list(whole.stack)
    while frames and Path(frames[0].filename) != path:  # runpy's, and ours
        frames.pop(0)
    if isinstance(error, CudatutError):
        package = Path(__file__).parent.parent
        examples = package / "examples"  # where the package is installed they lie within it

        def ours(frame: traceback.FrameSummary) -> bool:
            file = Path(frame.filename)
            return file.is_relative_to(package) and not file.is_relative_to(examples)

        frames = [frame for frame in frames if not ours(frame)]
        whole.__cause__ = whole.__context__ = None
    whole.stack = traceback.StackSummary.from_list(frames)
    return "".join(whole.format())


if __name__ == "__main__":
    words.printable()
    try:
        raise SystemExit(run_file(Path(sys.argv[1]).resolve(), sys.argv[2:]))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
