"""cudatut: the helper package of the CUDA book.

`import cudatut as ct` costs milliseconds and needs neither a GPU nor PyCUDA nor NumPy: every name below is imported from its
module on first use. The first call that does need a GPU raises `NoGpuError`, which says what was looked for and what to do.
"""

import os
from importlib import import_module

__version__ = "0.1.0"

# Module of this package -> the names in it.
_NAMES = {
    "errors": "CudatutError NoGpuError UnsupportedGpuError KernelCompileError LaunchError CheckError"
    " BenchError OutOfDeviceMemory ToolMissing",
    "gpu.device": "activate attributes device require supports synchronize",
    "gpu.memory": "empty poison rng to_device",
    "gpu.kernel": "Kernel cdiv compile_ahead",
    "gpu.nvcc": "find_nvcc nvcc_env nvcc_flags",
    "gpu.operands": "operands",
    "gpu.tensor_maps": "tensor_map",
    "gpu.check": "RAGGED check",
    "gpu.bench": "bench take_turns",
    "gpu.timing": "flush_l2 time_hidden time_once time_once_bare",
    "gpu.profile": "profile profile_kernels profile_launches",
    "gpu.trace": "trace",
    "gpu.sanitizer": "sanitize",
    "gpu.isolation": "isolated",
    "gpu.ladder": "Ladder Rung RungError read_rung load_ladder",
    "tool": "size",
    "exercises": "exercise",
    "results": "claim facts goals picture series show table",
    "beside": "yours",
}
_EXPORTS = {name: module for module, names in _NAMES.items() for name in names.split()}
# Modules that are used by name: `ct.limits.bandwidth()`.
_MODULES = {name: name for name in ("catalog", "paths", "recording", "results", "tool")}
_MODULES |= {name: f"gpu.{name}" for name in ("instances", "limits", "vendor")}

__all__ = sorted([*_EXPORTS, *_MODULES])


def __getattr__(name: str):
    if name in _EXPORTS:
        return getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    if name in _MODULES:
        return import_module(f"{__name__}.{_MODULES[name]}")
    raise AttributeError(f"module 'cudatut' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


if os.environ.get("CUDATUT_RAN"):  # this process, or the one that started it, is being recorded
    import_module(f"{__name__}.fingerprint.ran").follow()
