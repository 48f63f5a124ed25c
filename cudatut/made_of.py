"""Files without which an example cannot have run, as its text tells: what its recording must name among its sources.

Less than it may have used: a module that a function imports, a kernel whose file a loop names, are told by the run alone.
So a source that was left out of a recording, to be changed unnoticed, is missed here.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from cudatut import catalog, paths
from cudatut.fingerprint.meaning import CUDA
from cudatut.gpu.headers import quoted


def problems(own: str, named: Iterable[str], metadata: Mapping[str, Any]) -> Iterator[str]:
    """Files that a recording does not name among its sources, and cannot have run without.

    own: the example's file; named: files that its code gives by name (`written.Code.files`); metadata: the recording's.
    """
    root, sources = paths.examples_dir(), set(metadata["sources"])
    needed = {own, *(file for file in named if (root / file).is_file())}
    todo = list(needed)
    while todo:
        more = set(_led_to(todo.pop())) - needed
        needed |= more
        todo += more
    if "kernels" in metadata:
        # It may have read other files as text alone, and then includes nothing.
        compiled = {one["file"] for one in metadata["kernels"] if "file" in one}
    else:
        compiled = {file for file in sources if file.endswith(CUDA)}
    for file in compiled:
        needed.update(_led_to(file))
    if missing := sorted(needed - sources):
        yield f"its sources lack {', '.join(missing)}, without which it cannot have run"


def _led_to(file: str) -> tuple[str, ...]:
    """The files of the examples that one imports whenever it runs, or includes; none for one that is gone."""
    root = paths.examples_dir()
    return _read(root, file, catalog.read_text(root / file)) if (root / file).is_file() else ()


@lru_cache(maxsize=1024)  # by what the file says: most are sources of many recordings
def _read(root: Path, file: str, text: str) -> tuple[str, ...]:
    beside = (root / file).parent
    if file.endswith(".py"):
        # At the margin: it has run, if the file has.
        places = [[place] for place in catalog.imported(text, beside, margin=True)]
    elif file.endswith(CUDA):
        places = [[beside / name, root / name] for name in quoted(text)]
    else:
        return ()
    found = (next((one.resolve() for one in some if one.is_file()), None) for some in places)
    return tuple(
        catalog.relative(path, root) for path in found if path and path.is_relative_to(root)
    )
