"""Texture objects of images of four bytes a pixel, by the driver API: PyCUDA
has texture references only, which CUDA 12 took away.

    texture = Texture(pixels, width)     # reads the memory of `pixels`
    texture = Texture(pixels, width, array=True)  # a copy, in a CUDA array
    texture.handle                       # what a kernel takes
    texture.refresh()                    # the copy again, of new pixels

A CUDA array keeps pixels that are neighbors in both directions close together;
the driver chooses how. Layouts of the structs are those of cuda.h.
"""

import ctypes
import weakref
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.gpu.device import installed_driver

ARRAY, PITCH2D = 0, 3  # CUresourcetype
UNSIGNED_INT8, UNSIGNED_INT32 = 1, 3  # CUarray_format
TEXTURE_GATHER = 8  # CUDA_ARRAY3D_TEXTURE_GATHER
CLAMP, BORDER = 1, 3  # CUaddress_mode
POINT, LINEAR = 0, 1  # CUfilter_mode
AS_INTEGER = 1  # CU_TRSF_READ_AS_INTEGER
DEVICE_MEMORY, ARRAY_MEMORY = 2, 3  # CUmemorytype
PITCH_ALIGN = 32  # bytes, of which rows are a multiple
START_ALIGN = 512  # bytes, of which the first row is a multiple
# What compute capabilities from 7.5 on take, in pixels of rows and columns.
MOST_HEIGHT, MOST_WIDTH = 65_000, 131_072
MOST_GATHER = 32_768  # of both, where four neighbors come at once

u32, u64, f32 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_float


class Pitch2D(ctypes.Structure):
    _fields_ = [
        ("address", u64), ("format", u32), ("channels", u32),
        ("width", u64), ("height", u64), ("pitch", u64),
    ]  # fmt: skip


class Source(ctypes.Union):
    _fields_ = [("array", u64), ("pitch2d", Pitch2D), ("reserved", u32 * 32)]


class ResourceDesc(ctypes.Structure):
    _fields_ = [("kind", u32), ("source", Source), ("flags", u32)]


class TextureDesc(ctypes.Structure):
    _fields_ = [
        ("address_mode", u32 * 3), ("filter", u32), ("flags", u32),
        ("anisotropy", u32), ("mipmap", u32), ("levels", f32 * 3),
        ("border", f32 * 4), ("reserved", u32 * 12),
    ]  # fmt: skip


class ArrayDesc(ctypes.Structure):
    _fields_ = [
        ("width", u64), ("height", u64), ("depth", u64), ("format", u32),
        ("channels", u32), ("flags", u32),
    ]  # fmt: skip


class Place(ctypes.Structure):
    _fields_ = [
        ("x", u64), ("y", u64), ("kind", u32), ("host", u64),
        ("device", u64), ("array", u64), ("pitch", u64),
    ]  # fmt: skip


class Copy2D(ctypes.Structure):
    _fields_ = [
        ("source", Place), ("target", Place), ("width", u64), ("height", u64),
    ]  # fmt: skip


def _call(name: str, *arguments: Any) -> None:
    if status := getattr(installed_driver(), name)(*arguments):
        raise RuntimeError(f"{name} failed with status {status}")


def _free(name: str, handle: int) -> None:
    installed_driver().cuCtxSynchronize()  # a kernel may still read it
    getattr(installed_driver(), name)(u64(handle))


class Texture:
    """pixels: uint8 on the GPU, height x pitch x 4, of which `width` columns
    count; the pitch is a multiple of 8 pixels. filtered: reads are weighted
    means, as numbers from 0 to 1; else bytes. border: beyond the image is 0;
    else its edge. array: read from a CUDA array, into which the pixels are
    copied here. gather: such an array, of whole pixels as words, of which a
    read brings four neighbors. Raises TypeError, ValueError, RuntimeError."""

    def __init__(
        self,
        pixels: Any,
        width: int,
        filtered: bool = False,
        border: bool = True,
        array: bool = False,
        gather: bool = False,
    ):
        ct.activate()
        take = ct.operands("texture")
        array = array or gather
        start = 1 if array else START_ALIGN
        found = take.read(
            "pixels", pixels, "uint8", (None, None, 4), align=start
        )
        height, pitch, _ = found.shape
        high, wide = (MOST_GATHER,) * 2 if gather else (MOST_HEIGHT, MOST_WIDTH)
        if not (1 <= height <= high and 1 <= width <= wide):
            raise ValueError(
                f"texture: {height} x {width} pixels: at most {high} x {wide},"
                " at least one"
            )
        if width > pitch or 4 * pitch % PITCH_ALIGN:
            raise ValueError(
                f"texture: rows of {pitch} pixels for {width}: a multiple of 8"
            )
        self.shape, self.operands = (height, width), (found,)
        if filtered and gather:
            raise ValueError("texture: it is filtered, or gathers")
        resource = ResourceDesc()
        if array:
            resource.kind = ARRAY
            resource.source.array = self._array(
                found, height, width, pitch, gather
            )
        else:
            resource.kind = PITCH2D
            resource.source.pitch2d = Pitch2D(
                int(found.address), UNSIGNED_INT8, 4, width, height, 4 * pitch
            )
        sampler = TextureDesc()
        sampler.address_mode[:] = [BORDER if border else CLAMP] * 3
        sampler.filter = LINEAR if filtered else POINT
        sampler.flags = 0 if filtered else AS_INTEGER
        handle = u64()
        _call(
            "cuTexObjectCreate", ctypes.byref(handle), ctypes.byref(resource),
            ctypes.byref(sampler), None,
        )  # fmt: skip
        self.handle = np.uint64(handle.value)
        weakref.finalize(self, _free, "cuTexObjectDestroy", handle.value)

    def _array(self, found, height, width, pitch, gather) -> int:
        handle = u64()
        kind = (
            (UNSIGNED_INT32, 1, TEXTURE_GATHER)
            if gather
            else (UNSIGNED_INT8, 4, 0)
        )
        form = ArrayDesc(width, height, 0, *kind)
        _call("cuArray3DCreate_v2", ctypes.byref(handle), ctypes.byref(form))
        # Finalizers run in the order in which they are made, last first.
        weakref.finalize(self, _free, "cuArrayDestroy", handle.value)
        address, kinds = int(found.address), (DEVICE_MEMORY, ARRAY_MEMORY)
        self._copy = Copy2D(
            Place(kind=kinds[0], device=address, pitch=4 * pitch),
            Place(kind=kinds[1], array=handle.value),
            4 * width,
            height,
        )
        ct.synchronize()  # what writes the pixels may run in another stream
        self.refresh()
        return handle.value

    def refresh(self) -> None:
        """Copy the pixels into the CUDA array once more, in the default
        stream; returns at once."""
        _call("cuMemcpy2DAsync_v2", ctypes.byref(self._copy), None)
