"""The header of a GGUF file, read with every length checked against the file
before anything of that length is taken: a damaged file costs an error, not time
or memory.

    header = Header(path)
    header.value("llama.block_count")           # 30
    header.tensors["token_embd.weight"]         # Tensor

The file begins with a magic number, a version, and two counts. Key-value pairs
follow, then a line for each tensor, then, aligned, the tensors' data.
"""

import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# Types of values: struct's letter, and NumPy's name.
NUMBERS = {
    0: ("B", "u1"), 1: ("b", "i1"), 2: ("H", "<u2"), 3: ("h", "<i2"),
    4: ("I", "<u4"), 5: ("i", "<i4"), 6: ("f", "<f4"), 7: ("?", "?"),
    10: ("Q", "<u8"), 11: ("q", "<i8"), 12: ("d", "<f8"),
}  # fmt: skip
STRING, LIST = 8, 9
# Types of tensors that this part reads: elements of a block, and its bytes.
BLOCKS = {
    "F32": (1, 4),
    "F16": (1, 2),
    "BF16": (1, 2),
    "Q8_0": (32, 34),
    "Q4_1": (32, 20),
}
TYPES = {0: "F32", 1: "F16", 3: "Q4_1", 8: "Q8_0", 30: "BF16"}
MOST_STRINGS = 1 << 20  # of one list; the largest vocabularies have a quarter


class Damaged(ValueError):
    """Which field of a header is wrong, and what is allowed."""


class Tensor(NamedTuple):
    """shape: outermost axis first. type: one of BLOCKS. offset, nbytes: in the
    file.
    """

    name: str
    shape: tuple[int, ...]
    type: str
    offset: int
    nbytes: int


