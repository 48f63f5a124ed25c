"""Which rivals this process measured: the versions of their libraries, and the kernels that they launched.

A ratio to cuBLAS means little without the version of cuBLAS, and a process may hold two: CuPy's and PyTorch's.
"""

import ctypes
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from cudatut.gpu import launched

# Modules of rivals -> what a page calls them, and the packages that may bring them.
_PACKAGES = {
    "torch": ("PyTorch", ("torch",)),
    "cupy": ("CuPy", ("cupy-cuda13x", "cupy-cuda12x", "cupy")),
    "fa3_fwd_interface": ("FlashAttention-3 (fa3-fwd)", ("fa3-fwd",)),
    "flash_attn_interface": ("FlashAttention-3", ("flash-attn-3", "flash_attn_3")),
    "flash_attn": ("FlashAttention-2", ("flash-attn",)),
    "cutlass": ("CUTLASS (CuTe DSL)", ("nvidia-cutlass-dsl",)),
    "transformers": ("transformers", ("transformers",)),
}
_launched: dict[str, dict[str, None]] = {}


def name_kernels(name: str, launch: Callable[[], object]) -> list[str] | None:
    """The kernels that a rival launches (`launched.kernels_of`); they are kept for the recording, by the rival's name."""
    found = launched.kernels_of(launch)
    _launched.setdefault(name, {}).update(dict.fromkeys(found or ()))
    return found


def kernels() -> dict[str, list[str]]:
    """By each rival's name the kernels that it launched so far in this process, each once."""
    return {name: list(found) for name, found in sorted(_launched.items()) if found}


def versions() -> dict[str, str]:
    """The versions of the rivals' libraries that this process has loaded, by the names that pages use."""
    found = {}
    for module, (name, packages) in _PACKAGES.items():
        if module in sys.modules:
            for package in packages:
                with suppress(metadata.PackageNotFoundError):
                    found[name] = metadata.version(package)
                    break
    loaded = list(_loaded_libraries())
    for name, pattern, ask in _LIBRARIES:
        files = (path for path in loaded if re.fullmatch(pattern, path.name))
        told = {version for path in files if (version := ask(path)) is not None}
        if told:
            found[name] = ", ".join(sorted(told))
    vendor = sys.modules.get("cudatut.gpu.vendor")
    if vendor is not None and (cub := vendor.cub_version()):
        found["CUB"] = cub
    return dict(sorted(found.items()))


def _loaded_libraries() -> Iterable[Path]:
    """The files of shared libraries in this process; none where the system does not tell (Linux does)."""
    with suppress(OSError):
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
        yield from sorted({Path(line[line.index("/") :]) for line in lines if ".so" in line})


def _by_property(function: str) -> Callable[[Path], str | None]:
    """Asks a library for its libraryPropertyType MAJOR_VERSION, MINOR_VERSION and PATCH_LEVEL (library_types.h)."""

    def ask(path: Path) -> str | None:
        numbers = []
        for which in range(3):
            value = ctypes.c_int(0)
            try:
                status = getattr(ctypes.CDLL(str(path)), function)(which, ctypes.byref(value))
            except (OSError, AttributeError):
                return None
            if status:
                return None
            numbers.append(value.value)
        return ".".join(map(str, numbers))

    return ask


def _cudnn(path: Path) -> str | None:
    """cudnnGetVersion gives 10000 major + 100 minor + patch."""
    try:
        ask = ctypes.CDLL(str(path)).cudnnGetVersion
    except (OSError, AttributeError):
        return None
    ask.restype = ctypes.c_size_t
    number = ask()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


_LIBRARIES = (
    ("cuBLAS", r"libcublas\.so[\d.]*", _by_property("cublasGetProperty")),
    ("cublasLt", r"libcublasLt\.so[\d.]*", _by_property("cublasLtGetProperty")),
    ("cuDNN", r"libcudnn\.so[\d.]*", _cudnn),
)
