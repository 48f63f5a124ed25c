"""Kernels for Hopper on a CPU: their own text, in which PTX becomes C++ (ptx.py), with the headers of this folder for what CUDA
and the instructions do (machine.hpp, ptx.hpp)."""

import hashlib
import re
import subprocess
import zlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import gpp
import kept
import ptx

from cudatut.paths import examples_dir

HERE = Path(__file__).parent
_INCLUDE = re.compile(r'^#include (?:"(.+)"|<.+>).*\n', re.M)
_STD = "-std=c++20"


def with_headers(kernel: str) -> str:
    """A kernel's file, by its place in examples/, with the text of its headers where it includes them, each once.

    The headers of CUDA are left out.
    """
    seen = set()

    def text(path: Path) -> str:
        if path in seen:
            return ""
        seen.add(path)

        def included(found: re.Match) -> str:
            if not found[1]:
                return ""
            beside = path.parent / found[1]
            return text(beside if beside.is_file() else examples_dir() / found[1])

        return _INCLUDE.sub(
            included, path.read_text(encoding="utf-8").replace("#pragma once\n", "")
        )

    return text(examples_dir() / kernel)


def _instructions() -> set[str]:
    """Those for which ptx.hpp has a function."""
    return set(re.findall(r"^inline \w+\s+(\w+)\(", (HERE / "ptx.hpp").read_text(), re.M))


_DYNAMIC = re.compile(
    r"extern __shared__ (?:__align__\((?P<align>\d+)\) )?unsigned char (?P<name>\w+)\[\];"
)
_STATIC = re.compile(r"__shared__ (?P<type>\w+(?:<[\w, ]+>)?) (?P<names>\w[^;=]*);")


def in_cpp(text: str) -> str:
    """The text of a kernel as C++ for the machine: shared memory is its, and so are the instructions."""

    def of_block(found: re.Match) -> str:
        names = (
            re.match(r"(\w+)(.*)", one, re.S) for one in re.split(r",\s*(?=\w+\[)", found["names"])
        )
        return " ".join(
            f"auto& {one[1]} = machine::static_shared<{found['type']}{one[2]}>();" for one in names
        )

    command = ["g++", "-E", "-P", _STD, "-D__CUDA_ARCH__=900", "-xc++", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    text = ptx.translated(done.stdout, _instructions())
    text = _DYNAMIC.sub(
        lambda found: (
            f"unsigned char* const {found['name']} = machine::dynamic_shared({found['align'] or 16});"
        ),
        text,
    )
    return _STATIC.sub(of_block, text)


def built(
    folder: Path,
    program: Path,
    kernel: str,
    change: Callable[[str], str] = lambda text: text,
    **defines: str | int,
) -> Path:
    """The program of a .cpp file that includes "kernel.hpp", which is this kernel and the machine that runs it.

    folder: of its own. kernel: as with_headers takes it. change: of its text.
    """
    text = '#include "run_blocks.hpp"\n' + in_cpp(change(with_headers(kernel)))
    (folder / "kernel.hpp").write_text(text, encoding="utf-8")
    places = [f"-I{folder}", f"-I{HERE}", *(f"-D{name}={value}" for name, value in defines.items())]
    return gpp.compiled(program, "-O1", _STD, places=places)


@cache
def _runs(folder: Path) -> kept.Kept:
    return kept.Kept(folder / "emulated")


def ended(
    program: Path, numbers: tuple, data: bytes = b"", timeout: float = 600
) -> tuple[bytes, str | None]:
    """What a program wrote, and what it says of its end if that was not a good one.

    A run follows from the program, its numbers (a seed is one of them) and its input alone: one that was made before is kept.
    """
    runs = _runs(kept.cache_folder())
    key = runs.key(*(hashlib.sha256(one).hexdigest() for one in (program.read_bytes(), data)), *map(str, numbers))  # fmt: skip
    known = runs.read(key)
    if known is None:
        done = subprocess.run(
            [program, *map(str, numbers)], input=data, capture_output=True, timeout=timeout
        )
        known = b"%d\n%s" % (done.returncode, done.stdout)
        if done.returncode >= 0:  # not ended by somebody
            runs.write(key, zlib.compress(known, 1))
    else:
        known = zlib.decompress(known)
    status, _, said = known.partition(b"\n")
    if status == b"0":
        return said, None
    return b"", said.decode(errors="replace").strip() or f"it ended with {status.decode()}"


def fault(before: str, after: str) -> Callable[[str], str]:
    """A change of a text in which `before` stands once."""

    def change(text: str) -> str:
        assert text.count(before) == 1, before
        return text.replace(before, after)

    return change


def expect(expected: str, runs: Iterable[str | None]) -> None:
    """One of these runs shows the fault that is expected, a pattern. They are made one after the other, until one does."""
    found = []
    for one in runs:
        if one and re.search(expected, one):
            return
        found.append(one)
    raise AssertionError(f"no run shows {expected!r}, but {found}")
