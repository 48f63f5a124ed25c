"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def _whole(path: Path, raw: bytes) -> Iterator[Path]:
    """The file, of the usual permissions, in a folder of its own beside where it shall be."""
    with tempfile.TemporaryDirectory(
        dir=path.parent, prefix=f".{path.stem}-", ignore_cleanup_errors=True
    ) as folder:
        whole = Path(folder, path.name)
        whole.write_bytes(raw)
        yield whole


def write_whole(path: Path, raw: bytes) -> None:
    """Write a file in one step: until it is whole, what was there stays. Raises OSError."""
    with _whole(path, raw) as whole:
        os.replace(whole, path)


def write_new(path: Path, raw: bytes) -> None:
    """Write a file that is not there yet, in one step. Raises FileExistsError, and what is there stays; OSError."""
    with _whole(path, raw) as whole:
        try:
            os.link(whole, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            with path.open("xb") as file:
                file.write(raw)
