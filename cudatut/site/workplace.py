"""The folder in which a build makes a site, beside the place where it shall be; and what killed builds left behind.

A build holds a lock in its folder for as long as it lives, however it ends: a folder whose lock is free is nobody's.
"""

from __future__ import annotations

import glob
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed
    fcntl = None  # type: ignore[assignment] # a module is all that its name may be

MARK = ".cudatut-build"  # `make clean` goes by it, too


@contextmanager
def folder(out: Path) -> Iterator[Path]:
    """A new folder beside `out`, on the same disk; it is removed at the end. Removes what killed builds of `out` left.

    Raises OSError.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    sweep(out)
    beside = partial(tempfile.TemporaryDirectory, prefix=f".{out.name}-", dir=out.parent)
    with beside(ignore_cleanup_errors=True) as name, _held(Path(name)):
        yield Path(name)


def sweep(out: Path) -> list[Path]:
    """Remove the folders of builds of `out` that are no longer alive. Returns them."""
    marks = out.parent.glob(f".{glob.escape(out.name)}-*/{MARK}")
    left = [mark.parent for mark in marks if not _alive(mark)]
    for one in left:
        shutil.rmtree(one, ignore_errors=True)
    return left


@contextmanager
def _held(made: Path) -> Iterator[None]:
    mark = made / MARK
    first = mark.with_suffix(".new") if fcntl else mark
    with first.open("wb") as file:
        if fcntl:
            with suppress(OSError):  # a file system without locks: then nothing is swept either
                fcntl.flock(file, fcntl.LOCK_EX)
                first.rename(mark)  # now: whoever sees the mark finds its lock taken
        yield


def _alive(mark: Path) -> bool:
    try:
        if fcntl:
            with mark.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            mark.unlink()
    except OSError:  # its lock is taken; or it is gone, since somebody else sweeps
        return True
    return False


def environment(work: Path) -> dict[str, str]:
    """Variables that keep a child's temporary files in the folder, which goes whole however the child ends."""
    temporary = work / "tmp"
    temporary.mkdir(exist_ok=True)
    return dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
