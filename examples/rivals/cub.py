"""CUB's device-wide algorithms as contestants of `ct.bench`: compiled by nvcc
from the headers of the CUDA toolkit, behind C functions that ctypes calls.

    cub.library("scan")         # rivals/cub/scan.cu as a ctypes.CDLL
    run = cub.contestant("scan", "float32_InclusiveSum", x, out, n)

A function of such a file begins with CUB's own two arguments, temp and bytes:
with temp = nullptr it only writes how many bytes of scratch memory it needs. It
ends with a stream, and returns 0 or the number of a CUDA error.
"""

import ctypes
import hashlib
import os
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from platformdirs import user_cache_dir

import cudatut as ct
from cudatut.book.rivals.absent import absent

FOLDER = "rivals/cub"


@cache
def library(name: str) -> ctypes.CDLL:
    """rivals/cub/NAME.cu as a library for this GPU, compiled once and kept in
    the user's cache. Raises ct.ToolMissing without nvcc,
    ct.KernelCompileError where this toolkit's CUB does not compile it.
    """
    return ctypes.CDLL(str(build(name, ct.device().arch)))


def build(name: str, arch: str) -> Path:
    """Compiles the library where it is not kept; any thread may, and no GPU is
    needed. arch: such as "sm_90". Raises as `library`.
    """
    source = ct.paths.examples_dir() / FOLDER / f"{name}.cu"
    nvcc = ct.find_nvcc()
    text = source.read_text(encoding="utf-8")
    made_of = f"{text} {_version_of(nvcc)} {arch}"
    key = hashlib.sha256(made_of.encode()).hexdigest()[:16]
    kept = Path(user_cache_dir("cudatut", "cudatut")) / f"{name}-{key}.so"
    if kept.is_file():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        made = Path(folder) / kept.name
        command = [
            nvcc, "-O3", "-std=c++17", f"-arch={arch}", "--shared",
            "-Xcompiler", "-fPIC", *ct.nvcc_flags(nvcc), "-o", made, source,
        ]  # fmt: skip
        done = subprocess.run(
            list(map(str, command)),
            env=ct.nvcc_env(nvcc) | {"LD_PRELOAD": ""},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            said = done.stderr.strip()[-1500:]
            raise ct.KernelCompileError(f"nvcc refused {source.name}: {said}")
        os.replace(made, kept)  # whole, or not there
    return kept


def contestant(name: str, function: str, *arguments: Any) -> Any:
    """A call of a function of `library(name)`, with scratch memory of its own.

    arguments: those between `bytes` and the stream; an array for a pointer, an
    int for a `long long`. None under a sanitizer or profiler; where CUB cannot
    be compiled, the reason, and ct.ToolMissing while an example is recorded.
    The call raises ct.CudatutError where CUB reports an error.
    """
    if ct.tool.running():
        return None
    try:
        found = getattr(library(name), function)
    except (ct.ToolMissing, ct.KernelCompileError) as error:
        return absent(f"CUB cannot be compiled here: {error}", error)
    values = [_value(argument) for argument in arguments]
    nbytes, null = ctypes.c_size_t(0), ctypes.c_void_p(None)

    def call(scratch: ctypes.c_void_p) -> None:
        if status := found(scratch, ctypes.byref(nbytes), *values, null):
            raise ct.CudatutError(f"{function}: CUDA error {status}")

    call(null)  # asks for the size only
    scratch = ct.empty(max(nbytes.value, 1), "uint8")
    place = ctypes.c_void_p(int(scratch.gpudata))
    run = ct.vendor.Vendor(lambda: call(place))
    run.kept = arguments, scratch  # CUB sees only their addresses
    return run


def version() -> str:
    """CUB's version, as its header says. Raises ct.ToolMissing."""
    root = Path(ct.find_nvcc()).resolve().parents[1]
    for header in sorted(root.glob("**/include/**/cub/version.cuh")):
        found = re.search(r"define CUB_VERSION (\d+)", header.read_text())
        if found:
            number = int(found[1])  # 100000 major + 100 minor + patch
            own = number // 100000, number // 100 % 1000, number % 100
            return ".".join(map(str, own))
    raise ct.ToolMissing(f"no cub/version.cuh below {root}")


def _value(argument: Any) -> Any:
    if isinstance(argument, (int, np.integer)):
        return ctypes.c_longlong(int(argument))
    address = argument.__cuda_array_interface__["data"][0] or 0
    return ctypes.c_void_p(address)


def _version_of(nvcc: Path) -> str:
    done = subprocess.run(
        [nvcc, "--version"], capture_output=True, text=True, timeout=60
    )
    return done.stdout
