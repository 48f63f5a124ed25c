"""Kernels with a planted fault: does a check notice?"""

import re
from pathlib import Path

import cudatut as ct


def broken(rung: ct.Rung, *changes: tuple[str, str]) -> ct.Kernel:
    """The kernel of a rung with words of its file, or of a header that it
    includes, replaced. Raises ValueError for words that stand nowhere.
    """
    arch = "sm_90a" if rung.options.get("requires") == "sm_90a" else None
    return ct.Kernel(changed(rung, *changes), rung.kernel, arch=arch)


def changed(rung: ct.Rung, *changes: tuple[str, str]) -> str:
    """The source of such a kernel; raises ValueError likewise."""
    folder = ct.paths.resolve_source(rung.path).parent
    text = _whole(folder / Path(rung.path).name, set())
    for old, new in changes:
        if old not in text:
            raise ValueError(f"{rung.path} does not say: {old}")
        text = text.replace(old, new)
    return text


def _whole(file: Path, seen: set) -> str:
    """The text of a file with the headers beside it in their places."""

    def header(match: re.Match) -> str:
        path = file.parent / match[1]
        if path in seen:
            return ""
        seen.add(path)
        return _whole(path, seen)

    text = file.read_text(encoding="utf-8")
    whole = re.sub(r'^#include "(\w+\.cuh)".*$', header, text, flags=re.M)
    return whole.replace("#pragma once\n", "")
