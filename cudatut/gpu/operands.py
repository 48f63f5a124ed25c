"""What an array must be before a launch may have it: the one place that says so.

    take = ct.operands("linear")
    x = take.read("x", x, "uint16", (None, None), align=16)
    w = take.read("weights", weights, "uint16", (None, x.shape[1]), align=16)
    out = take.write("out", out, ("uint16", "float32"), (x.shape[0], w.shape[0]))

A kernel gets addresses. It cannot see that an array is of another type or shape, that its elements lie apart, or that what
it writes is what it still reads. So a launcher says here what it wants of each array, before it launches anything: an array
that is refused leaves all memory as it was. What comes back, an `Operand`, has what the launch needs.

`ct.Kernel` looks at the type and the strides of what it is given, too. It knows nothing of sizes, overlaps, alignment, and
of addresses inside a struct or a tensor map.
"""

import ctypes
import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from cudatut.gpu.device import gpu_count, installed_driver

MOST = (1 << 31) - 1  # of an extent: kernels count rows and columns in an int
_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL in cuda.h


class Operand(NamedTuple):
    """An array as a launch sees it: `count` rows of `width` elements, `stride` elements from one row to the next.

    Of a dense array rows are those of the last axis. size: bytes of an element. owner: the array; an address keeps nothing
    alive, so whoever keeps the address keeps this.
    """

    name: str
    address: np.uint64
    dtype: str
    shape: tuple[int, ...]
    count: int
    width: int
    stride: int
    size: int
    owner: Any

    @property
    def span(self) -> tuple[int, int]:
        """Addresses of the first byte, and of the one behind the last."""
        size = ((self.count - 1) * self.stride + self.width) * self.size
        return int(self.address), int(self.address) + (size if self.count and self.width else 0)

    def aligned(self, nbytes: int) -> bool:
        """Whether every row begins at a multiple of so many bytes."""
        apart = self.stride * self.size if self.count > 1 else 0
        return not (int(self.address) % nbytes or apart % nbytes)

    def overlaps(self, other: "Operand") -> bool:
        """Whether an element of one shares memory with an element of the other."""
        if not (self.count and self.width and other.count and other.width):
            return False
        first, second = sorted((self, other), key=lambda one: one.address)
        lead, apart = int(second.address) - int(first.address), first.stride * first.size
        if int(second.address) >= first.span[1]:
            return False
        rows = first.count > 1 and second.count > 1
        if not rows or apart != second.stride * second.size or not apart:
            return True  # or so it is taken
        # Rows at the same distance, as those of two parts of one matrix: they may pass each other.
        column = lead % apart
        return column < first.width * first.size or column + second.width * second.size > apart


class Operands:
    """The arrays of one launch. Each is read or written; what is written shares no memory with any other."""

    def __init__(self, launcher: str):
        self.launcher = launcher
        self._taken: list[tuple[int, int, Operand, bool]] = []

    def read(
        self,
        name: str,
        array: Any,
        dtypes: str | Sequence[str] | None,
        shape: Sequence[int | None] | None = None,
        **wants: Any,
    ) -> Operand:
        """An array that the launch reads.

        dtypes: NumPy's names of those allowed, None for any (bfloat16 travels as uint16, FP8 as uint8). shape: the extents,
        None for any. Further wants:

        rows: 0 for a C-contiguous array; else so many leading axes number rows, which lie evenly apart, each contiguous.
        lies: (count, width, stride): of a C-contiguous array of any shape, so many rows of so many elements are meant, the
        first at its beginning, and so many elements from one to the next.
        begins: rows begin with so many elements, and may go on.
        align: bytes, of which every row's address is a multiple.
        most: of an extent.
        over: names of arrays taken before that this one may be itself, the same elements at the same places, although one
        of the two is written.

        Raises TypeError for what is no array on this GPU or of another dtype, ValueError for the rest.
        """
        return self._take(False, name, array, dtypes, shape, **wants)

    def write(
        self,
        name: str,
        array: Any,
        dtypes: str | Sequence[str] | None,
        shape: Sequence[int | None] | None = None,
        **wants: Any,
    ) -> Operand:
        """An array that the launch writes, or reads and writes; arguments and errors as for `read`."""
        found = self._take(True, name, array, dtypes, shape, **wants)
        if found.count > 1 and found.stride < found.width:
            raise ValueError(f"{self.launcher}: rows of {name} lie in one another")
        return found

    def _take(self, written, name, array, dtypes, shape, over=(), **wants) -> Operand:
        found = self._operand(name, array, dtypes, shape, **wants)
        allowed = (over,) if isinstance(over, str) else over
        start, end = found.span
        for first, last, other, other_written in self._taken:
            if start >= last or first >= end or not (written or other_written):
                continue  # most are: a launch may have a thousand arrays
            if not found.overlaps(other):
                continue
            may_be = other.name in allowed
            if not (may_be and found[1:-1] == other[1:-1]):
                which = name if written else other.name
                itself = f", and {name} is not {other.name} itself" if may_be else ""
                raise ValueError(
                    f"{self.launcher}: {name} shares memory with {other.name}, and {which} is written{itself}; copy one of them"
                )
        self._taken.append((start, end, found, written))
        return found

    def _operand(
        self, name, array, dtypes, shape, rows=0, begins=None, lies=None, align=1, most=MOST
    ) -> Operand:
        where = f"{self.launcher}: {name}"
        interface = _interface(array, where)
        extents, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
        allowed = (dtypes,) if isinstance(dtypes, str) else dtypes
        if allowed is not None and dtype.name not in allowed:
            hint = "; bfloat16 travels as uint16" if "uint16" in allowed else ""
            raise TypeError(f"{where} is {dtype.name}, and must be {' or '.join(allowed)}{hint}")
        if shape is not None and (
            len(shape) != len(extents)
            or any(want not in (None, have) for want, have in zip(shape, extents, strict=True))
        ):
            wanted = ", ".join("any" if want is None else str(want) for want in shape)
            raise ValueError(f"{where} is {list(extents)}, and must be [{wanted}]")
        if max(lies or extents, default=0) > most:
            raise ValueError(f"{where} is {list(lies or extents)}; an extent goes up to {most}")
        size = dtype.itemsize
        count, width, stride = _rows(extents, interface.get("strides"), size, rows, where)
        if begins is not None:
            if width < begins:
                raise ValueError(
                    f"{where} is {list(extents)}: a row must begin with {begins} elements"
                )
            width = begins
        if lies is not None:
            room, (count, width, stride) = count * width, lies
            if (
                count
                and width
                and ((count > 1 and stride < width) or (count - 1) * stride + width > room)
            ):
                raise ValueError(
                    f"{where} has {room} elements, and must have room for {count} rows of {width}, {stride} apart"
                )
        address = np.uint64(interface["data"][0] or 0)
        align = max(align, dtype.alignment)
        found = Operand(name, address, dtype.name, extents, count, width, stride, size, array)
        if count and width and not found.aligned(align):
            raise ValueError(
                f"{where} is not aligned: {'rows begin' if rows else 'it begins'} at no multiple of {align} bytes; copy it "
                "into an array of its own"
            )
        if address and _several_gpus():
            _check_device(int(address), where)
        return found


