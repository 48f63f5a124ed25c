"""Pictures as files: PNG, written here, and WebP, where Pillow is installed; and what a file says of itself.

PNG keeps every value as it is. WebP is for a photograph, which as a PNG would be several times as large.
"""

import io
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from cudatut.errors import ToolMissing

MOST = 30 * 1024  # bytes of a picture
_PNG = b"\x89PNG\r\n\x1a\n"
_GREY, _RGB, _INDEXED = 0, 2, 3  # PNG's color types
_MOST_COLORS = 256  # of an indexed PNG
_NO_KEY_FRAME = 1


def png(array: Any) -> bytes:
    """A uint8 array, height x width or height x width x 3 (red, green, blue), as a PNG.

    A drawing of few colors is smaller as numbers of its colors, so that is tried, too.
    """
    import numpy as np

    candidates = [_filtered(array)]
    if array.ndim == 3:
        flat = array.reshape(-1, 3)
        codes = flat.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
        _, first, numbers = np.unique(codes, return_index=True, return_inverse=True)
        if len(first) <= _MOST_COLORS:
            candidates.append(_indexed(flat[first], numbers.reshape(array.shape[:2])))
    return min(candidates, key=len)


def _indexed(colors: Any, numbers: Any) -> bytes:
    """Colors, and for each pixel the number of its own, as a PNG; rows as they are, since a difference of numbers says nothing."""
    import numpy as np

    height, width = numbers.shape
    head = struct.pack(">IIBBBBB", width, height, 8, _INDEXED, 0, 0, 0)
    lines = np.insert(numbers.astype(np.uint8), 0, 0, axis=1).tobytes()
    chunks = (b"IHDR", head), (b"PLTE", colors.tobytes()), (b"IDAT", zlib.compress(lines, 9))
    return _PNG + b"".join(_chunk(*one) for one in (*chunks, (b"IEND", b"")))


def _filtered(array: Any) -> bytes:
    import numpy as np

    height, width, *channels = array.shape
    rows = np.ascontiguousarray(array).reshape(height, -1).astype(np.int16)
    lines = bytearray()
    above, step = np.zeros_like(rows[0]), channels[0] if channels else 1
    for row in rows:
        # Of what PNG may subtract from a row, that which leaves the smallest differences.
        left = np.concatenate([np.zeros(step, np.int16), row[:-step]])
        corner = np.concatenate([np.zeros(step, np.int16), above[:-step]])
        guesses = [np.zeros_like(row), left, above, (left + above) // 2]
        guesses.append(_paeth(left, above, corner))
        tried = [(row - guess).astype(np.uint8) for guess in guesses]
        best = min(
            range(5), key=lambda one: int(np.abs(tried[one].view(np.int8).astype(int)).sum())
        )
        lines += bytes([best]) + tried[best].tobytes()
        above = row
    head = struct.pack(">IIBBBBB", width, height, 8, _RGB if channels else _GREY, 0, 0, 0)
    chunks = (b"IHDR", head), (b"IDAT", zlib.compress(bytes(lines), 9)), (b"IEND", b"")
    return _PNG + b"".join(_chunk(*one) for one in chunks)


def _paeth(left: Any, above: Any, corner: Any) -> Any:
    """Of the three neighbors the one that is nearest to left + above - corner."""
    import numpy as np

    to_left, to_above = abs(above - corner), abs(left - corner)
    to_corner = abs(left + above - 2 * corner)
    other = np.where(to_above <= to_corner, above, corner)
    return np.where((to_left <= to_above) & (to_left <= to_corner), left, other)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def webp(array: Any, quality: int) -> bytes:
    """The same as a WebP that is not exact. Raises ToolMissing where Pillow is not installed."""
    try:
        from PIL import Image  # type: ignore[import-not-found,unused-ignore]  # where Pillow is not installed
    except ImportError as error:
        raise ToolMissing(
            "a picture with a quality is a WebP, which Pillow writes: `pip install pillow`; without quality= it is a PNG"
        ) from error
    file = io.BytesIO()
    Image.fromarray(array).convert("RGB").save(file, "WEBP", quality=quality, method=6)
    return file.getvalue()


def seen(file: bytes) -> tuple[str, int, int]:
    """What a file is, "png" or "webp", with its width and height. Raises ValueError for any other, or a damaged one."""
    if file.startswith(_PNG):
        (name, head), *others = _chunks(file)
        if name == b"IHDR" and len(head) == 13 and others and others[-1] == (b"IEND", b""):
            return "png", *struct.unpack(">II", head[:8])
    elif file[:4] == b"RIFF" and file[8:16] == b"WEBPVP8 " and file[23:26] == b"\x9d\x01\x2a":
        (length,) = struct.unpack("<I", file[4:8])
        if len(file) >= 30 and length == len(file) - 8 and not file[20] & _NO_KEY_FRAME:
            width, height = struct.unpack("<HH", file[26:30])
            return "webp", width & 0x3FFF, height & 0x3FFF
    raise ValueError("it is no PNG and no WebP")


def _chunks(file: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_PNG)
    while at < len(file):
        try:
            (length,) = struct.unpack_from(">I", file, at)
            name, data = file[at + 4 : at + 8], file[at + 8 : at + 8 + length]
            (crc,) = struct.unpack_from(">I", file, at + 8 + length)
        except struct.error:
            raise ValueError("it is a PNG that was cut short") from None
        if crc != zlib.crc32(name + data):
            raise ValueError("it is a PNG that was damaged")
        yield name, data
        at += 12 + length
