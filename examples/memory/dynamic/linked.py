"""Modules whose kernels launch kernels.

module = linked("memory/dynamic/dynamic.cu", options=("-rdc=true",))
subdivide = module.get_function("subdivide")
"""

import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import cudatut as ct


# --8<-- [start:linked]
def linked(source: str, options: Sequence[str], pending: int = 2048) -> Any:
    """The PyCUDA module of a .cu file, or of CUDA C++ itself, linked with
    CUDA's device runtime.

    options: for nvcc, -rdc=true among them. pending: launches by the GPU that
    may wait at a time. Raises CudatutError with what nvcc says.
    """
    return loaded(link(source, tuple(options)), pending)


def loaded(cubin: bytes, pending: int) -> Any:
    """The module of machine code, in a context where so many may wait."""
    import pycuda.driver as cuda

    ct.activate()
    limit = cuda.limit.DEV_RUNTIME_PENDING_LAUNCH_COUNT
    if cuda.Context.get_limit(limit) != pending:
        ct.synchronize()
        cuda.Context.set_limit(limit, pending)
    return cuda.module_from_buffer(cubin)


@cache
def link(source: str, options: tuple[str, ...]) -> bytes:
    """Machine code with CUDA's device runtime, made once in a process."""
    nvcc = ct.find_nvcc()
    with tempfile.TemporaryDirectory() as folder:
        cubin, file = Path(folder, "linked.cubin"), Path(folder, "inline.cu")
        if source.endswith(".cu"):
            file = ct.paths.resolve_source(source)
        else:
            file.write_text(source, encoding="utf-8")
        command = [
            nvcc, f"-arch={ct.device().arch}", "-std=c++17", *options,
            "-dlink", "-cubin", "-lcudadevrt", *ct.nvcc_flags(nvcc),
            f"-I{ct.paths.examples_dir()}", file, "-o", cubin,
        ]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, env=ct.nvcc_env(nvcc)
        )
        if done.returncode:
            raise ct.CudatutError(done.stderr)
        return cubin.read_bytes()


# --8<-- [end:linked]
