"""Tensor maps in im2col mode: a copy fetches the windows of neighboring results.

As documented with cuTensorMapEncodeIm2col in cuda.h: extents and strides from the innermost axis on, corners of the box in
which windows begin as distances from the image's own corners, -128 to 127 with four axes; steps from a window to the next
from 1 to 8; 256 channels and 1024 pixels of a copy at most.
"""

import ctypes
from typing import Any

import cudatut as ct
from cudatut.gpu.device import installed_driver
from cudatut.gpu.tensor_maps import BYTES, tensor_map

from cudatut.book.images.shapes import Shape

BFLOAT16 = 9  # CU_TENSOR_MAP_DATA_TYPE_BFLOAT16


def corners(shape: Shape) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where windows begin, at the first and at the last corner: (down, right) from the image's first and last pixel."""
    lower = -shape.pad[0], -shape.pad[1]
    upper = tuple(
        pad - (window - 1) * dilation
        for pad, window, dilation in zip(
            shape.pad, shape.window, shape.dilation, strict=True
        )
    )
    return lower, upper


def refused(shape: Shape) -> str | None:
    """Why the im2col mode cannot express this convolution; None if it can."""
    if shape.channels % 8 or shape.filters % 8:
        return "channels and filters must be multiples of 8 (16 bytes)"
    if max(shape.stride) > 8:
        return "strides go up to 8"
    lower, upper = corners(shape)
    if min(lower + upper) < -128 or max(lower + upper) > 127:
        return "corners go from -128 to 127"
    reach = [
        (w - 1) * d for w, d in zip(shape.window, shape.dilation, strict=True)
    ]
    if max(reach) > 255:
        return "offsets go up to 255"
    return None


def im2col_map(images: Any, shape: Shape, pixels: int, channels: int) -> bytes:
    """The map of images, [image][y][x][channel] in bf16, for copies of so many pixels of so many channels: 64 or 32.

    Raises ValueError for what the mode cannot express, CudatutError where the driver refuses.
    """
    if why := refused(shape):
        raise ValueError(f"im2col_map: {why}: {shape}")
    # Checks the array, and the GPU.
    tensor_map(images, (1, 1, 1, channels), swizzle=2 * channels)
    extents = [shape.channels, shape.width, shape.height, shape.images]
    row = shape.channels * 2
    steps = [row, row * shape.width, row * shape.width * shape.height]
    lower, upper = (tuple(reversed(one)) for one in corners(shape))  # x first
    buffer = ctypes.create_string_buffer(BYTES + 64)
    start = -ctypes.addressof(buffer) % 64
    status = installed_driver().cuTensorMapEncodeIm2col(
        ctypes.c_void_p(ctypes.addressof(buffer) + start),
        ctypes.c_int(BFLOAT16),
        ctypes.c_uint32(4),
        ctypes.c_void_p(images.__cuda_array_interface__["data"][0]),
        (ctypes.c_uint64 * 4)(*extents),
        (ctypes.c_uint64 * 3)(*steps),
        (ctypes.c_int * 2)(*lower),
        (ctypes.c_int * 2)(*upper),
        ctypes.c_uint32(channels),
        ctypes.c_uint32(pixels),
        (ctypes.c_uint32 * 4)(1, shape.stride[1], shape.stride[0], 1),
        ctypes.c_int(0),  # no interleaving
        ctypes.c_int({32: 2, 64: 3}[channels]),  # swizzle of 64 or 128 bytes
        ctypes.c_int(2),  # L2 fetches 128 bytes
        ctypes.c_int(0),  # zeros outside
    )
    if status:
        raise ct.CudatutError(f"cuTensorMapEncodeIm2col: {status}: {shape}")
    return buffer.raw[start : start + BYTES]
