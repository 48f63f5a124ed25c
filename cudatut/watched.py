"""`python -m cudatut.watched FILE`: run a Python file for a tool that watches this process.

The GPU is opened before the file begins. A tool waits only some seconds for the first CUDA call of the process it has
started; a file that begins with other work, such as children of its own, would come too late, and then wait for ever.
"""

import runpy
import sys
from pathlib import Path

from cudatut.gpu import activate


def main(path: str) -> None:
    """Run the file as `python FILE` would, in a process that already has its GPU."""
    activate()
    sys.argv = [path]
    sys.path[0] = str(Path(path).resolve().parent)
    runpy.run_path(path, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1])
