"""cudatut: the helper package of the CUDA book.

`import cudatut as ct` costs milliseconds and needs neither a GPU nor PyCUDA nor NumPy: every name below is imported from its
module on first use. The first call that does need a GPU raises `NoGpuError`, which says what was looked for and what to do.
"""

from importlib import import_module

__version__ = "0.1.0"

# name -> module of this package that defines it
_EXPORTS = {
    "CudatutError": "errors",
    "NoGpuError": "errors",
    "UnsupportedGpuError": "errors",
    "KernelCompileError": "errors",
    "LaunchError": "errors",
    "CheckError": "errors",
    "BenchError": "errors",
    "OutOfDeviceMemory": "errors",
    "ToolMissing": "errors",
    "activate": "gpu",
    "attributes": "gpu",
    "device": "gpu",
    "require": "gpu",
    "synchronize": "gpu",
    "empty": "memory",
    "poison": "memory",
    "rng": "memory",
    "to_device": "memory",
    "Kernel": "kernel",
    "cdiv": "kernel",
    "tensor_map": "tensor_maps",
    "RAGGED": "checking",
    "check": "checking",
    "bench": "timing",
    "size": "tool",
    "profile": "profiler",
    "sanitize": "sanitizer",
    "isolated": "isolation",
    "exercise": "exercises",
    "claim": "results",
    "facts": "results",
    "series": "results",
    "show": "results",
    "table": "results",
    "trace": "tracing",
}
_MODULES = {"limits", "vendor", "recording", "catalog", "results"}

__all__ = sorted([*_EXPORTS, *_MODULES])


def __getattr__(name: str):
    if name in _EXPORTS:
        # No module bears the name of something exported: importing it would hide the function.
        return getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'cudatut' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
