"""Read a kernel's parameter list from its source, so that a launch can convert and check what it is given."""

import re
from dataclasses import dataclass

# C type -> NumPy dtype name. Vector types are arrays of their element; bfloat16 travels as its 16 bits.
_SCALARS = {
    "bool": "bool",
    "char": "int8",
    "signed char": "int8",
    "unsigned char": "uint8",
    "short": "int16",
    "unsigned short": "uint16",
    "int": "int32",
    "unsigned": "uint32",
    "unsigned int": "uint32",
    "long long": "int64",
    "long long int": "int64",
    "unsigned long long": "uint64",
    "unsigned long long int": "uint64",
    "size_t": "uint64",
    "ptrdiff_t": "int64",
    "int8_t": "int8",
    "uint8_t": "uint8",
    "int16_t": "int16",
    "uint16_t": "uint16",
    "int32_t": "int32",
    "uint32_t": "uint32",
    "int64_t": "int64",
    "uint64_t": "uint64",
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "__half": "float16",
    "__nv_bfloat16": "uint16",
}
_VECTORS = {
    "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32",
    "longlong": "int64", "ulonglong": "uint64", "float": "float32", "double": "float64",
}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, its C type, whether it is a pointer, and the NumPy dtype name (None if not known)."""

    name: str
    ctype: str
    pointer: bool
    dtype: str | None


def parameters(
    source: str, kernel: str, defines: dict[str, object] | None = None
) -> list[Parameter] | None:
    """Parameters of `kernel` in CUDA C++ `source`, or None if its definition cannot be found there.

    defines: macros given to the compiler; a type that is one of them, or an alias (`using T = ...;`), is looked up
    under its value.
    """
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.S)
    found = re.search(rf"__global__[^;{{}}]*?\b{re.escape(kernel)}\s*\(", text)
    if not found:
        return None
    depth, end = 1, found.end()
    while depth and end < len(text):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    inside = text[found.end() : end - 1].strip()
    if inside in ("", "void"):
        return []
    names = {str(key): str(value) for key, value in (defines or {}).items()}
    names |= {
        alias: names.get(ctype, ctype)
        for alias, ctype in re.findall(r"\busing (\w+) = ([\w ]+?);", text)
    }
    return [_parameter(part, names) for part in _split(inside)]


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for char in text:
        depth += {"(": 1, "<": 1, "[": 1, ")": -1, ">": -1, "]": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _parameter(text: str, names: dict[str, str]) -> Parameter:
    text = text.split("=")[0]
    pointer = "*" in text or "[" in text
    words = re.sub(r"\[[^\]]*\]|[*&]", " ", text).split()
    words = [
        w
        for w in words
        if w not in ("const", "volatile", "__restrict__", "__restrict", "__grid_constant__")
    ]
    *typed, name = words
    ctype = " ".join(typed)
    ctype = names.get(ctype, ctype)
    return Parameter(name, ctype, pointer, _dtype(ctype))


def _dtype(ctype: str) -> str | None:
    if ctype in _SCALARS:
        return _SCALARS[ctype]
    vector = re.fullmatch(r"([a-z]+)[1-4]", ctype)
    return _VECTORS.get(vector.group(1)) if vector else None
