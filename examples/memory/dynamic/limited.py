"""Experiments with the limits of launches by the GPU, each in a process of its
own, whose context nothing has touched.

    found = in_a_process("pending", 2048)
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.book.memory.dynamic.linked import link, loaded

FILE = "memory/dynamic/launches.cu"
LINKED = "CUDATUT_BOOK_LINKED"  # where such a process finds it, linked
PLAIN = "__global__ void plain(int *done) { atomicAdd(done, 1); }"


def in_a_process(name: str, *numbers: int) -> dict[str, Any]:
    """What a function below returns. Raises CudatutError where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder, "launches.cubin")
        cubin.write_bytes(link(FILE, ("-rdc=true",)))  # once for all of them
        child = ct.isolated(
            f"from {__name__} import run; run({name!r}, {list(numbers)})",
            env={LINKED: str(cubin)},
        )
    lines = [one for one in child.stdout.splitlines() if one.startswith("{")]
    if child.returncode or not lines:
        raise ct.CudatutError(f"{name}{numbers}: {child.stderr}")
    return json.loads(lines[-1])


def run(name: str, numbers: list[int]) -> None:
    print(json.dumps(globals()[name](*numbers)), flush=True)


def _launches(pending: int = 2048) -> Any:
    """The module of FILE. pending: launches that may wait."""
    return loaded(Path(os.environ[LINKED]).read_bytes(), pending)


def _zeros(n: int) -> Any:
    return ct.to_device(np.zeros(n, "int32"))


# --8<-- [start:pending]
def pending(limit: int, count: int, ns: int) -> dict[str, Any]:
    """One thread launches `count` kernels, of which the first ends when all
    launches are made, after `ns` nanoseconds at the latest; the others wait.
    """
    import pycuda.driver as cuda

    module = _launches(limit)
    done, may_go_on, found = _zeros(1), _zeros(1), _zeros(4)
    said = "nothing"
    try:
        module.get_function("too_many")(
            done, np.int32(count), may_go_on, np.int64(ns), found,
            grid=(1, 1), block=(1, 1, 1),
        )  # fmt: skip
        ct.synchronize()
    except cuda.Error as error:
        said = type(error).__name__
    refused, first, error, ended = map(int, found.get())
    return {
        "launched": count,
        "ended meanwhile": ended,
        "ran": int(done.get()[0]),
        "refused": refused,
        "first refused": first if refused else None,
        "error": error,
        "the host is told": said,
    }


# --8<-- [end:pending]


def depth(most: int) -> dict[str, Any]:
    """A kernel inside a kernel inside ...: how deep it gets."""
    module = _launches()
    found = _zeros(2)
    module.get_function("deeper")(
        np.int32(1), np.int32(most), found, grid=(1, 1), block=(1, 1, 1)
    )
    ct.synchronize()
    reached, error = map(int, found.get())
    return {"asked for": most, "reached": reached, "error": error}


def tails(most: int) -> dict[str, Any]:
    """A chain of tail launches: how many of them run."""
    module = _launches()
    done = _zeros(1)
    module.get_function("chain")(
        done, np.int32(most), grid=(1, 1), block=(1, 1, 1)
    )
    ct.synchronize()
    return {"asked for": most, "reached": int(done.get()[0]), "error": 0}


def early() -> dict[str, Any]:
    """What a kernel sees of one that it launched, and what a tail launch."""
    module = _launches()
    x, seen = _zeros(1), _zeros(2)
    module.get_function("early")(x, seen, grid=(1, 1), block=(1, 1, 1))
    ct.synchronize()
    launcher, tail = map(int, seen.get())
    return {"launcher": launcher, "tail": tail}


# --8<-- [start:memory]
def memory(limit: int) -> dict[str, Any]:
    """MB of device memory that are gone: once a module is loaded, and once a
    kernel has run. limit: of pending launches; 0: a module without launches.
    """
    import pycuda.driver as cuda

    ct.activate()
    done = _zeros(1)
    ct.synchronize()
    before = cuda.mem_get_info()[0]
    if limit:
        module = _launches(limit)
        one, numbers = module.get_function("fan"), [np.int32(1)]
    else:
        module = cuda.module_from_buffer(ct.Kernel(PLAIN, "plain").cubin)
        one, numbers = module.get_function("plain"), []
    loaded = cuda.mem_get_info()[0]
    one(done, *numbers, grid=(1, 1), block=(1, 1, 1))
    ct.synchronize()
    after = cuda.mem_get_info()[0]
    return {
        "loaded": (before - loaded) / 1e6,
        "run": (before - after) / 1e6,
    }


# --8<-- [end:memory]
