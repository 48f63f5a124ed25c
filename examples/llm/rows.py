"""What the launchers of kernels for rows share: where arrays lie, how wide
loads may be, how many threads a row gets. bfloat16 travels as uint16.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct

CTYPES = {"float32": "float", "uint16": "__nv_bfloat16"}
NULL = np.uint64(0)  # for a pointer that a kernel may do without
WIDEST = 32768  # elements of a row that threads can keep


class Rows(NamedTuple):
    """Rows as a kernel sees them; stride: elements from one to the next. owner:
    the array, which has to live until the launch.
    """

    address: np.uint64
    dtype: str
    rows: int
    width: int
    stride: int
    owner: Any

    @property
    def ctype(self) -> str:
        return CTYPES[self.dtype]

    @property
    def bytes(self) -> int:
        """Of an element."""
        return np.dtype(self.dtype).itemsize

    def overlaps(self, other: "Rows") -> bool:
        """Whether what lies between first and last element is shared."""

        def ends(a: Rows) -> tuple[int, int]:
            count = (a.rows - 1) * a.stride + a.width if a.rows else 0
            return int(a.address), int(a.address) + count * a.bytes

        (first, end), (others, others_end) = ends(self), ends(other)
        return first < others_end and others < end


def rows_of(
    array: Any, name: str, *dtypes: str, shape: tuple | None = None
) -> Rows:
    """An array of one or two axes, whose last axis is contiguous.

    dtypes: those allowed; default: CTYPES. shape: what it has to be, None for
    any extent. Raises ValueError, which calls the array `name`.
    """
    interface = array.__cuda_array_interface__
    found, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    if dtype.name not in (dtypes or CTYPES):
        wanted = " or ".join(dtypes or CTYPES)
        raise ValueError(f"{name} is {dtype.name}, and should be {wanted}")
    shape = shape or (None, None)
    if len(found) != len(shape) or any(
        want not in (None, have) for want, have in zip(shape, found)
    ):
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"{name} is {list(found)}, and should be [{wanted}]")
    rows, width = (1, *found)[-2:]
    stride = width
    strides = interface.get("strides")
    if strides and 0 not in found:
        if width > 1 and strides[-1] != dtype.itemsize:
            raise ValueError(f"the elements of a row of {name} lie apart")
        if len(found) == 2:  # even of one row: it shall be read as among many
            stride, rest = divmod(strides[0], dtype.itemsize)
            if rest or stride < 0:
                raise ValueError(
                    f"the rows of {name} are {strides[0]} bytes apart, which is no number of elements"
                )
    address = np.uint64(interface["data"][0] or 0)
    return Rows(address, dtype.name, rows, width, stride, array)


def address(array: Any) -> int:
    """Where an array begins; 0 for one that is empty."""
    return array.__cuda_array_interface__["data"][0] or 0


def ints(array: Any, name: str, *shape: int) -> np.uint64:
    """The address of a contiguous array of int32 of this shape. Keeps nothing
    alive: whoever calls needs the array under a name until the launch.
    """
    return contiguous(array, name, "int32", shape)[0]


def contiguous(
    array: Any, name: str, dtype: str, shape: tuple
) -> tuple[np.uint64, tuple[int, ...]]:
    """Address and shape of a contiguous array; None in `shape`: any extent.
    Keeps the array alive no more than `ints` does.
    """
    interface = array.__cuda_array_interface__
    found, kind = tuple(interface["shape"]), np.dtype(interface["typestr"])
    if kind.name != dtype or len(found) != len(shape) or any(
        want not in (None, have) for want, have in zip(shape, found)
    ):  # fmt: skip
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(
            f"{name} is {kind.name}, {list(found)}, and should be {dtype}, [{wanted}]"
        )
    strides, expected = interface.get("strides"), kind.itemsize
    if strides and 0 not in found:
        for stride, extent in zip(strides[::-1], found[::-1]):
            if extent > 1 and stride != expected:
                raise ValueError(f"{name} is not contiguous")
            expected *= extent
    return np.uint64(interface["data"][0] or 0), found


class Spaced(NamedTuple):
    """Rows of several axes, evenly apart. As `ints`, it keeps nothing alive."""

    address: np.uint64
    count: int
    stride: int  # elements from one to the next


def spaced(
    array: Any, name: str, leading: int, width: int, size: int = 2
) -> Spaced:
    """The rows of an array of bf16, or of FP8 (size: 1 byte): `leading` axes
    number them, and each begins with `width` elements side by side. Raises
    TypeError, ValueError."""
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"{name} is no array on the GPU")
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    if dtype.itemsize != size or dtype.kind not in "ui":
        raise TypeError(f"{name} is {dtype}; bf16 travels as uint16")
    strides = interface.get("strides") or tuple(
        size * math.prod(shape[axis + 1 :]) for axis in range(len(shape))
    )
    count, inside = math.prod(shape[:leading]), math.prod(shape[leading:])
    if inside < width:
        raise ValueError(
            f"{name} of shape {shape}: its rows should begin with {width} elements"
        )
    stride, dense = inside, size
    if count and inside:
        for extent, apart in zip(
            shape[: leading - 1 : -1], strides[: leading - 1 : -1]
        ):
            if extent > 1 and apart != dense:
                raise ValueError(f"the elements of a row of {name} lie apart")
            dense *= extent
        apart = None  # in bytes, from the last axis of rows to the first
        for extent, step in zip(shape[:leading][::-1], strides[:leading][::-1]):
            if extent > 1 and apart not in (None, step):
                raise ValueError(f"the rows of {name} are not evenly spaced")
            if extent > 1:
                stride = step // size if apart is None else stride
                apart = step
            apart = None if apart is None else apart * extent
    if not width <= stride < 1 << 31 or count >= 1 << 31:
        raise ValueError(f"{name} has {count} rows, {stride} elements apart")
    return Spaced(np.uint64(interface["data"][0] or 0), count, stride)


class Cache(NamedTuple):
    """How keys and values are stored: the dtype they travel as, what kernels
    add to their template arguments, where scales are.
    """

    dtype: str
    arguments: tuple[str, ...]
    scales: np.uint64


def cache_of(keys: Any, scales: Any) -> Cache:
    """Of a cache in bf16, which has no scales, or in FP8 (uint8), which needs
    them: float32, [2, kv_heads], of keys and values. keys: [..., kv_heads,
    head_dim]. Raises ValueError.
    """
    interface = keys.__cuda_array_interface__
    dtype = np.dtype(interface["typestr"]).name
    kv_heads = (0, 0, *interface["shape"])[-2]
    if dtype == "uint8":
        if scales is None:
            raise ValueError("keys and values in FP8 need their scales")
        at, _ = contiguous(scales, "scales", "float32", (2, kv_heads))
        return Cache(dtype, ("__nv_fp8_e4m3",), at)
    if scales is not None:
        raise ValueError(f"keys are {dtype}; scales are for FP8, uint8")
    return Cache("uint16", (), NULL)


def elements_per_load(first: Rows, *others: Rows) -> int:
    """16 bytes of the first array at a time if all of them allow that, else 1
    element; depends on addresses, strides and width, not on how many rows.
    """
    vec = 16 // first.bytes
    for a in (first, *others):
        if a.width % vec or a.stride % vec or int(a.address) % (vec * a.bytes):
            return 1
    return vec


# --8<-- [start:share]
def share(width: int, vec: int, most: int = 4) -> tuple[int, int]:
    """Threads of a row, and vectors of each thread. most: vectors that a thread
    gets before the row gets more threads.

    A warp needs no barrier, so its threads may have two more. Results depend on
    this, so it depends on nothing but the row.
    """
    vectors = ct.cdiv(width, vec)
    if vectors <= 32 * min(6, most + 2):
        lanes = 4
        while lanes < min(32, vectors):
            lanes *= 2
    else:
        lanes, most = 64, most if vec > 1 else 2 * most
        while lanes < 1024 and lanes * most < vectors:
            lanes *= 2
    return lanes, ct.cdiv(vectors, lanes)


def launch_shape(rows: int, lanes: int) -> dict[str, int]:
    """Grid and block: a row per block, or of up to 32 lanes as many rows as 128
    threads have; fewer where that would leave multiprocessors without work.
    """
    block = lanes
    if lanes <= 32:
        few = rows * lanes <= 4 * 32 * ct.device().sm_count
        block = 32 if few else 128
    return {"grid": ct.cdiv(rows * lanes, block), "block": block}


# --8<-- [end:share]


@cache
def kernel(source: str, base: str, *arguments: Any) -> Callable:
    """The instance base<arguments>; base itself if there are none."""
    name = f"{base}<{','.join(map(str, arguments))}>" if arguments else base
    return ct.Kernel(source, name)
