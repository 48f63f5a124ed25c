"""Read a kernel's parameter list from its source, so that a launch can convert and check what it is given."""

import re
from dataclasses import dataclass

# C type -> NumPy dtype name; bfloat16 travels as its 16 bits, FP8 as its 8.
_SCALARS = {
    "bool": "bool", "char": "int8", "signed char": "int8", "unsigned char": "uint8", "short": "int16",
    "unsigned short": "uint16", "int": "int32", "unsigned": "uint32", "unsigned int": "uint32",
    "long long": "int64", "long long int": "int64", "unsigned long long": "uint64",
    "unsigned long long int": "uint64", "size_t": "uint64", "ptrdiff_t": "int64", "float": "float32",
    "double": "float64", "half": "float16", "__half": "float16", "__nv_bfloat16": "uint16",
    "__nv_fp8_e4m3": "uint8", "__nv_fp8_e5m2": "uint8",
    **{f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
# Vector types are arrays of their element.
_VECTORS = {
    "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32",
    "longlong": "int64", "ulonglong": "uint64", "float": "float32", "double": "float64",
}  # fmt: skip
# Words that stand between a parameter's type and its value, and say nothing about either.
_QUALIFIERS = ("const", "volatile", "__restrict__", "__restrict", "__grid_constant__")


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, its C type, whether it is a pointer, and the NumPy dtype name.

    dtype: that of a number or of what a pointer points to; None if not known, or for a struct by value.
    """

    name: str
    ctype: str
    pointer: bool
    dtype: str | None


def split_name(kernel: str) -> tuple[str, list[str] | None]:
    """'gemm<128, float>' as ('gemm', ['128', 'float']); the arguments are None for a plain name, [] for 'gemm<>'."""
    base, bracket, inside = kernel.partition("<")
    if not bracket:
        return kernel.strip(), None
    return base.strip(), _split(inside)


def parameters(
    source: str, kernel: str, defines: dict[str, object] | None = None
) -> list[Parameter] | None:
    """Parameters of `kernel` in CUDA C++ `source`, or None if its definition cannot be found there.

    kernel: a plain name, or a template with its arguments ('scale<float, 4>'): a type parameter counts as its value.
    defines: macros given to the compiler; a type that is one of them, or an alias (`using T = ...;`), is looked up
    under its value.
    """
    text, (base, given) = _plain(source), split_name(kernel)
    found = _definition(text, base)
    if not found:
        return None
    names = {str(key): str(value) for key, value in (defines or {}).items()}
    for alias, ctype in re.findall(r"\busing (\w+) = ([\w ]+?);", text):
        names[alias] = names.get(ctype, ctype)
    for index, parameter in enumerate(_split(_template_head(text, found.start()) or "")):
        declared, _, default = parameter.partition("=")
        value = given[index] if given and index < len(given) else default.strip()
        if value:  # a macro, or one of the parameters before, counts as its own
            names[re.findall(r"\w+", declared)[-1]] = names.get(value, value)
    return [_parameter(part, names) for part in _split(text[found.end() :]) if part != "void"]


def kernels(source: str) -> list[str]:
    """The kernels that a source defines, as written: 'copy', and 'gemm<int BM, bool fast = true>' for a template."""
    text, found = _plain(source), set()
    for start in re.finditer(r"\b__global__\b[^;{}(]*?(\w+)\s*\(", text):
        head = _template_head(text, start.start())
        if head != "":  # `template <>` specializes a template that is listed already
            found.add(start[1] if head is None else f"{start[1]}<{' '.join(head.split())}>")
    return sorted(found)


def _plain(source: str) -> str:
    """Without comments, and without what looks like a call in front of a name: __launch_bounds__(256) and the like."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.S)
    return re.sub(r"\b(?:__\w+__|decltype)\s*\((?:[^()]|\([^()]*\))*\)", " ", text)


def _definition(text: str, base: str) -> re.Match | None:
    """From `__global__` to the parenthesis that opens the parameters of a kernel; `a::k` is looked for as `k`."""
    name = re.escape(base.rpartition("::")[2])
    return re.search(rf"__global__[^;{{}}]*?\b{name}\s*\(", text)


def _template_head(text: str, end: int) -> str | None:
    """What stands in `template <...>` right before a definition that starts at `end`; None without a template."""
    # The last `template` that no body, statement or other definition separates from `end`.
    found = re.search(r"\btemplate\s*<((?:(?!\btemplate\b|[;{}]).)*)>[\w\s]*$", text[:end], re.S)
    return found and found[1].strip()


def _split(text: str) -> list[str]:
    """What commas separate outside brackets, up to the bracket that closes one which `text` does not open."""
    parts, angles, others = [""], 0, 0
    for char in text:
        others += {"(": 1, "[": 1, ")": -1, "]": -1}.get(char, 0)
        if not others:  # within parentheses < and > may compare
            angles += {"<": 1, ">": -1}.get(char, 0)
        if angles < 0 or others < 0:
            break
        if char == "," and angles == others == 0:
            parts.append("")
        else:
            parts[-1] += char
    parts = [part.strip() for part in parts]
    return parts if parts != [""] else []


def _parameter(text: str, names: dict[str, str]) -> Parameter:
    text = text.split("=")[0]
    pointer = "*" in text or "[" in text
    *typed, name = _type_words(re.sub(r"\[[^\]]*\]", " ", text))
    ctype = " ".join(typed)
    if ctype in names:
        value = names[ctype]
        pointer, ctype = pointer or "*" in value, " ".join(_type_words(value))
    if not pointer and _vector(ctype):
        return Parameter(name, ctype, False, None)  # several numbers: passed as a struct is
    return Parameter(name, ctype, pointer, _SCALARS.get(ctype) or _vector(ctype))


def _type_words(text: str) -> list[str]:
    return [word for word in re.sub(r"[*&]", " ", text).split() if word not in _QUALIFIERS]


def _vector(ctype: str) -> str | None:
    """The dtype of the elements of float4, int2 and so on; None for another type."""
    vector = re.fullmatch(r"([a-z]+)[1-4]", ctype)
    return _VECTORS.get(vector.group(1)) if vector else None
