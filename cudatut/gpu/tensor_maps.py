"""Tensor maps: how the tensor memory accelerator (TMA) of Hopper and newer GPUs is told about an array.

A map holds an array's address, extents and strides, and the size of the box that one copy moves. The driver encodes it
on the host, and a kernel takes it by value, before its other parameters: `const __grid_constant__ CUtensorMap`.
"""

import ctypes
import math
from collections.abc import Sequence
from typing import Any

from cudatut import words
from cudatut.errors import CudatutError, UnsupportedGpuError

BYTES = 128  # of a CUtensorMap

# CUtensorMapDataType in cuda.h. bfloat16 travels as its 16 bits.
_TYPES = {
    "uint8": 0, "uint16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5, "float16": 6, "float32": 7,
    "float64": 8,
}  # fmt: skip
_SWIZZLES = {None: 0, 32: 1, 64: 2, 128: 3}  # CUtensorMapSwizzle, by bytes
_PROMOTE_TO_128_BYTES = 2  # CUtensorMapL2promotion: what L2 fetches at a time
_say = words.section("tensor_maps")


def tensor_map(array: Any, box: Sequence[int], swizzle: int | None = None) -> bytes:
    """The tensor map of an array on the GPU, as the 128 bytes that a kernel takes by value.

    array: of up to five dimensions; its last must be contiguous, the strides of the others multiples of 16 bytes, and
    no extent 0. box: the extents of one copy, in the array's order (rows, columns), at most 256 each. swizzle: 32, 64
    or 128, the bytes within which the TMA rearranges pieces of 16, or None. What a box holds beyond the array is zero.
    While initcheck runs, an array of `ct.empty` is poisoned here if nothing has written it: no `ct.Kernel` was launched
    since, and it was not set. Write it otherwise (memcpy_htod, another library) only after its map is made.

    Raises TypeError for a dtype that has no map, ValueError for what the TMA cannot do, naming it; UnsupportedGpuError
    before Hopper, NoGpuError.
    """
    extents, steps = _checked(array, box, swizzle)
    from cudatut.gpu import memory
    from cudatut.gpu.device import device, installed_driver

    gpu = device()
    if gpu.compute_capability < (9, 0):
        raise UnsupportedGpuError(_say("needs hopper", name=gpu.name, arch=gpu.arch))
    rank, address = len(extents), array.__cuda_array_interface__["data"][0]
    further = sum((extent - 1) * step for extent, step in zip(extents[1:], steps))
    memory.poison_unwritten(address, further + extents[0] * array.dtype.itemsize)
    buffer = ctypes.create_string_buffer(BYTES + 64)
    start = -ctypes.addressof(buffer) % 64  # the driver wants the map aligned
    status = installed_driver().cuTensorMapEncodeTiled(
        ctypes.c_void_p(ctypes.addressof(buffer) + start),
        ctypes.c_int(_TYPES[str(array.dtype)]),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * rank)(*extents),
        (ctypes.c_uint64 * rank)(*steps),  # one more than there are: with rank 1 there are none
        (ctypes.c_uint32 * rank)(*reversed(box)),
        (ctypes.c_uint32 * rank)(*[1] * rank),  # every element, not every second
        ctypes.c_int(0),  # no interleaving
        ctypes.c_int(_SWIZZLES[swizzle]),
        ctypes.c_int(_PROMOTE_TO_128_BYTES),
        ctypes.c_int(0),  # zeros beyond the edges
    )
    if status:
        asked = {"shape": tuple(reversed(extents)), "box": tuple(box)}
        raise CudatutError(_say("refused", status=status, **asked))
    return buffer.raw[start : start + BYTES]


def _checked(array: Any, box: Sequence[int], swizzle: int | None) -> tuple[list[int], list[int]]:
    """Extents, and the strides in bytes of all dimensions but the last, both innermost first as the driver has them."""
    if str(array.dtype) not in _TYPES:
        none = _say("dtype", dtype=array.dtype, types=", ".join(_TYPES))
        raise TypeError(_say("wrong", what=none))
    interface, size = array.__cuda_array_interface__, array.dtype.itemsize
    shape, address = tuple(interface["shape"]), interface["data"][0]
    strides = interface.get("strides")
    if strides is None:
        strides = [size * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    row = (box[-1] if box else 0) * size
    wrong = None
    if not 1 <= len(shape) <= 5 or 0 in shape:
        wrong = _say("extents", shape=shape)
    elif strides[-1] != size:
        wrong = _say("last", strides=tuple(strides))
    elif address % 16 or any(stride % 16 for stride in strides[:-1]):
        wrong = _say("multiples", address=address, strides=tuple(strides))
    elif len(box) != len(shape) or not all(1 <= extent <= 256 for extent in box):
        wrong = _say("box", box=tuple(box), shape=shape)
    elif swizzle not in _SWIZZLES:
        wrong = _say("swizzle", swizzle=swizzle)
    elif row % 16 or (swizzle and row > swizzle):
        key = "swizzled row" if swizzle else "row"
        wrong = _say(key, box=tuple(box), row=row, swizzle=swizzle)
    if wrong:
        raise ValueError(_say("wrong", what=wrong))
    return list(reversed(shape)), list(reversed(strides[:-1]))
