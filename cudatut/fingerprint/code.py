"""The machine code of kernels: a digest of what a GPU gets of one, for a recording to name and to be compared with.

A cubin is an ELF file. What a launch runs are the instructions of the kernel and of the functions that it calls, and what
they read and reserve: constants, initialized variables, registers, the sizes of shared and global memory. Names, line
numbers and debugging information change nothing.
"""

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass

_NOBITS = 8  # SHT_NOBITS in elf.h: a section that has a size and no bytes
_SHARED_BY_ALL = (".nv.constant3", ".nv.constant4", ".nv.global", ".rodata")
_OWN = (".nv.shared.", ".nv.local.", ".nv.constant")
# Of the attributes of a kernel: EIFMT_SVAL, EIATTR_PARAM_CBANK, EIATTR_EXTERNS. The latter two begin with, or are, numbers
# of symbols, which other kernels of the file move.
_SIZED, _PARAMETERS, _EXTERNS = 4, 0x0A, 0x0F


@dataclass(frozen=True)
class Section:
    """One section of an ELF file: `data` is empty for one that only reserves memory.

    info: for code, its symbol's number. align: of its address, in bytes.
    """

    name: str
    data: bytes
    size: int
    info: int
    align: int


def sections(cubin: bytes) -> Iterator[Section]:
    """The sections of an ELF file of 64 bits."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)  # e_shoff
    size, count, strings = struct.unpack_from("<HHH", cubin, 0x3A)  # e_shentsize, e_shnum, ...
    # sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link, sh_info, sh_addralign
    heads = [struct.unpack_from("<IIQQQQIIQ", cubin, table + i * size) for i in range(count)]
    names = heads[strings][4]
    for name, kind, _, _, start, length, _, info, align in heads:
        at = names + name
        called = cubin[at : cubin.index(b"\0", at)].decode()
        data = b"" if kind == _NOBITS else cubin[start : start + length]
        yield Section(called, data, length, info, align)


def digest(cubin: bytes, symbol: str) -> str:
    """SHA-256 of the code of one kernel. Raises KeyError where the cubin has none of this name."""
    return _digest(list(sections(cubin)), symbol)


def digests(cubin: bytes) -> dict[str, str]:
    """The digest of each kernel in a cubin, by its symbol."""
    found = list(sections(cubin))
    return {name: _digest(found, name) for name in _kernels(found)}


def _kernels(found: list[Section]) -> list[str]:
    """The symbols of the kernels: each has a bank of constants of its own, for its parameters; what they call has none."""
    bank = ".nv.constant0."
    return [one.name.removeprefix(bank) for one in found if one.name.startswith(bank)]


def _digest(found: list[Section], symbol: str) -> str:
    texts = {one.name.removeprefix(".text."): one for one in found if one.name.startswith(".text.")}
    number = texts[symbol].info & 0xFFFFFF  # its place in the table of symbols
    kernels = set(_kernels(found))
    said = [("code", texts[symbol].data, 0)]
    said += [("called", one.data, 0) for name, one in texts.items() if name not in kernels]
    for one in found:
        if one.name.startswith(_SHARED_BY_ALL):
            said.append((f"{one.name} {one.align}", one.data, one.size))
        elif one.name.endswith(f".{symbol}") and one.name.startswith(_OWN):
            said.append((f"{one.name.removesuffix(symbol)} {one.align}", one.data, one.size))
        elif one.name == f".nv.info.{symbol}":
            said += [(f"attribute {key}", value, 0) for key, value in _attributes(one.data)]
        elif one.name == ".nv.info":  # registers and stack, each with the number of its function
            for key, value in _attributes(one.data):
                if struct.unpack_from("<I", value.ljust(4, b"\0"))[0] == number:
                    said.append((f"attribute {key}", value[4:], 0))
    sha = hashlib.sha256()
    for kind, data, size in sorted(said):
        sha.update(f"{kind} {size} {len(data)}\n".encode())
        sha.update(data)
    return sha.hexdigest()


def _attributes(info: bytes) -> Iterator[tuple[int, bytes]]:
    """What a section .nv.info says: (EIATTR_..., value), without the numbers of other symbols."""
    at = 0
    while at < len(info):
        form, key, size = struct.unpack_from("<BBH", info, at)
        value, at = info[at + 2 : at + 4], at + 4
        if form == _SIZED:
            value, at = info[at : at + size], at + size
        if key == _PARAMETERS:
            value = value[4:]
        if key != _EXTERNS:
            yield key, value
