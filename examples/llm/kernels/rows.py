"""What the launchers of kernels for rows share: what arrays have in common, how
wide loads may be, how many threads a row gets. bfloat16 travels as uint16.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import cudatut as ct
from cudatut.gpu.operands import Operand, Operands

CTYPES = {"float32": "float", "uint16": "__nv_bfloat16"}
FLOATS = tuple(CTYPES)
NULL = np.uint64(0)  # for a pointer that a kernel may do without
WIDEST = 32768  # elements of a row that threads can keep
LONGEST = 1 << 30  # of a row that threads walk along, counting in an int
MOST = (1 << 31) - 512  # of rows and columns that an int rounds up to tiles
BLOCKS = (1 << 31) - 1  # of a grid along its first axis,
BLOCKS_ASIDE = 65535  # and along the others


def ctype(a: Operand) -> str:
    return CTYPES[a.dtype]


def grid(take: Operands, blocks: int, *aside: int) -> int | tuple[int, ...]:
    """The grid of a launch. Raises ValueError for more than a GPU takes."""
    if blocks > BLOCKS or (aside and max(aside) > BLOCKS_ASIDE):
        most = ", ".join(map(str, (BLOCKS, *[BLOCKS_ASIDE] * len(aside))))
        raise ValueError(
            f"{take.launcher}: arrays of these shapes take {[blocks, *aside]} blocks, and a grid has up to [{most}]; launch several times, on parts"
        )
    return (blocks, *aside) if aside else blocks


def begin_at(take: Operands, nbytes: int, *arrays: Operand) -> None:
    """Raises ValueError unless each begins at a multiple of so many bytes, and
    where its rows may lie apart each row does. Of a contiguous array it is the
    kernel that knows how its rows are loaded.
    """
    for a in arrays:
        apart = a.stride != a.width and a.count > 1
        off = int(a.address) % nbytes or (apart and a.stride * a.size % nbytes)
        if off and a.count and a.width:
            raise ValueError(
                f"{take.launcher}: {a.name} is not aligned: {'its rows begin' if apart else 'it begins'} at no multiple of {nbytes} bytes; copy it into an array of its own"
            )


def workspace(
    take: Operands, name: str, array: Any, dtype: str, least: int,
    written: bool = True,
) -> Operand:  # fmt: skip
    """What a launch works in, or finds there, contiguous and of any shape:
    `least` elements, or more. Raises TypeError, ValueError.
    """
    how = take.write if written else take.read
    found = how(name, array, dtype, most=1 << 62)
    there = found.count * found.width
    if there < least:
        raise ValueError(
            f"{take.launcher}: {name} has {there} elements, and needs {least}"
        )
    return found


def queries_of(take: Operands, q: Any, shape: Sequence[int]) -> Operand:
    """Queries of this shape, [..., heads, head_dim], or in rows that begin with
    them, [..., width], as those of a fused projection do. bf16; rows may lie
    apart, evenly. Raises TypeError, ValueError.
    """
    *leading, heads, head_dim = shape
    found = take.read(
        "q", q, "uint16", rows=len(leading), begins=heads * head_dim
    )
    if list(found.shape) != [*shape] and list(found.shape[:-1]) != leading:
        raise ValueError(
            f"{take.launcher}: q is {list(found.shape)}, and must be {[*shape]}, or {leading} rows that begin with {heads} x {head_dim} elements"
        )
    return found


class Cache(NamedTuple):
    """Keys and values, what kernels add to their template arguments for them,
    where their scales are.
    """

    keys: Operand
    values: Operand
    arguments: tuple[str, ...]
    scales: np.uint64


def cache_of(
    take: Operands, keys: Any, values: Any, scales: Any, axes: int,
    written: bool = False, rows: int = 0, fp8: bool = True,
) -> Cache:  # fmt: skip
    """Of so many axes, the last of them KV heads and a head's elements. In bf16
    there are no scales; in FP8 (uint8), which kernels take unless told
    otherwise, there must be: float32, [2, kv_heads], of keys and values.
    written, rows: as `Operands` has it. Raises TypeError, ValueError.
    """
    how = take.write if written else take.read
    kinds = ("uint16", "uint8") if fp8 else "uint16"
    of_keys = how("keys", keys, kinds, (None,) * axes, rows=rows)
    of_values = how("values", values, of_keys.dtype, of_keys.shape, rows=rows)
    if of_keys.dtype == "uint16":
        if scales is not None:
            raise ValueError(
                f"{take.launcher}: keys are bf16; scales are for FP8, uint8"
            )
        return Cache(of_keys, of_values, (), NULL)
    if scales is None:
        raise ValueError(
            f"{take.launcher}: keys and values in FP8 need their scales"
        )
    shape = 2, of_keys.shape[-2]
    of_scales = take.read("scales", scales, "float32", shape)
    arguments = ("__nv_fp8_e4m3",)
    return Cache(of_keys, of_values, arguments, of_scales.address)


def elements_per_load(first: Operand, *others: Operand) -> int:
    """16 bytes of the first array at a time if all of them allow that, else 1
    element; depends on addresses, strides and width, not on how many rows.
    """
    vec = 16 // first.size
    for a in (first, *others):
        if a.width % vec or a.stride % vec or int(a.address) % (vec * a.size):
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
