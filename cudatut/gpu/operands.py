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
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from cudatut import words
from cudatut.gpu.device import gpu_count, installed_driver

MOST = (1 << 31) - 1  # of an extent: kernels count rows and columns in an int
_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL in cuda.h
_say = words.section("operands")


class Operand(NamedTuple):
    """An array as a launch sees it: `count` rows of `width` elements, `stride` elements from one row to the next.

    Of a dense array rows are those of the last axis. size: bytes of an element. owner: the array; an address keeps nothing
    alive, so whoever keeps the address keeps this.
    """

    name: str
    address: np.uint64
    dtype: str
    shape: tuple[int, ...]
    count: int  # type: ignore[assignment] # a tuple has a method of this name, which nobody calls
    width: int
    stride: int
    size: int
    owner: Any

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
        reach = ((first.count - 1) * first.stride + first.width) * first.size
        if lead >= reach:
            return False
        if not apart or (second.count > 1 and apart != second.stride * second.size):
            return True  # or so it is taken
        # One row, or rows at the same distance, as those of two parts of one matrix: they may pass each other.
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
        begins: rows begin with so many elements, and may go on.
        lies: (count, width, stride): of a C-contiguous array of any shape, so many rows of so many elements are meant, the
        first at its beginning, and so many elements from one to the next.
        align: bytes, of which the array's address is a multiple, and with `rows` every row's; an element's own alignment at
        least (that of a struct's fields nothing tells: name it here).
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
            raise ValueError(_say("inside", launcher=self.launcher, name=name))
        return found

    def _take(
        self, written, name, array, dtypes, shape, over=(), align=1, **wants
    ) -> Operand:  # fmt: skip
        interface = getattr(array, "__cuda_array_interface__", None)
        if interface is None:
            raise _no_array(array, f"{self.launcher}: {name}")
        layout, apart, reach, least = _layout(
            self.launcher, name, interface["shape"], interface["typestr"], interface.get("strides"),
            tuple(dtypes) if isinstance(dtypes, list) else dtypes,
            tuple(shape) if isinstance(shape, list) else shape, **wants,
        )  # fmt: skip
        start = interface["data"][0] or 0
        found = Operand(name, np.uint64(start), *layout, array)
        align = max(align, least)
        if reach and (start % align or apart % align):
            key = "rows not aligned" if wants.get("rows") else "not aligned"
            raise ValueError(_say(key, where=f"{self.launcher}: {name}", align=align))
        if reach and _several_gpus():
            _check_device(start, f"{self.launcher}: {name}")
        end = start + reach
        for first, last, other, other_written in self._taken:
            if start < last and first < end and (written or other_written):
                self._check_shared(written, found, other, over)
        self._taken.append((start, end, found, written))
        return found

    def _check_shared(self, written, found, other, over) -> None:
        """Raises ValueError where these two, of which one is written, share memory and may not."""
        allowed = (over,) if isinstance(over, str) else over
        may_be = other.name in allowed
        if not found.overlaps(other) or (may_be and found[1:-1] == other[1:-1]):
            return
        which, where = found.name if written else other.name, f"{self.launcher}: {found.name}"
        names = {"name": found.name, "other": other.name, "written": which}
        raise ValueError(_say("shares partly" if may_be else "shares", where=where, **names))


def operands(launcher: str) -> Operands:
    """To take the arrays of a launch; `launcher` begins the error messages."""
    return Operands(launcher)


def _no_array(array: Any, where: str) -> TypeError:
    if isinstance(array, np.ndarray):
        return TypeError(_say("host array", where=where))
    return TypeError(_say("no array", where=where, kind=type(array).__name__))


@lru_cache(maxsize=4096)
def _layout(
    launcher: str,
    name: str,
    extents: tuple[int, ...],
    typestr: str,
    strides: tuple[int, ...] | None,
    dtypes: str | tuple[str, ...] | None,
    shape: tuple[int | None, ...] | None,
    rows: int = 0,
    begins: int | None = None,
    lies: tuple[int, int, int] | None = None,
    most: int = MOST,
) -> tuple[tuple[str, tuple[int, ...], int, int, int, int], int, int, int]:
    """What an Operand has between its address and its owner, bytes from one row to the next, bytes from the first to behind
    the last, an element's alignment. Asked for at each launch, mostly with the same shapes: found anew each time, it takes longer than the launch.
    """
    where, dtype = f"{launcher}: {name}", np.dtype(typestr)
    allowed = (dtypes,) if isinstance(dtypes, str) else dtypes
    if allowed is not None and dtype.name not in allowed:
        hint = _say("bfloat16") if "uint16" in allowed else ""
        wanted = _say("or").join(allowed)
        raise TypeError(_say("dtype", where=where, dtype=dtype.name, wanted=wanted, hint=hint))
    if shape is not None and (
        len(shape) != len(extents)
        or any(want not in (None, have) for want, have in zip(shape, extents, strict=True))
    ):
        wanted = ", ".join(_say("any") if want is None else str(want) for want in shape)
        raise ValueError(_say("shape", where=where, extents=list(extents), wanted=wanted))
    if max(lies or extents, default=0) > most:
        raise ValueError(_say("too long", where=where, extents=list(lies or extents), most=most))
    if min(lies or extents, default=0) < 0:
        raise ValueError(_say("negative", where=where, extents=list(lies or extents)))
    size = dtype.itemsize
    count, width, stride = _rows(extents, strides, size, rows, where)
    if begins is not None:
        if width < begins:
            raise ValueError(_say("begins", where=where, extents=list(extents), begins=begins))
        width = begins
    if lies is not None:
        room, (count, width, stride) = count * width, lies
        inside = count > 1 and stride < width
        if count and width and (inside or (count - 1) * stride + width > room):
            wanted_room = {"count": count, "width": width, "stride": stride}
            raise ValueError(_say("no room", where=where, room=room, **wanted_room))
    apart = stride * size if rows and count > 1 else 0
    reach = ((count - 1) * stride + width) * size if count and width else 0
    return (dtype.name, extents, count, width, stride, size), apart, reach, dtype.alignment


def _rows(
    extents: tuple[int, ...], strides: Sequence[int] | None, size: int, rows: int, where: str
) -> tuple[int, int, int]:
    """How many rows, elements of one, elements from one to the next. strides: in bytes, None of a dense array."""
    leading = min(rows, len(extents)) if rows else max(len(extents) - 1, 0)
    count, width = math.prod(extents[:leading]), math.prod(extents[leading:])
    if strides is None or not count or not width:
        return count, width, width

    def refused(why: str) -> ValueError:
        layout = {"extents": list(extents), "strides": tuple(strides or ())}
        return ValueError(_say("copy first", where=where, what=_say(why), **layout))

    dense = size
    for extent, apart in zip(extents[leading:][::-1], strides[leading:][::-1], strict=True):
        if extent > 1 and apart != dense:
            raise refused("elements apart" if rows else "not contiguous")
        dense *= extent
    step = None  # in bytes, from one row to the next
    expected = None if rows else dense  # of the next axis
    for extent, apart in zip(extents[:leading][::-1], strides[:leading][::-1], strict=True):
        if extent > 1 and expected not in (None, apart):
            raise refused("rows uneven" if rows else "not contiguous")
        if extent > 1 and step is None:
            step = apart
        expected = apart * extent if extent > 1 else expected and expected * extent
    if step is None:  # one row: as far from the next as it says, if that can be
        step = strides[leading - 1] if rows and leading and strides[leading - 1] >= dense else dense
    if step < 0 or step % size:
        raise ValueError(_say("rows apart", where=where, step=step))
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
        raise ValueError(_say("other gpu", where=where, there=there.value, here=here.value))
