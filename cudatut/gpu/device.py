"""What is this GPU? The context, its attributes, and what an example may require of it."""

import ctypes
import re
import sys
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from cudatut import tool, words
from cudatut.errors import CudatutError, NoGpuError, UnsupportedGpuError

DRIVER_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
# From cuda.h: CU_CTX_SCHED_BLOCKING_SYNC, and of CU_DEVICE_ATTRIBUTE_: COMPUTE_CAPABILITY_MAJOR and _MINOR, and what PyCUDA
# does not name, MAX_BLOCKS_PER_MULTIPROCESSOR and MAX_SHARED_MEMORY_PER_BLOCK_OPTIN.
_BLOCKING_SYNC = 4
_CAPABILITY = 75, 76
_MAX_BLOCKS_PER_SM, _SHARED_PER_BLOCK_OPTIN = 106, 97
_say = words.section("device")


@dataclass(frozen=True)
class Device:
    """Properties of the GPU in use. Sizes in bytes, clocks in kHz; `bus_bits` is the width of the memory bus in bits."""

    name: str
    compute_capability: tuple[int, int]
    sm_count: int
    memory_bytes: int
    l2_bytes: int
    warp_size: int
    max_threads_per_block: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    max_block: tuple[int, int, int]
    max_grid: tuple[int, int, int]
    shared_per_block: int
    shared_per_block_optin: int
    shared_per_sm: int
    registers_per_sm: int
    clock_khz: int
    memory_clock_khz: int
    bus_bits: int
    driver_version: str

    @property
    def arch(self) -> str:
        """Name of the real architecture for nvcc, such as 'sm_90'."""
        return "sm_{}{}".format(*self.compute_capability)


@cache
def activate() -> None:
    """Make the GPU's primary context current; every other function calls it, so a script need not.

    The primary context is the one that CuPy and PyTorch use too, so all three see the same memory.
    Raises NoGpuError, saying which of driver, GPU and PyCUDA is missing and what to do.
    """
    if missing := why_no_gpu():
        raise NoGpuError(_say("what to do", missing=missing))
    if tool.running() in tool.SANITIZERS:
        # Of many processes side by side most wait for the GPU; by default each would keep a core busy doing so.
        installed_driver().cuDevicePrimaryCtxSetFlags_v2(0, _BLOCKING_SYNC)
    try:
        import pycuda.autoprimaryctx  # noqa: F401
    except ImportError as error:
        raise NoGpuError(_say("no pycuda", error=error)) from error


@cache
def installed_driver() -> Any:  # a CDLL or None: whoever has found a GPU need not ask
    """The driver API through ctypes, for what PyCUDA lacks; not started. None where no driver is installed."""
    try:
        return ctypes.CDLL(DRIVER_LIBRARY)
    except OSError:
        return None


def why_no_gpu() -> str | None:
    """None if the driver shows a GPU, else what is missing; asks the driver alone, so it is quick and holds no context."""
    driver = installed_driver()
    if driver is None:
        return _say("no driver", library=DRIVER_LIBRARY)
    if status := driver.cuInit(0):
        return _say("does not start", status=status)
    return None if gpu_count() else _say("shows none")


def gpu_count() -> int:
    """How many GPUs the driver shows, once it is started."""
    count = ctypes.c_int(0)
    installed_driver().cuDeviceGetCount(ctypes.byref(count))
    return count.value


def has_driver() -> bool:
    """Whether NVIDIA's driver is installed; unlike `why_no_gpu` this does not start it."""
    return installed_driver() is not None


def gpu_lacks(requires: str) -> str | None:
    """Why the first GPU cannot run an example with this header (`sm_80`, `sm_90a`), or None; also where there is no GPU.

    Asks the driver alone: no context, no PyCUDA.
    """
    if not has_driver() or why_no_gpu():
        return None
    name, (major, minor) = name_and_capability(0)
    if supports((major, minor), requires):
        return None
    wanted, exactly = _wanted(requires)
    needs = dict(zip(("major", "minor"), wanted)) | {"requires": requires}
    key = "needs exactly" if exactly else "needs newer"
    return _say(key, name=name, has=f"{major}.{minor}", **needs)


def driver_cuda() -> tuple[int, int] | None:
    """Newest CUDA version that the driver runs, such as (13, 0); None without a driver."""
    driver, version = installed_driver(), ctypes.c_int(0)
    if driver is None or driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return version.value // 1000, version.value % 1000 // 10


def cupy_package() -> str | None:
    """The package with the CuPy that this driver can run, or None where none fits."""
    version = driver_cuda()
    return {12: "cupy-cuda12x", 13: "cupy-cuda13x"}.get(version[0]) if version else None


def trace_extra() -> str:
    """The extra with the cupti-python that fits the driver."""
    return "trace12" if (driver_cuda() or (13, 0)) < (13, 0) else "trace13"


