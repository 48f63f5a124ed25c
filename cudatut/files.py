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
