"""What runs inside the kernel that records an example, beside the example: output in order, and a report at the end.

Imported by every such kernel, so nothing at its top is heavy.
"""

import codecs
import ctypes
import os
import sys
import threading
from contextlib import suppress
from importlib import metadata
from typing import Any

from cudatut.errors import CudatutError, NoGpuError
from cudatut.fingerprint import ran

MIME = "application/vnd.cudatut.record.session+json"


def load_ipython_extension(shell: Any) -> None:
    """Runs in the kernel before the first cell: what C prints comes in its place.

    Device printf and child processes write to the file descriptors 1 and 2. ipykernel reads those through pipes in
    threads, so that such a line may turn up in a later cell. Here they are files (`_kernel` made them so), which are
    read before anything that Python prints or shows and at the end of each cell: every line is where it belongs.
    """
    libc = ctypes.CDLL(None)
    drains: list[Any] = []
    lock = threading.RLock()
    written_last: Any = None  # the flush of the stream that was

    def drain(*ignored: Any) -> None:
        with lock:
            libc.fflush(None)
            for one in drains:
                one()

    def follow(descriptor: int, stream: Any) -> None:
        write, flush = stream.write, stream.flush
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode

        def turn_here() -> None:
            """Send what the other stream holds: each sends by a clock of its own, which would change their order."""
            nonlocal written_last
            if written_last is not None and written_last != flush:
                written_last()
            written_last = flush

        offset = os.fstat(descriptor).st_size

        def drain_this() -> None:
            nonlocal offset
            new = os.pread(descriptor, os.fstat(descriptor).st_size - offset, offset)
            if new:
                offset += len(new)
                turn_here()
                write(decode(new))

        def write_in_order(text: str) -> int:
            drain()
            turn_here()
            return write(text)

        def flush_in_order() -> None:
            drain()
            flush()

        drains.append(drain_this)
        stream.write, stream.flush = write_in_order, flush_in_order

    follow(1, sys.stdout)
    follow(2, sys.stderr)
    shell.events.register("post_run_cell", drain)


def session_report() -> None:
    """Runs in the kernel as its last cell: show what it ran of the book, its GPU (or null), and its toolchain."""
    from IPython import get_ipython
    from IPython.display import display

    if sys.platform != "win32" and __name__ not in get_ipython().extension_manager.loaded:
        # IPython only warns; a line of device printf might then stand beneath the wrong cell.
        raise CudatutError(f"IPython did not load the extension {__name__}")
    found = ran.report()
    data = {
        "files": found["files"],
        "kernels": found["kernels"],
        "gpu": _gpu(),
        "toolchain": _toolchain(),
        "used": found["used"],
        "rivals": _rivals(),
    }
    display({MIME: data, "text/plain": "session"}, raw=True)


def _rivals() -> dict[str, Any]:
    """The versions of the libraries that were measured beside our kernels, and the kernels that they launched."""
    if "cudatut.gpu.rivals" not in sys.modules:
        return {}
    from cudatut.gpu import rivals

    return {"versions": rivals.versions(), "kernels": rivals.kernels()}


def _gpu() -> dict[str, Any] | None:
    from cudatut.gpu.device import device

    try:
        gpu = device()
    except NoGpuError:
        return None
    return {
        "name": gpu.name,
        "compute_capability": "{}.{}".format(*gpu.compute_capability),
        "memory_bytes": gpu.memory_bytes,
        "sm_count": gpu.sm_count,
        "driver": gpu.driver_version,
    }


def _toolchain() -> dict[str, str | None]:
    """Versions of what compiles and runs kernels here; None for what is missing. cuda: what PyCUDA was built against."""
    from cudatut.gpu.nvcc import find_nvcc, nvcc_version

    cuda = nvcc = None
    with suppress(ImportError):
        import pycuda.driver

        cuda = ".".join(map(str, pycuda.driver.get_version()[:2]))
    with suppress(CudatutError):
        nvcc = nvcc_version(find_nvcc())
    return {
        "cuda": cuda,
        "nvcc": nvcc,
        "pycuda": _version("pycuda"),
        "python": ".".join(map(str, sys.version_info[:3])),
        "numpy": _version("numpy"),
        "cupy": _version("cupy-cuda13x", "cupy-cuda12x", "cupy"),
    }


def _version(*packages: str) -> str | None:
    """The version of the first of these packages that is installed."""
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(package)
    return None
