"""Kernels with a planted fault: does a check notice, and does the compiler?"""

import ctypes
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from cudatut.book.tensor.ladder import ladder
import numpy as np

import cudatut as ct

CHILD = """
from cudatut.book.tensor.ladder import faults
faults.report({name!r}, {changes!r}, {depth!r}, {spare!r})
"""


def seen(
    name: str,
    *changes: tuple[str, str],
    depth: int = 1024,
    spare: int = 0,
    timeout_s: float = 20,
) -> dict[str, float | str | None]:
    """What is seen of a rung of the ladder with words replaced: launched three
    times in a process of its own, where an error spoils nothing.

    depth: k of the product, whose m and n are 1024. spare: bytes of shared
    memory that a block gets beyond what it needs.
    Returns `wrong`, the share of C that is wrong in %, None where nothing came
    back; and `stopped by`: CUDA's name of an error, "the time limit", or None.
    Raises RuntimeError where the process fails in another way.
    """
    program = CHILD.format(name=name, changes=changes, depth=depth, spare=spare)
    try:
        child = ct.isolated(program, timeout_s)
    except subprocess.TimeoutExpired:
        return {"wrong": None, "stopped by": "the time limit"}
    if child.returncode or not child.stdout.strip():
        raise RuntimeError(f"{name}, {changes}:\n{child.stderr}")
    return json.loads(child.stdout.splitlines()[-1])


def report(
    name: str, changes: tuple[tuple[str, str], ...], depth: int, spare: int
) -> None:
    """The part of `seen` in the process of its own; ends that process."""
    import pycuda.driver as cuda  # others compile without a GPU

    problem = ladder.Gemm(1024, 1024, depth, integers=True)
    rung = ladder.LADDER[name]
    run = ladder.launcher(
        rung, problem.a, problem.b, problem.c, broken(rung, *changes), spare
    )
    ct.poison(problem.c)
    try:
        for _ in range(3):
            run()
        got = ladder.to_float(problem.c.get())
    except cuda.Error:
        found = {"wrong": None, "stopped by": _error()}
    else:
        want = ladder.to_float(ladder.to_bf16(problem.reference[0]))
        found = {"wrong": 100 * np.mean(got != want), "stopped by": None}
    print(json.dumps(found), flush=True)
    os._exit(0)  # after an error nothing of the context can be freed


def _error() -> str:
    """CUDA's name of the error that this context has been left with."""
    from cudatut.gpu.device import installed_driver

    driver, name = installed_driver(), ctypes.c_char_p()
    driver.cuGetErrorName(driver.cuCtxSynchronize(), ctypes.byref(name))
    return name.value.decode()


def remarks(rung: ct.Rung, *changes: tuple[str, str]) -> list[str]:
    """What ptxas of this CUDA says while it compiles such a kernel for sm_90a,
    if only that it cannot: lines with a number, such as (C7511).
    """
    nvcc = ct.find_nvcc()
    source = ct.instances.assemble(changed(rung, *changes), rung.kernel)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cu"
        file.write_text(source, encoding="utf-8")
        cubin = file.with_suffix(".cubin")
        done = subprocess.run(
            [nvcc, "-cubin", "-arch=sm_90a", "-o", cubin, file],
            capture_output=True,
            text=True,
            env=ct.nvcc_env(nvcc),
        )
    said = re.findall(
        r"^ptxas (\w+) *: (\(C\d+\) .*)$",
        done.stderr + done.stdout,
        re.MULTILINE,
    )
    # The compiler's name of a template's instance, without what is mangled.
    name = rung.kernel.partition("<")[0]
    mangled = re.compile(rf"_Z\d+{name}\w*")
    return [f"{kind}: {mangled.sub(name, what)}" for kind, what in said]


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
    """The text of a file with the book's headers in their places."""

    def header(match: re.Match) -> str:
        path = file.parent / match[1]
        if not path.is_file():
            path = ct.paths.examples_dir() / match[1]
        if path in seen:
            return ""
        seen.add(path)
        return _whole(path, seen)

    text = file.read_text(encoding="utf-8")
    whole = re.sub(r'^#include "([\w/]+\.cuh)".*$', header, text, flags=re.M)
    return whole.replace("#pragma once\n", "")
