"""Every error that cudatut raises on purpose. Each message says what was wrong, where, and what to do."""


class CudatutError(Exception):
    """Base class of all errors of this package."""


class NoGpuError(CudatutError):
    """No GPU, no driver or no PyCUDA; the message lists what was looked for."""


class UnsupportedGpuError(CudatutError):
    """The GPU lacks the compute capability that an example requires."""


class KernelCompileError(CudatutError):
    """nvcc rejected a kernel; the message shows the offending source lines."""


class LaunchError(CudatutError):
    """A launch configuration that this GPU cannot run (0, or over a limit)."""


class CheckError(CudatutError):
    """A kernel's output differs from its reference, was not written, or memory around it was touched.

    guard: what caught it: "values", "poison", "nan", "shape" or "zone". brief: the message in one line.
    """

    def __init__(self, message: str = "", guard: str = "values", brief: str = ""):
        super().__init__(message)
        self.guard = guard
        self.brief = brief or message.strip().partition("\n")[0].rstrip().removesuffix(".")


class BenchError(CudatutError):
    """A measurement that cannot be trusted (zero, NaN, or nothing to measure)."""


class OutOfDeviceMemory(CudatutError):
    """The GPU has too little free memory for an allocation."""


class ToolMissing(CudatutError):
    """A program that is needed (nvcc, ncu, compute-sanitizer, CuPy ...) is not installed or may not run."""
