"""Allocations that notice misuse: poisoned outputs and red zones around every array.

    | red zone | your array | red zone |      one cuMemAlloc; the pattern in the zones is verified by ct.check

A kernel that writes one element too far does not fail on its own: the driver maps memory in pages far larger than an
array. The zones make such a write visible, and the poison makes an element that was never written visible. While
compute-sanitizer runs the process neither is used: its own bookkeeping is exact, and must not be hidden from. Outputs of the
TMA are the exception, since initcheck does not see them written: `poison_unwritten`.
"""

import math
import weakref
from functools import cache
from typing import Any

import numpy as np

from cudatut import tool, words
from cudatut.errors import OutOfDeviceMemory
from cudatut.gpu.device import activate, pycuda_driver, synchronize

RED_ZONE = 4096  # bytes on each side; a multiple of 256: the array is as aligned as cuMemAlloc's
ZONE_BYTE = 0xC3
POISON_BYTE = 0xFF  # NaN in every float format, and so what is computed from it; -1 in integers

_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING in cuda.h
_say = words.section("memory")

_live: "weakref.WeakSet[Allocation]" = weakref.WeakSet()
# While initcheck runs: those of `empty` that hold nothing yet, since no kernel was launched after they were made.
_unwritten: "weakref.WeakSet[Allocation]" = weakref.WeakSet()


class Allocation:
    """One guarded allocation of `nbytes`; PyCUDA's GPUArray keeps it alive as its `base`."""

    def __init__(self, nbytes: int, label: str):
        cuda = pycuda_driver()
        self.nbytes, self.label = nbytes, label
        self.zone = 0 if tool.running() else RED_ZONE
        total = max(nbytes, 1) + 2 * self.zone  # cuMemAlloc refuses 0 bytes
        try:
            self._memory = cuda.mem_alloc(total)
        except cuda.MemoryError as error:
            free, whole = (amount / 2**30 for amount in cuda.mem_get_info())
            raise OutOfDeviceMemory(
                _say("too little", label=label, need=nbytes / 2**30, free=free, whole=whole)
            ) from error
        self.pointer = int(self._memory) + self.zone
        self.poison = POISON_BYTE
        if self.zone:
            _fill_now(int(self._memory), ZONE_BYTE, self.zone)
            _fill_now(self.pointer + nbytes, ZONE_BYTE, self.zone)
        _live.add(self)

    def damage(self) -> str | None:
        """What was written into the red zones, or None. Offsets in bytes from the array's first byte."""
        if not self.zone:
            return None
        zone = np.empty(self.zone, np.uint8)
        for start, side in ((-self.zone, "before"), (self.nbytes, "after")):
            pycuda_driver().memcpy_dtoh(zone, self.pointer + start)
            (touched,) = np.nonzero(zone != ZONE_BYTE)
            if touched.size:
                first, last = int(touched[0]) + start, int(touched[-1]) + start
                return _say(side, label=self.label, count=touched.size, first=first, last=last)
        return None


def damaged_zones() -> list[str]:
    """Reports on every live allocation whose red zones were written to; waits for the GPU first."""
    synchronize()
    return [report for allocation in list(_live) if (report := allocation.damage())]


def launched() -> None:
    """A kernel is about to run: it may write to any array, also to one whose address lies in a struct or in memory."""
    if _unwritten:
        _unwritten.clear()


def poison_unwritten(address: int, nbytes: int) -> None:
    """Before the TMA may store there: poison these bytes if initcheck runs and they lie in an array that holds nothing.

    The initcheck of CUDA 13.0 does not see what the TMA stores, and reports every element of such an output as soon as it
    is read. Filled memory it takes for written. What the TMA leaves out is still found: outside of tools by `ct.check`,
    as ever, and here too, since it is the same poison. An array that may hold something already stays as it is.
    """
    if any(
        one.pointer <= address and address + nbytes <= one.pointer + one.nbytes
        for one in _unwritten
    ):
        pycuda_driver().memset_d8(address, POISON_BYTE, nbytes)


@cache
def _watched_array() -> type:
    """PyCUDA's GPUArray, for `empty` under initcheck: what may write to it from the host is noticed."""
    from pycuda.gpuarray import GPUArray

    def noticing(name: str):
        def method(self, *args, **kwargs):
            if self.base in _unwritten:
                _unwritten.discard(self.base)
            return getattr(GPUArray, name)(self, *args, **kwargs)

        return method

    # A part that is taken out may be set, too.
    writing = ("set", "fill", "__setitem__", "__getitem__")
    return type("WatchedArray", (GPUArray,), {name: noticing(name) for name in writing})