def name_and_capability(number: int) -> tuple[str, tuple[int, int]]:
    """Of a GPU by its number, as the driver alone tells them."""
    driver, gpu, name = installed_driver(), ctypes.c_int(0), ctypes.create_string_buffer(100)
    driver.cuDeviceGet(ctypes.byref(gpu), number)
    driver.cuDeviceGetName(name, 100, gpu)
    major, minor = (_attribute(gpu, attribute) for attribute in _CAPABILITY)
    return name.value.decode(), (major, minor)


def _attribute(gpu: ctypes.c_int, number: int) -> int:
    """An attribute of a GPU by its number in cuda.h."""
    value = ctypes.c_int(0)
    if status := installed_driver().cuDeviceGetAttribute(ctypes.byref(value), number, gpu):
        raise CudatutError(_say("no attribute", number=number, status=status))
    return value.value


def pycuda_driver() -> ModuleType:
    """`pycuda.driver`, with the GPU's context current. Raises NoGpuError."""
    activate()
    import pycuda.driver

    return pycuda.driver


def synchronize() -> None:
    """Wait until the GPU has finished; this also brings the output of device printf and errors of earlier launches."""
    pycuda_driver().Context.synchronize()


@cache
def attributes() -> dict[str, int]:
    """Every device attribute that the driver reports, by its CUDA name in capitals, sorted."""
    found = pycuda_driver().Context.get_device().get_attributes().items()
    return dict(sorted((str(name), int(value)) for name, value in found))


@cache
def device() -> Device:
    """The GPU in use. Raises NoGpuError."""
    cuda, handle = pycuda_driver(), ctypes.c_int(0)
    gpu = cuda.Context.get_device()
    installed_driver().cuCtxGetDevice(ctypes.byref(handle))

    def get(name: str) -> int:
        return int(gpu.get_attribute(getattr(cuda.device_attribute, name)))

    def xyz(name: str) -> tuple[int, int, int]:
        return get(f"{name}_X"), get(f"{name}_Y"), get(f"{name}_Z")

    return Device(
        name=gpu.name(),
        compute_capability=gpu.compute_capability(),
        sm_count=get("MULTIPROCESSOR_COUNT"),
        memory_bytes=gpu.total_memory(),
        l2_bytes=get("L2_CACHE_SIZE"),
        warp_size=get("WARP_SIZE"),
        max_threads_per_block=get("MAX_THREADS_PER_BLOCK"),
        max_threads_per_sm=get("MAX_THREADS_PER_MULTIPROCESSOR"),
        max_blocks_per_sm=_attribute(handle, _MAX_BLOCKS_PER_SM),
        max_block=xyz("MAX_BLOCK_DIM"),
        max_grid=xyz("MAX_GRID_DIM"),
        shared_per_block=get("MAX_SHARED_MEMORY_PER_BLOCK"),
        shared_per_block_optin=_attribute(handle, _SHARED_PER_BLOCK_OPTIN),
        shared_per_sm=get("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        registers_per_sm=get("MAX_REGISTERS_PER_MULTIPROCESSOR"),
        clock_khz=get("CLOCK_RATE"),
        memory_clock_khz=get("MEMORY_CLOCK_RATE"),
        bus_bits=get("GLOBAL_MEMORY_BUS_WIDTH"),
        driver_version=_kernel_driver_version(),
    )


def _kernel_driver_version() -> str:
    """Version of the kernel driver, such as '580.159.04', from NVML (which comes with the driver); 'unknown' without it."""
    try:
        nvml = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
    except OSError:
        return "unknown"
    text = ctypes.create_string_buffer(80)
    if nvml.nvmlInit_v2() != 0 or nvml.nvmlSystemGetDriverVersion(text, 80) != 0:
        return "unknown"
    return text.value.decode()


def supports(gpu_capability: tuple[int, int], requires: str) -> bool:
    """Can a GPU of this compute capability run code that `requires` names?

    'sm_80' means 8.0 or newer; with a suffix ('sm_90a') exactly that architecture, because such code is not portable.
    Raises ValueError for anything else.
    """
    wanted, exactly = _wanted(requires)
    return gpu_capability == wanted if exactly else gpu_capability >= wanted


def _wanted(requires: str) -> tuple[tuple[int, int], bool]:
    """The compute capability in 'sm_90a', and whether no other will do."""
    found = re.fullmatch(r"sm_(\d+)(\d)([af]?)", requires)
    if found is None:
        raise ValueError(_say("no architecture", requires=requires))
    return (int(found[1]), int(found[2])), bool(found[3])


def require(arch: str) -> None:
    """Stop here with UnsupportedGpuError unless this GPU can run code for `arch` ('sm_80', 'sm_90a')."""
    gpu = device()
    if not supports(gpu.compute_capability, arch):
        raise UnsupportedGpuError(_say("needs", arch=arch, name=gpu.name, has=gpu.arch))
