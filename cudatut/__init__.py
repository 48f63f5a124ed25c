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
    "activate": "gpu.device",
    "attributes": "gpu.device",
    "device": "gpu.device",
    "require": "gpu.device",
    "supports": "gpu.device",
    "synchronize": "gpu.device",
    "empty": "gpu.memory",
    "poison": "gpu.memory",
    "rng": "gpu.memory",
    "to_device": "gpu.memory",
    "Kernel": "gpu.kernel",
    "cdiv": "gpu.kernel",
    "compile_ahead": "gpu.kernel",
    "find_nvcc": "gpu.nvcc",
    "nvcc_env": "gpu.nvcc",
    "nvcc_flags": "gpu.nvcc",
    "tensor_map": "gpu.tensor_maps",
    "RAGGED": "gpu.check",
    "check": "gpu.check",
    "bench": "gpu.bench",
    "flush_l2": "gpu.timing",
    "take_turns": "gpu.bench",
    "time_hidden": "gpu.timing",
    "time_once": "gpu.timing",
    "time_once_bare": "gpu.timing",
    "profile": "gpu.profile",
    "profile_kernels": "gpu.profile",
    "profile_launches": "gpu.profile",
    "trace": "gpu.trace",
    "sanitize": "gpu.sanitizer",
    "isolated": "gpu.isolation",
    "Ladder": "gpu.ladder",
    "Rung": "gpu.ladder",
    "RungError": "gpu.ladder",
    "read_rung": "gpu.ladder",
    "load_ladder": "gpu.ladder",
    "shared": "gpu.ladder",
    "size": "tool",
    "exercise": "exercises",
    "claim": "results",
    "facts": "results",
    "series": "results",
    "show": "results",
    "table": "results",
}
# name -> module that is used by name: `ct.limits.bandwidth()`
_MODULES = {
    "catalog": "catalog",
    "instances": "gpu.instances",
    "limits": "gpu.limits",
    "paths": "paths",
    "recording": "recording",
    "results": "results",
    "tool": "tool",
    "vendor": "gpu.vendor",
}

__all__ = sorted([*_EXPORTS, *_MODULES])


def __getattr__(name: str):
    if name in _EXPORTS:
        return getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    if name in _MODULES:
        return import_module(f"{__name__}.{_MODULES[name]}")
    raise AttributeError(f"module 'cudatut' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
