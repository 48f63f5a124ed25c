"""Kernels that are templates: make the compiler emit one instance, and find it in what it compiled.

A template has no code of its own. `ct.Kernel("gemm.cu", "gemm<128, float>")` adds a line to the source that asks for
that instance, and looks in the compiled code for the name that the compiler gave it:

    template __global__ decltype(gemm<128, float>) gemm<128, float>;        ->  _Z4gemmILi128EfEvPKT0_i
"""

import re
import struct

from cudatut import words
from cudatut.errors import KernelCompileError
from cudatut.gpu.signature import kernels, split_name

_say = words.section("instances")


def normal(name: str) -> str:
    """A kernel's name with a blank after each comma of its template arguments and nowhere else around them."""
    base, arguments = split_name(name)
    return base if arguments is None else f"{base}<{', '.join(arguments)}>"


def instantiation(name: str) -> str:
    """The line that makes the compiler emit an instance. Its parameters need not be repeated: decltype knows them."""
    return f"template __global__ decltype({normal(name)}) {normal(name)};"


def assemble(source: str, name: str) -> str:
    """The source that is compiled for kernel `name`: as it is, or for a template with the instance asked for."""
    if split_name(name)[1] is None:
        return source
    return f"{source.rstrip()}\n{instantiation(name)}\n"


def wrapped(source: str, name: str) -> bool:
    """Whether to wrap a source in extern "C" { }: only if nothing in it is, and never around a template."""
    if split_name(name)[1] is not None or 'extern "C"' in source:
        return False
    return re.search(r"^\s*template\s*<", source, flags=re.M) is None


def declared(source: str) -> list[str]:
    """The instances that a `.cu` file names itself, on its `@rung` line and on lines `// @instance gemm<128, float>`.

    They are what the tests compile, so that a template that nobody launches yet cannot rot.
    """
    rungs = re.findall(r"^// @rung (?:.*\s)?kernel=(\S*<\S*>)", source, flags=re.M)
    lines = re.findall(r"^// @instance (\S.*?)\s*$", source, flags=re.M)
    return list(dict.fromkeys(normal(name) for name in (*rungs, *lines)))


def kernel_symbols(cubin: bytes) -> list[str]:
    """The names of the functions in compiled code: those of its ELF sections `.text.<name>`."""
    return [name.removeprefix(".text.") for name in _sections(cubin) if name.startswith(".text.")]


def code_of(cubin: bytes, symbol: str) -> bytes:
    """The instructions of one function. Raises KeyError naming a function that is not there."""
    start, size = _sections(cubin)[f".text.{symbol}"]
    return cubin[start : start + size]


def _sections(cubin: bytes) -> dict[str, tuple[int, int]]:
    """Where each section of an ELF file starts, and its size."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)  # e_shoff
    size, count, strings = struct.unpack_from("<HHH", cubin, 0x3A)  # e_shentsize, e_shnum, ...
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]
    names = headers[strings][4]
    found = {}
    for header in headers:
        at = names + header[0]
        found[cubin[at : cubin.index(b"\0", at)].decode()] = header[4], header[5]
    return found


def find_symbol(cubin: bytes, source: str, name: str, label: str) -> str:
    """The name in compiled code of kernel `name`: itself, or the mangled name of a template's instance.

    Raises KernelCompileError where there is none, or more than one instance.
    """
    symbols = kernel_symbols(cubin)
    base, arguments = split_name(name)
    if arguments is None:
        if name in symbols:
            return name
        names = kernels(source)
        raise KernelCompileError(_say("no kernel", label=label, name=name, names=names))
    # The beginning of a mangled name, up to the template's arguments.
    parts = base.split("::")
    encoded = "".join(f"{len(part)}{part}" for part in parts)
    begin = re.compile(f"_Z{'N' if len(parts) > 1 else 'L?'}{encoded}I")
    found = [symbol for symbol in symbols if begin.match(symbol)]
    if len(found) == 1:
        return found[0]
    raise KernelCompileError(_say("not clear", label=label, found=found or symbols, name=name))
