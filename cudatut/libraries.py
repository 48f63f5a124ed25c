"""Libraries of others that examples import: which of them are missing here, and the command that brings them.

What an example cannot do without is an extra of pyproject.toml, which its header names. What it compares with, where it
can, is told by the imports in its files.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from cudatut import catalog, paths
from cudatut.catalog import Example
from cudatut.gpu import device

# Of the extras that examples need: the modules that these bring.
MODULES = {
    "gpu": ("pycuda",),
    "llm": ("gguf", "tokenizers"),
    "cutlass": ("cutlass",),
    "bindings": ("nanobind",),
    "images": ("PIL", "skimage"),
}

CUTLASS = "nvidia-cutlass==4.2.0.0"

_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+([\w.]+)", re.M)
_LOOKED_FOR = re.compile(r'\bfind_spec\("([\w.]+)"\)')  # what is there for its files alone
_VENDOR = re.compile(r"\bvendor\.[a-z]")  # ct.vendor.sum and its like, through CuPy


@dataclass(frozen=True)
class Lack:
    """A library that is missing here: its name, and what pip is to be told."""

    name: str
    command: str


def missing(extra: str) -> list[str]:
    """The modules of an extra of pyproject.toml that are not installed; none for the empty name."""
    return [module for module in MODULES.get(extra, ()) if not installed(module)]


def missing_beside(example: Example) -> Iterator[Lack]:
    """What the files of an example import, or look for, where it is there, and what is not."""
    texts = [catalog.read_text(paths.examples_dir() / name) for name in example.sources()]
    ways = _IMPORT, _LOOKED_FOR
    imported = {module for text in texts for way in ways for module in way.findall(text)}
    if any(map(_VENDOR.search, texts)):
        imported.add("cupy")
    for module, (name, command) in _beside().items():
        used = any(one == module or one.startswith(f"{module}.") for one in imported)
        if used and command and not installed(module):
            yield Lack(name, command)


def installed(module: str) -> bool:
    """Whether a module can be found; it is not imported, but the packages above it are."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _beside() -> dict[str, tuple[str, str]]:
    """By module, a library's name and the command that installs the version that fits the driver; '' where none fits."""
    cupy, (cuda, _) = device.cupy_package(), device.driver_cuda() or (0, 0)
    bindings = paths.pip_install(f"graphs{cuda}") if cuda in (12, 13) else ""
    return {
        "cupy": ("CuPy", f"pip install {cupy}" if cupy else ""),
        "torch": ("PyTorch", "pip install torch"),
        "cuda.bindings": ("cuda-bindings", bindings),
        "cuda.core": ("cuda-core", f"pip install 'cuda-core[cu{cuda}]'" if bindings else ""),
        # Its headers are all that is used: nothing that it asks for.
        "cutlass_library": ("CUTLASS", f"pip install --no-deps {CUTLASS}"),
    }
