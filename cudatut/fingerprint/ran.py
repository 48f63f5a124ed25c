"""What this process ran of the book: its modules, the files that it read, the kernels that it compiled, its children's too.

`follow` begins to listen, in a process that is recorded and in the Python processes that it starts: the variable
CUDATUT_RAN says where each writes down what it finds. `report` gathers it all.
"""

import atexit
import importlib.util
import json
import os
import runpy
import sys
import sysconfig
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from cudatut import catalog, paths
from cudatut.fingerprint.meaning import CUDA

# It names the file to which a recorded process and its children append what they run.
VARIABLE = "CUDATUT_RAN"

_texts: set[str] = set()
_files: set[str] = set()
_kernels: dict[str, dict[str, Any]] = {}  # by their JSON
_used: set[str] = set()
_following = False
_package = str(Path(__file__).resolve().parent.parent) + os.sep
_python = tuple(sysconfig.get_paths()[key] + os.sep for key in ("stdlib", "platstdlib"))
# Where Python reads code to run it.
_bootstrap = importlib.__path__[0] + os.sep + "_bootstrap"
_importers = ("<frozen importlib", "<frozen runpy", _bootstrap, runpy.__file__)


def use(aspect: str) -> None:
    """Remember that the instrument was used: 'timing', 'checking' or 'profiling' (see `cudatut.instrument`)."""
    if aspect not in _used:
        _used.add(aspect)
        _tell(used=aspect)


def kernel(files: Iterable[Path], **facts: Any) -> None:
    """Remember a kernel that was compiled: the files of its source, and what a recording says of it.

    facts["file"], where it has one, is the kernel's file as the example named it. Elsewhere it is called by its place.
    """
    inside = [name for file in files if (name := _name(file))]
    if "file" in facts:
        path = paths.resolve_source(facts["file"])
        facts["file"] = _name(path) or path.name  # a folder of this machine is nobody's business
    _files.update(inside)
    key = json.dumps(facts)
    if key not in _kernels:
        _kernels[key] = facts
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
    texts, files, kernels = set(_texts), {*_files, *_modules()}, dict(_kernels)
    used = set(_used)
    told = Path(os.environ.get(VARIABLE, ""))
    lines = told.read_text(encoding="utf-8").splitlines() if told.is_file() else []
    for one in map(json.loads, lines):
        texts |= {one["text"]} if "text" in one else set()
        files |= {*one.get("files", ()), *one.get("modules", ())}
        used |= {one["used"]} if "used" in one else set()
        if "kernel" in one:
            kernels[json.dumps(one["kernel"])] = one["kernel"]
    ways = dict.fromkeys(files, "meaning") | dict.fromkeys(texts, "text")
    # Which of several threads or processes was faster makes no difference.
    in_order = [kernels[key] for key in sorted(kernels)]
    return {"files": dict(sorted(ways.items())), "kernels": in_order, "used": sorted(used)}


def _tell(**what: Any) -> None:
    """Append a line at once, since a child may be killed."""
    if _following:
        with suppress(OSError):
            to = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                # One write of a line to a file that is only appended to: processes side by side do not mix.
                os.write(to, f"{json.dumps(what)}\n".encode())
            finally:
                os.close(to)


def _tell_modules() -> None:
    _tell(modules=_modules())


def _modules() -> list[str]:
    """Files of the examples that are modules of this process."""
    root = paths.examples_dir()
    found: set[Any] = {getattr(one, "__file__", None) for one in list(sys.modules.values())} - {
        None
    }
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
    with suppress(Exception):
        if event == "open":
            path, mode = arguments[0], arguments[1]
            if isinstance(path, (str, bytes, os.PathLike)) and not set(mode or "r") & set("wax"):
                _heard(os.path.realpath(os.fsdecode(path)))
        elif event == paths.READ:
            file(arguments[0])
        elif event == "subprocess.Popen":
            # Another program, such as nvcc, is given a file of the examples by its name.
            given, folder = arguments[1], os.fsdecode(arguments[2] or ".")
            for one in given if isinstance(given, (list, tuple)) else [given]:
                _given(Path(folder, os.fsdecode(one)))


def _heard(path: str) -> None:
    # Cheap first: every file that the process opens comes here.
    if not path.startswith(str(paths.examples_dir()) + os.sep) or not os.path.isfile(path):
        return
    reader = _reader()
    if reader == "import":
        file(importlib.util.source_from_cache(path) if path.endswith(".pyc") else path)
    elif reader == "book" or (reader == "library" and not path.endswith(".py")):
        # The package says itself what it reads that counts. What a library reads of a module, such as the lines for a
        # traceback, or a compiler of Python its syntax, is told by its meaning.
        text(path)


def _given(path: Path) -> None:
    """Remember a file that a program was given, and what it includes."""
    if path.is_file():
        for one in catalog.with_includes(path.resolve()) if path.suffix in CUDA else [path]:
            file(one)


def _reader() -> str:
    """Who reads a file right now: "book" (the examples), "package" (cudatut itself), "import" (Python, to run it), or
    "library".
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_importers):
            return "import"
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
