"""Programs that g++ makes of what tests write: each text is compiled once, and its program kept (kept.py)."""

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import kept
from needed import missing


@cache
def _version() -> str:
    if shutil.which("g++") is None:
        missing("g++ is not installed")
    return subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout


@cache
def _programs(folder: Path) -> kept.Kept:
    return kept.Kept(folder)


def compiled(source: Path, *flags: str, places: Sequence[str] = ()) -> Path:
    """The program, or library, of a source. places: flags by which it finds its headers, and macros: the text that they lead to counts.

    Raises subprocess.CalledProcessError where it does not compile.
    """
    version = _version()
    text = subprocess.run(
        ["g++", "-E", "-P", *flags, *places, source], stdout=subprocess.PIPE, check=True
    ).stdout
    programs = _programs(kept.cache_folder() / "g++")
    key = programs.key(version, flags, text.decode())

    def make(out: Path) -> None:
        command: list[str | Path] = [
            "g++",
            *flags,
            "-w",
            "-x",
            "c++",
            "-fpreprocessed",
            "-",
            "-o",
            out,
        ]
        subprocess.run(command, input=text, check=True)

    return programs.made(key, make)