@cache
def _own_stream() -> Any:
    """A stream that waits for no other, and that no other waits for."""
    return pycuda_driver().Stream(_NON_BLOCKING)


def _fill_now(address: int, byte: int, nbytes: int) -> None:
    """Fill memory that no kernel has yet, and wait for that alone.

    On the default stream a fill may still be on its way when a kernel on a non-blocking stream writes there.
    """
    stream = _own_stream()
    pycuda_driver().memset_d8_async(address, byte, nbytes, stream)
    stream.synchronize()


def _array(shape: Any, dtype: Any, what: str):
    activate()
    from pycuda.gpuarray import GPUArray

    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise TypeError(_say("objects", what=what, dtype=dtype))
    shape = (int(shape),) if np.isscalar(shape) else tuple(int(extent) for extent in shape)  # type: ignore[arg-type] # to NumPy a str is one
    if any(extent < 0 for extent in shape):
        raise ValueError(_say("negative", what=what, shape=shape))
    nbytes = math.prod(shape) * dtype.itemsize
    allocation = Allocation(nbytes, f"{what}({'x'.join(map(str, shape))} {dtype})")
    kind = GPUArray
    if what == "empty" and tool.running() == "initcheck":
        kind = _watched_array()
        _unwritten.add(allocation)
    return kind(shape, dtype, base=allocation, gpudata=allocation.pointer)


def to_device(host: Any):
    """Copy a host array to the GPU.

    host: array of any shape and numeric dtype; one that is not C-contiguous is copied in C order.
    Returns a PyCUDA GPUArray of the same shape and dtype, with red zones on both sides.
    Raises TypeError for a dtype with Python objects, OutOfDeviceMemory, NoGpuError.
    """
    host = np.asarray(host, order="C")
    array = _array(host.shape, host.dtype, "to_device")
    if host.nbytes:
        stream = _own_stream()
        # As for `_fill_now`: a kernel on any stream finds the whole copy there.
        pycuda_driver().memcpy_htod_async(array.gpudata, host, stream)
        stream.synchronize()
    return array


def empty(shape: Any, dtype: Any):
    """An array on the GPU that no kernel has written yet: every byte is poison, which `ct.check` recognizes.

    shape: an int or a tuple; dtype: as NumPy's. Returns a GPUArray with red zones. Raises as `to_device`.
    """
    array = _array(shape, dtype, "empty")
    if array.nbytes and not tool.running():
        _fill_now(int(array.gpudata), POISON_BYTE, array.nbytes)
    return array


def poison(array: Any, byte: int = POISON_BYTE) -> None:
    """Fill an array with poison again, so that a second launch cannot pass on the output of the first.

    byte: 0 to 255, what the poison is, for an array whose right values look like the usual one: `ct.check` then looks for
    this, in its views too. Waits for all that was launched, on any stream. Raises ValueError, also for another byte in a
    part of an array alone.
    """
    if not 0 <= byte <= 255:
        raise ValueError(_say("no byte", byte=byte))
    whole = _allocation(array)
    if whole is not None and byte != whole.poison:
        if array.nbytes != whole.nbytes:
            raise ValueError(
                _say("part", nbytes=array.nbytes, label=whole.label, poison=whole.poison)
            )
        whole.poison = byte
    if array.nbytes and not tool.running():
        synchronize()
        _fill_now(int(array.gpudata), byte, array.nbytes)


def poison_of(array: Any) -> int:
    """The byte that an array on the GPU, or the one that it is a view of, was poisoned with."""
    whole = _allocation(array)
    return POISON_BYTE if whole is None else whole.poison


def _allocation(array: Any) -> Allocation | None:
    """What an array lies in: of a view PyCUDA knows the array before it, and so on. None for memory of another maker."""
    base = getattr(array, "base", None)
    while base is not None and not isinstance(base, Allocation):
        base = getattr(base, "base", None)
    return base


def poisoned(host: Any, byte: int = POISON_BYTE):
    """Mask of the elements of a host array that still hold poison in every byte."""
    flat = np.ascontiguousarray(host).reshape(-1)
    # Compared in words as wide as an element allows: some twenty times faster than byte by byte.
    width = math.gcd(flat.itemsize, 8)
    words = flat.view(f"u{width}").reshape(flat.size, flat.itemsize // width)
    untouched = words == int.from_bytes(bytes([byte]) * width)
    return untouched.all(axis=1).reshape(np.shape(host))


def rng(seed: int = 0):
    """NumPy's default random generator, seeded: the same data in every run of an example."""
    return np.random.default_rng(seed)
