"""A stand-in for PyCUDA where it cannot be built: it can be imported, and whatever is asked of it raises NeedsGpu."""

import sys
from types import ModuleType

VERSION_TEXT = "stand-in"


class NeedsGpu(Exception):
    """Here the real PyCUDA would need a GPU."""


class Anything:
    """A class or function of PyCUDA: attributes are there, and a call needs a GPU."""

    def __init__(self, name):
        self._name = name

    def __call__(self, *arguments, **options):
        raise NeedsGpu(self._name)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(f"{self._name}.{name}")


class _Module(ModuleType):
    # An exception of the driver can be named in `except`.
    Error = LogicError = MemoryError = RuntimeError = LaunchError = CompileError = NeedsGpu

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(f"{self.__name__}.{name}")


for _name in (
    "driver",
    "compiler",
    "gpuarray",
    "autoinit",
    "autoprimaryctx",
    "tools",
    "curandom",
    "characterize",
):
    _full = f"pycuda.{_name}"
    sys.modules[_full] = globals()[_name] = _Module(_full)
