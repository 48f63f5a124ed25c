"""The modules of one part of the examples, for a moment, although other parts have modules of the same names."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cudatut as ct


@contextmanager
def modules_of(part: str) -> Iterator[None]:
    """What is imported inside is looked for beside the modules of examples/<part>, and forgotten afterwards."""
    folder = ct.paths.examples_dir() / part
    names = {path.stem for path in folder.glob("*.py")}
    others = {name: sys.modules.pop(name) for name in names & set(sys.modules)}
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in names & set(sys.modules):
            if Path(getattr(sys.modules[name], "__file__", None) or "").parent == folder:
                del sys.modules[name]
        sys.modules.update(others)