class Header:
    """version, alignment: of the file. tensors: by name. Raises Damaged,
    OSError.
    """

    def __init__(self, path: Path):
        self._data = np.asarray(np.memmap(path, "uint8", "r"))
        self._bytes, self._at = memoryview(self._data), 0
        if bytes(self._take(4, "the magic number")) != b"GGUF":
            raise Damaged("it does not begin with GGUF")
        (self.version,) = self._numbers("I", "the version")
        if self.version not in (2, 3):
            raise Damaged(f"its version is {self.version}; 2 and 3 are known")
        tensors, pairs = self._numbers("QQ", "the counts")
        self._values: dict[str, tuple[int, int]] = {}  # type, where
        for i in range(pairs):
            self._pair(i)
        self.alignment = self.value("general.alignment", 32)
        if type(self.alignment) is not int or self.alignment not in [
            1 << n for n in range(3, 17)
        ]:
            raise Damaged(
                f"general.alignment is {self.alignment!r}; it must be a power of "
                "two from 8 to 65536"
            )
        lines = [self._line(i) for i in range(tensors)]
        begin = -(-self._at // self.alignment) * self.alignment
        self.tensors = {line.name: self._placed(line, begin) for line in lines}
        if len(self.tensors) < len(lines):
            raise Damaged("two of its tensors have the same name")
        self._apart()

    def value(self, key: str, default: Any = None) -> Any:
        """A value of the header, or the default: a number, a text, or a list.
        Raises Damaged for bytes that are no text.
        """
        if key not in self._values:
            return default
        kind, at = self._values[key]
        if kind in NUMBERS:
            return struct.unpack_from("<" + NUMBERS[kind][0], self._bytes, at)[
                0
            ]
        if kind == STRING:
            return self._text(at, key)
        inner, count = struct.unpack_from("<IQ", self._bytes, at)
        at += 12
        if inner in NUMBERS:
            return np.frombuffer(
                self._bytes, NUMBERS[inner][1], count, at
            ).tolist()
        return [self._text(where, key) for where in self._strings(at, count)]

    def count(self, key: str) -> int | None:
        """Elements of a list, which is not read; None if there is no such."""
        kind, at = self._values.get(key, (None, 0))
        if kind != LIST:
            return None
        return struct.unpack_from("<Q", self._bytes, at + 4)[0]

    def array(self, name: str) -> np.ndarray:
        """A tensor as it is stored: F32 and F16 as numbers, the others as
        bytes; rows by columns. A view of the file.
        """
        tensor = self.tensors[name]
        data = self._data[tensor.offset : tensor.offset + tensor.nbytes]
        kind = {"F32": "<f4", "F16": "<f2"}.get(tensor.type, "u1")
        return data.view(kind).reshape(*tensor.shape[:-1], -1)

    def _take(self, count: int, what: str) -> memoryview:
        """The next `count` bytes."""
        left = len(self._bytes) - self._at
        if count > left:
            raise Damaged(
                f"{what} takes {count} bytes at byte {self._at}, and {left} follow"
            )
        self._at += count
        return self._bytes[self._at - count : self._at]

    def _numbers(self, letters: str, what: str) -> tuple:
        form = "<" + letters
        return struct.unpack(form, self._take(struct.calcsize(form), what))

    def _name(self, what: str) -> str:
        (length,) = self._numbers("Q", what)
        name = self._take(length, what)
        if not 1 <= length < 256:
            raise Damaged(f"{what} has {length} bytes; 1 to 255 are allowed")
        try:
            return str(name, "utf-8")
        except UnicodeDecodeError as error:
            raise Damaged(f"{what} is no text: {error.reason}") from None

    def _pair(self, i: int) -> None:
        key = self._name(f"key {i}")
        if key in self._values:
            raise Damaged(f"the key {key!r} stands there twice")
        (kind,) = self._numbers("I", f"the type of {key!r}")
        self._values[key] = kind, self._at
        if kind in NUMBERS:
            self._numbers(NUMBERS[kind][0], repr(key))
        elif kind == STRING:
            self._take(self._numbers("Q", repr(key))[0], repr(key))
        elif kind == LIST:
            inner, count = self._numbers("IQ", repr(key))
            if inner in NUMBERS:
                each = struct.calcsize("<" + NUMBERS[inner][0])
                self._take(count * each, repr(key))
            elif inner != STRING:
                raise Damaged(
                    f"{key!r} is a list of type {inner}: of none known"
                )
            elif count > MOST_STRINGS:
                raise Damaged(
                    f"{key!r} has {count} strings; {MOST_STRINGS} are allowed"
                )
            else:
                for at in self._strings(self._at, count):
                    self._at = at + self._length(at, key)
        else:
            raise Damaged(f"{key!r} is of type {kind}, which is none")

    def _length(self, at: int, key: str) -> int:
        """Bytes of the string at `at`, with its length of 8 bytes."""
        if at + 8 <= len(self._bytes):
            found = 8 + int.from_bytes(self._bytes[at : at + 8], "little")
            if at + found <= len(self._bytes):
                return found
        raise Damaged(f"a string of {key!r} at byte {at} goes beyond the file")

    def _strings(self, at: int, count: int) -> Iterator[int]:
        """Where each of so many strings begins."""
        for _ in range(count):
            yield at
            at += 8 + int.from_bytes(self._bytes[at : at + 8], "little")

    def _text(self, at: int, key: str) -> str:
        try:
            return str(
                self._bytes[at + 8 : at + self._length(at, key)], "utf-8"
            )
        except UnicodeDecodeError as error:
            raise Damaged(
                f"{key!r} holds bytes that are no text: {error.reason}"
            ) from None

    def _line(self, i: int) -> Tensor:
        """What the header says of tensor i; offset: behind the header."""
        name = self._name(f"the name of tensor {i}")
        (axes,) = self._numbers("I", f"the axes of {name!r}")
        if not 1 <= axes <= 4:
            raise Damaged(f"{name!r} has {axes} axes; 1 to 4 are allowed")
        # Axes are counted from the innermost.
        shape = self._numbers("Q" * axes, f"the shape of {name!r}")[::-1]
        kind, offset = self._numbers("IQ", f"the place of {name!r}")
        return Tensor(name, shape, TYPES.get(kind, str(kind)), offset, 0)

    def _placed(self, line: Tensor, begin: int) -> Tensor:
        """A tensor whose place is verified; of a type that is not read it is
        not known, and nobody asks.
        """
        name, shape, kind, offset, _ = line
        if 0 in shape:
            raise Damaged(f"{name!r} has the shape {list(shape)}: no elements")
        if offset % self.alignment:
            raise Damaged(
                f"{name!r} begins at {offset}; a multiple of {self.alignment} is "
                "allowed"
            )
        if kind not in BLOCKS:
            return line
        each, size = BLOCKS[kind]
        if shape[-1] % each:
            raise Damaged(
                f"{name!r} has rows of {shape[-1]}: not blocks of {each}"
            )
        nbytes = size
        for axis in (*shape[:-1], shape[-1] // each):
            nbytes *= axis
        if begin + offset + nbytes > len(self._bytes):
            raise Damaged(
                f"{name!r} has {nbytes} bytes at {offset}, and "
                f"{max(0, len(self._bytes) - begin)} bytes of tensors are there"
            )
        return line._replace(offset=begin + offset, nbytes=nbytes)

    def _apart(self) -> None:
        """Raises Damaged if two tensors share bytes."""
        known = [t for t in self.tensors.values() if t.type in BLOCKS]
        known.sort(key=lambda tensor: tensor.offset)
        for one, other in pairwise(known):
            if one.offset + one.nbytes > other.offset:
                raise Damaged(f"{one.name!r} and {other.name!r} overlap")
