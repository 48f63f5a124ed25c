"""What this process ran of the book: its modules, the files that it read, the kernels that it compiled, its children's too.

`follow` begins to listen, in a process that is recorded and in the Python processes that it starts: the variable
CUDATUT_RAN says where each writes down what it finds. `report` gathers it all.
"""

import atexit
import json
import os
import sys
import sysconfig
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from cudatut import paths

VARIABLE = (
    "CUDATUT_RAN"  # the file to which a recorded process and its children append what they run
)

_texts: set[str] = set()
_files: set[str] = set()
_kernels: list[dict[str, Any]] = []
_used: set[str] = set()
_following = False
_package = str(Path(__file__).resolve().parent.parent) + os.sep
_python = tuple(sysconfig.get_paths()[key] + os.sep for key in ("stdlib", "platstdlib"))


def use(aspect: str) -> None:
    """Remember that the instrument was used: 'timing', 'checking' or 'profiling' (see `cudatut.instrument`)."""
    if aspect not in _used:
        _used.add(aspect)
        _tell(used=aspect)


def kernel(files: Iterable[Path], **facts: Any) -> None:
    """Remember a kernel that was compiled: the files of its source, and what a recording says of it."""
    inside = [name for file in files if (name := _name(file))]
    _files.update(inside)
    if facts not in _kernels:
        _kernels.append(facts)
        # A profiler ends its process early: what it has imported is told by then.
        _tell(kernel=facts, files=inside, modules=_modules())


def file(path: str | os.PathLike) -> None:
    """Remember a file whose meaning counts: a script that is run by name, a source that another program compiles."""
    if (name := _name(path)) and name not in _files:
        _files.add(name)
        _tell(files=[name])


def text(path: str | os.PathLike) -> None:
    """Remember that the text of a file counts, comments and all."""
    if (name := _name(path)) and name not in _texts:
        _texts.add(name)
        _tell(text=name)


def follow() -> None:
    """Listen from here on to which files of the examples are read, and by whom. `import cudatut` does it, where asked."""
    global _following
    if not _following:
        _following = True
        sys.addaudithook(_hear)
        atexit.register(_tell_modules)


def following() -> bool:
    """Whether anybody will ask what ran."""
    return _following


def report() -> dict[str, Any]:
    """What ran so far, here and in children: {"files": {name: "meaning" or "text"}, "kernels": [...], "used": [...]}.

    Names are relative to the examples. The text of a file counts where code of the book or of a library read it by
    itself; of a module that was imported, and of a kernel's file, its meaning.
    """
    texts, files, kernels = set(_texts), {*_files, *_modules()}, list(_kernels)
    used = set(_used)
    told = Path(os.environ.get(VARIABLE, ""))
    lines = told.read_text(encoding="utf-8").splitlines() if told.is_file() else []
    for one in map(json.loads, lines):
        texts |= {one["text"]} if "text" in one else set()
        files |= {*one.get("files", ()), *one.get("modules", ())}
        used |= {one["used"]} if "used" in one else set()
        if "kernel" in one and one["kernel"] not in kernels:
            kernels.append(one["kernel"])
    ways = dict.fromkeys(files, "meaning") | dict.fromkeys(texts, "text")
    return {"files": dict(sorted(ways.items())), "kernels": kernels, "used": sorted(used)}


def _tell(**what: Any) -> None:
    """Append a line at once, since a child may be killed."""
    if _following:
        # One write of a line to a file that is only appended to: processes side by side do not mix.
        with suppress(OSError), open(os.environ[VARIABLE], "a", encoding="utf-8") as file:
            file.write(json.dumps(what) + "\n")


def _tell_modules() -> None:
    _tell(modules=_modules())


def _modules() -> list[str]:
    """Files of the examples that are modules of this process."""
    root = paths.examples_dir()
    found = {getattr(module, "__file__", None) for module in list(sys.modules.values())} - {None}
    # Thousands of files in some hundred folders: asking the file system for each would take a tenth of a second.
    folders = {os.path.dirname(file) for file in found}
    near = {folder for folder in folders if Path(folder).resolve().is_relative_to(root)}
    inside = (_name(file) for file in found if os.path.dirname(file) in near)
    return sorted(name for name in inside if name)


def _name(path: str | os.PathLike) -> str | None:
    """A file's name relative to the examples, or None for a file elsewhere."""
    root, path = paths.examples_dir(), Path(path).resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else None


def _hear(event: str, arguments: tuple) -> None:
    """Python's audit hook. It must never raise, or the call that it hears of would fail."""
    if event == "open":
        path, mode = arguments[0], arguments[1]
        if isinstance(path, (str, bytes, os.PathLike)) and not set(mode or "r") & set("wax"):
            _heard(os.fsdecode(path))
    elif event == "subprocess.Popen":
        # Another program, such as nvcc, is given a file of the examples by its name.
        given = arguments[1] if isinstance(arguments[1], (list, tuple)) else [arguments[1]]
        for one in given:
            with suppress(OSError, TypeError, ValueError):
                whole = Path(os.fsdecode(arguments[2] or "."), os.fsdecode(one))
                if whole.is_file():
                    file(whole)


def _heard(path: str) -> None:
    with suppress(Exception):
        # Cheap first: every file that the process opens comes here.
        if os.sep in path or not path.startswith("<"):
            whole = os.path.realpath(path)
            if whole.startswith(str(paths.examples_dir()) + os.sep) and os.path.isfile(whole):
                reader = _reader()
                # The package says itself what it reads that counts. What a library reads of a module, such as the
                # lines for a traceback, or a compiler of Python its syntax, is told by its meaning.
                if reader != "package" and not (reader == "library" and whole.endswith(".py")):
                    text(whole)


def _reader() -> str:
    """Who reads a file right now: "book" (the examples), "package" (cudatut itself), or "library"."""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        cell = os.path.basename(os.path.dirname(file)).startswith("ipykernel_")
        if cell or file == "<string>" or file.startswith(str(paths.examples_dir()) + os.sep):
            return "book"
        if file.startswith(_package) and file != __file__:
            return "package"
        inside = file == __file__ or file.startswith((*_python, "<frozen"))
        if not inside or f"{os.sep}site-packages{os.sep}" in file:
            return "library"
        frame = frame.f_back
    return "library"