def operands(launcher: str) -> Operands:
    """To take the arrays of a launch; `launcher` begins the error messages."""
    return Operands(launcher)


def _interface(array: Any, where: str) -> dict[str, Any]:
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        return interface
    if isinstance(array, np.ndarray):
        raise TypeError(f"{where} is a host array; copy it with ct.to_device(...)")
    raise TypeError(
        f"{where} is a {type(array).__name__}, and must be an array on the GPU, from ct.to_device or ct.empty"
    )


def _rows(
    extents: tuple[int, ...], strides: Sequence[int] | None, size: int, rows: int, where: str
) -> tuple[int, int, int]:
    """How many rows, elements of one, elements from one to the next. strides: in bytes, None of a dense array."""
    leading = min(rows, len(extents)) if rows else max(len(extents) - 1, 0)
    count, width = math.prod(extents[:leading]), math.prod(extents[leading:])
    if strides is None or not count or not width:
        return count, width, width
    dense = size
    for extent, apart in zip(extents[leading:][::-1], strides[leading:][::-1], strict=True):
        if extent > 1 and apart != dense:
            what = "the elements of a row lie apart" if rows else "it is not C-contiguous"
            raise ValueError(
                f"{where} of {list(extents)}: {what} (strides {tuple(strides)} bytes); copy it first"
            )
        dense *= extent
    step = None  # in bytes, from one row to the next
    expected = None if rows else dense  # of the next axis
    for extent, apart in zip(extents[:leading][::-1], strides[:leading][::-1], strict=True):
        if extent > 1 and expected not in (None, apart):
            what = "its rows are not evenly apart" if rows else "it is not C-contiguous"
            raise ValueError(
                f"{where} of {list(extents)}: {what} (strides {tuple(strides)} bytes); copy it first"
            )
        if extent > 1 and step is None:
            step = apart
        expected = apart * extent if extent > 1 else expected and expected * extent
    if step is None:  # one row: as far from the next as it says, if that can be
        step = strides[leading - 1] if rows and leading and strides[leading - 1] >= dense else dense
    if step < 0 or step % size:
        raise ValueError(f"{where}: rows are {step} bytes apart, and must be a number of elements")
    return count, width, step // size


@cache
def _several_gpus() -> bool:
    """Whether an array could be another GPU's."""
    return installed_driver() is not None and gpu_count() > 1


def _check_device(address: int, where: str) -> None:
    driver, here, there = installed_driver(), ctypes.c_int(0), ctypes.c_int(0)
    unknown = driver.cuPointerGetAttribute(
        ctypes.byref(there), _ORDINAL, ctypes.c_uint64(address)
    ) or driver.cuCtxGetDevice(ctypes.byref(here))
    if not unknown and here.value != there.value:
        raise ValueError(
            f"{where} lies on GPU {there.value}, but this launch runs on GPU {here.value}; copy it there first"
        )
