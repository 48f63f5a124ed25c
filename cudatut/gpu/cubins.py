"""Compiled kernels are kept for the next process, whole or not at all.

PyCUDA keeps them too, but writes into the file that other processes may be reading: of two that compile the same kernel at
the same time, one can get half of it, or nothing, and fails to load it. Here a file has its name only once it is whole.
"""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from cudatut.files import write_whole
from cudatut.gpu.nvcc import nvcc_version


def folder() -> Path | None:
    """Where PyCUDA keeps what it has compiled; None where it shall keep nothing ($PYCUDA_DISABLE_CACHE)."""
    import platformdirs

    if "PYCUDA_DISABLE_CACHE" in os.environ:
        return None
    default = Path(platformdirs.user_cache_dir("pycuda", "pycuda"), "compiler-cache-v1")
    return Path(os.environ.get("PYCUDA_CACHE_DIR") or default)


def compiled(source: str, nvcc: Path, **how: Any) -> bytes:
    """The cubin of a source, as `pycuda.compiler.compile` makes it with these arguments, or made it before.

    A source that says `#include` is PyCUDA's business: what it depends on only its preprocessor knows (see `headers`).
    Raises what PyCUDA raises; what cannot be kept is compiled all the same.
    """
    from pycuda.compiler import compile as pycuda_compile

    place = folder()
    if place is None or "#include" in source:
        return pycuda_compile(source, nvcc=str(nvcc), **how)
    parts = [1, source, nvcc_version(nvcc), sorted(how.items())]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    kept = place / f"cudatut-{key}.cubin"
    with suppress(OSError):
        return kept.read_bytes()
    cubin = pycuda_compile(source, nvcc=str(nvcc), cache_dir=False, **how)
    with suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
        write_whole(kept, cubin)
    return cubin
