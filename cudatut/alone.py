"""Chapters as C++: a program in one file, made of a `main.cu` and the kernels of the book that it includes.

    text = alone.program("basics/coalescing")   # what `nvcc` compiles, without any other file of the book

A `main.cu` in a chapter's folder brings the input, launches, checks and times. Its `#include "..."` name files of the book,
beside it or below examples/; each is put in once, where it is first named. What only the book reads is left out: marks of
snippets, and the attributes of rungs. The first comment is the command that builds it; a line `// flags: -rdc=true` of the
`main.cu` says which flags of its own it needs.
"""

import re
from pathlib import Path

from cudatut import paths
from cudatut.errors import CudatutError

NAME = "main.cu"
_INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*"([^"]+)"')
_BOOKS = re.compile(r"[ \t]*(?://[ \t]*(?:--8<--|@rung|requires:|flags:)|#[ \t]*pragma[ \t]+once)")
_REQUIRES = re.compile(r"^// requires: (sm_(\d+)a?)\b", re.MULTILINE)
_FLAGS = re.compile(r"^// flags: (.+)$", re.MULTILINE)
_DEFAULT = 75  # what nvcc 13 compiles for when nobody says; newer GPUs compile its PTX once more


def chapters() -> list[str]:
    """The chapters that have such a program: "basics/coalescing", sorted."""
    root = paths.examples_dir()
    return sorted(path.parent.relative_to(root).as_posix() for path in root.glob(f"*/*/{NAME}"))


def program(chapter: str) -> str:
    """The whole program of a chapter, whose first comment builds it. Raises CudatutError for an include that is not there."""
    pieces = _pieces(paths.examples_dir() / chapter / NAME, set())
    text = re.sub(r"\n{3,}", "\n\n", "".join(pieces)).strip("\n")
    return f"// {command(chapter)}\n//\n{text}\n"


def command(chapter: str) -> str:
    """The line that builds a chapter's program."""
    name, arch = chapter.rpartition("/")[2], arch_of(chapter)
    main = (paths.examples_dir() / chapter / NAME).read_text(encoding="utf-8")
    flags = [*([f"-arch={arch}"] if arch else []), *_FLAGS.findall(main)]
    return " ".join(["nvcc -O3 -std=c++17", *flags, f"-o {name} {name}.cu"])


def arch_of(chapter: str) -> str:
    """The least architecture that its files ask for, if it is more than nvcc's own choice: "sm_90a", or ""."""
    text = "".join(_pieces(paths.examples_dir() / chapter / NAME, set(), whole=True))
    most, arch = max(((int(n), name) for name, n in _REQUIRES.findall(text)), default=(0, ""))
    return arch if most > _DEFAULT else ""


def _pieces(path: Path, seen: set[Path], *, whole: bool = False) -> list[str]:
    """The lines of a file, with those of what it includes in their place, each file once. whole: with what only the book reads."""
    seen.add(path)
    lines = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(keepends=True), 1):
        if named := _INCLUDE.match(line):
            found = _found(named[1], path, number)
            if found not in seen:
                lines += ["\n", *_pieces(found, seen, whole=whole), "\n"]
        elif whole or not _BOOKS.match(line):
            lines.append(line)
    return lines


def _found(name: str, path: Path, number: int) -> Path:
    root = paths.examples_dir()
    for folder in (path.parent, root):
        if (folder / name).is_file():
            return (folder / name).resolve()
    raise CudatutError(
        f"{path.relative_to(root).as_posix()}:{number} includes {name!r}, which is neither beside it nor below examples/"
    )
