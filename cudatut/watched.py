"""`python -m cudatut.watched FILE ...`: run Python files for a tool that watches this process.

The GPU is opened before the first file begins. A tool waits only some seconds for the first CUDA call of the process it
has started; a file that begins with other work, such as children of its own, would come too late, and then wait for ever.

Several files share the process, since to open the GPU under a tool takes about as long as many an example does.
"""

import gc
import runpy
import sys
from pathlib import Path

from cudatut import paths
from cudatut.gpu import activate


def main(files: list[str]) -> None:
    """Run each file as `python FILE` would, in a process that already has its GPU. The first that fails ends it."""
    activate()
    for file in files:
        _run(Path(file).resolve())


def _run(path: Path) -> None:
    loaded = set(sys.modules)
    sys.argv, sys.path[0] = [str(path)], str(path.parent)
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    # What lies beside one example (`ladder`) is another module beside the next; and its arrays must not outlive it.
    examples = paths.examples_dir().resolve()
    for name in set(sys.modules) - loaded:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).resolve().is_relative_to(examples):
            del sys.modules[name]
    gc.collect()


if __name__ == "__main__":
    main(sys.argv[1:])
