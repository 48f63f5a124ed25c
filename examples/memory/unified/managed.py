"""Managed memory with a limit; prefetches and advice in the form of CUDA 13.

PyCUDA allocates managed memory. It has no prefetch and no advice: these come
from cuda.bindings, which works in the same context.
"""

import math
import weakref
from typing import Any

import numpy as np

import cudatut as ct

GPU, HOST = "GPU", "host"
SHARE = 2  # managed memory may be one part in so many of what the GPU has free

_held: dict[int, int] = {}  # bytes of each allocation that is alive


# --8<-- [start:limit]
def room(free: int, held: int) -> int:
    """How many bytes of managed memory may still be asked for.

    free: what the GPU has free; held: managed memory that is there already. It
    counts in full, though its pages may not lie on the GPU yet.
    """
    return max(0, free // SHARE - held)


def managed_empty(shape: Any, dtype: Any):
    """A NumPy array in managed memory, uninitialized. x.base is what a ct.Kernel
    takes. Raises OutOfDeviceMemory, before anything is allocated, for more than
    `room` says; ValueError for no elements.
    """
    import pycuda.driver as cuda

    ct.activate()
    extents = (shape,) if isinstance(shape, int) else shape
    need = math.prod(extents) * np.dtype(dtype).itemsize
    if need <= 0:
        raise ValueError(f"managed memory for {shape}: no elements")
    left = room(cuda.mem_get_info()[0], sum(_held.values()))
    if need > left:
        raise ct.OutOfDeviceMemory(
            f"{need:,} bytes of managed memory are more than the {left:,} that "
            "this process may have: more than the GPU holds could stop it"
        )
    x = cuda.managed_empty(shape, dtype, mem_flags=cuda.mem_attach_flags.GLOBAL)
    address = int(x.base)
    _held[address] = need
    weakref.finalize(x, _held.pop, address, None)
    if ct.tool.running():  # initcheck does not see what the host writes
        cuda.memset_d8(address, 0, need)
        ct.synchronize()
    return x


# --8<-- [end:limit]


# --8<-- [start:bindings]
def _bindings() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise ct.ToolMissing(
            "prefetch and advice need cuda-bindings, of the version of your "
            "CUDA: pip install 'cuda-bindings==13.*', or 12.*"
        ) from error
    return driver


def _call(name: str, *arguments: Any) -> Any:
    driver = _bindings()
    status, *found = getattr(driver, name)(*arguments)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise ct.CudatutError(f"{name}: {status.name}")
    return found[0] if found else None


def _newer(name: str) -> str:
    # What takes a CUmemLocation is called _v2 until CUDA 13 makes it the rule.
    return name if _bindings().CUDA_VERSION >= 13000 else f"{name}_v2"


def location(where: str) -> Any:
    """The CUmemLocation of GPU or HOST: a type, and of a GPU its number."""
    driver = _bindings()
    kinds, place = driver.CUmemLocationType, driver.CUmemLocation()
    place.type, place.id = {
        GPU: (kinds.CU_MEM_LOCATION_TYPE_DEVICE, 0),
        HOST: (kinds.CU_MEM_LOCATION_TYPE_HOST, 0),
    }[where]
    return place


# --8<-- [end:bindings]


# --8<-- [start:prefetch]
def prefetch(x: Any, where: str, stream: Any = None) -> None:
    """Enqueue that the pages of x move to GPU or HOST. Returns before they have.

    stream: a PyCUDA stream; default: the default stream.
    """
    handle = _bindings().CUstream(stream.handle if stream else 0)
    name = _newer("cuMemPrefetchAsync")
    _call(name, x.ctypes.data, x.nbytes, location(where), 0, handle)


# --8<-- [end:prefetch]


# --8<-- [start:advise]
def advise(x: Any, what: str, where: str = GPU) -> None:
    """Tell the driver how x will be used: what is "READ_MOSTLY" (then `where`
    does not count), "PREFERRED_LOCATION" or "ACCESSED_BY".
    """
    advice = getattr(_bindings().CUmem_advise, f"CU_MEM_ADVISE_SET_{what}")
    name = _newer("cuMemAdvise")
    _call(name, x.ctypes.data, x.nbytes, advice, location(where))


def told(x: Any) -> dict[str, str]:
    """What the driver has noted of all of x: advice, and where it was last
    prefetched to. It does not say where the pages are.
    """
    kinds = _bindings().CUmem_range_attribute

    def ask(name: str) -> Any:
        kind = getattr(kinds, f"CU_MEM_RANGE_ATTRIBUTE_{name}")
        where = x.ctypes.data, x.nbytes
        return _call("cuMemRangeGetAttribute", 4, kind, *where)

    def place(number: int) -> str:  # CU_DEVICE_CPU is -1, CU_DEVICE_INVALID -2
        return {-1: HOST, -2: "-"}.get(number, GPU)

    return {
        "read mostly": "yes" if ask("READ_MOSTLY") else "no",
        "preferred location": place(ask("PREFERRED_LOCATION")),
        "accessed by": place(ask("ACCESSED_BY")[0]),
        "last prefetch": place(ask("LAST_PREFETCH_LOCATION")),
    }


# --8<-- [end:advise]
