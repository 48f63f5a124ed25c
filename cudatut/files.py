"""Files that are written whole or not at all."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, raw: bytes) -> None:
    """Write a file of the usual permissions in one step: until it is whole, what was there stays. Raises OSError."""
    with tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=f".{path.stem}-", suffix=".tmp", delete=False
    ) as file:
        try:
            file.write(raw)
            file.close()
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(file.name, 0o666 & ~umask)
            os.replace(file.name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(file.name)
            raise


def write_new(path: Path, raw: bytes) -> None:
    """Write a file that is not there yet, in one step. Raises FileExistsError, and what is there stays; OSError."""
    with tempfile.TemporaryDirectory(
        dir=path.parent, prefix=f".{path.stem}-", ignore_cleanup_errors=True
    ) as folder:
        whole = Path(folder, path.name)
        write_whole(whole, raw)
        try:
            os.link(whole, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            with path.open("xb") as file:
                file.write(raw)
