"""A small fuser: it writes the text of a kernel from a Python expression.

    f = Fused(lambda x, bias, r: gelu(x + bias) + r)
    f(x, bias, r, out=out)   # one kernel, which reads each array once
    print(f.text)            # the kernel

The function is called once with symbols in the place of arrays. What they are
combined with becomes an expression, and the expression becomes C. Called with
NumPy's arrays, the same function computes the reference.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import cudatut as ct


# --8<-- [start:expression]
class Expression:
    """A number that is not known yet. Python's operators make larger ones."""

    __array_ufunc__ = None  # NumPy's numbers leave the operation to us

    def __add__(self, other):
        return Node("({} + {})", (self, expression(other)))

    def __sub__(self, other):
        return Node("({} - {})", (self, expression(other)))

    def __mul__(self, other):
        return Node("({} * {})", (self, expression(other)))

    def __truediv__(self, other):
        return Node("({} / {})", (self, expression(other)))

    def __radd__(self, other):
        return expression(other) + self

    def __rsub__(self, other):
        return expression(other) - self

    def __rmul__(self, other):
        return expression(other) * self

    def __rtruediv__(self, other):
        return expression(other) / self

    def __neg__(self):
        return Node("(-{})", (self,))

    def __lt__(self, other):
        return Node("({} < {})", (self, expression(other)))

    def __gt__(self, other):
        return Node("({} > {})", (self, expression(other)))

    def __bool__(self):
        raise TypeError(
            "fuse: `if` would need the number itself: take where(condition, a, b)"
        )


@dataclass(frozen=True)
class Symbol(Expression):
    name: str


@dataclass(frozen=True)
class Constant(Expression):
    value: float


@dataclass(frozen=True)
class Node(Expression):
    """text: C with {} in the place of each argument."""

    text: str
    arguments: tuple


def expression(value: Any) -> Expression:
    if isinstance(value, Expression):
        return value
    if isinstance(value, (int, float, np.generic)) or (
        isinstance(value, np.ndarray) and not value.ndim
    ):
        return Constant(float(value))
    raise TypeError(f"fuse: {value!r} is neither a number nor an expression")


# --8<-- [end:expression]


def _function(text: str, by_numpy: Callable) -> Callable:
    """A function of expressions, or of NumPy's arrays."""

    def call(*arguments):
        if any(isinstance(one, Expression) for one in arguments):
            return Node(text, tuple(expression(one) for one in arguments))
        return by_numpy(*arguments)

    return call


_erf = np.vectorize(math.erf, otypes=["float64"])

# --8<-- [start:functions]
exp = _function("expf({})", np.exp)
log = _function("logf({})", np.log)
sqrt = _function("sqrtf({})", np.sqrt)
tanh = _function("tanhf({})", np.tanh)
erf = _function("erff({})", _erf)
absolute = _function("fabsf({})", np.abs)
maximum = _function("fmaxf({}, {})", np.fmax)
minimum = _function("fminf({}, {})", np.fmin)
where = _function("({} ? {} : {})", np.where)


def gelu(x):
    return 0.5 * x * (1.0 + erf(x * 0.7071067811865476))


def gelu_tanh(x):
    u = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    return x / (1.0 + exp(-2.0 * u))


def silu(x):
    return x / (1.0 + exp(-x))


# --8<-- [end:functions]

# With fast=True: by the special function units, off by some 1e-6 of the value
# or, erf and tanh, of 1.
FAST = {
    "expf(": "__expf(",
    "logf(": "__logf(",
    "tanhf(": "tanh_fast(",
    "erff(": "erf_fast(",
}

C_TYPES = {"float32": "float", "uint16": "__nv_bfloat16"}
BLOCK, EACH = 256, 2

# --8<-- [start:template]
TEXT = """#include "primitives/fusion/elements.cuh"
#include "primitives/fusion/gelu.cuh"

extern "C" {entry} void __launch_bounds__({block})
    fused({parameters}, {out}* out, long long n, int columns) {{
  using Index = {index};  // holds n
  const long long first =
      (long long)blockIdx.x * {per_block} + threadIdx.x * {wide};
{arrays}
#pragma unroll
  for (int e = 0; e < {each}; ++e) {{
    const long long i = first + e * {step};
    if (i >= n) break;
{loads}
  }}
#pragma unroll
  for (int e = 0; e < {each}; ++e) {{
    const long long i = first + e * {step};
    if (i >= n) break;
    Vector<{out}, {wide}> result;
#pragma unroll
    for (int k = 0; k < {wide}; ++k) {{
{body}
    }}
    *reinterpret_cast<Vector<{out}, {wide}>*>(out + i) = result;
  }}
}}
"""
# --8<-- [end:template]


def body(result: Expression, known: dict[Expression, str]) -> list[str]:
    """Lines of C, one for each operation; what occurs twice is computed once.

    known: expressions and what they are called."""
    lines: list[str] = []
    names = dict(known)

    def name_of(one: Expression) -> str:
        if isinstance(one, Constant):
            return f"{one.value!r}f" if math.isfinite(one.value) else _odd(one)
        if one not in names:
            assert isinstance(one, Node)
            text = one.text.format(*map(name_of, one.arguments))
            ctype = (
                "bool" if " < " in one.text or " > " in one.text else "float"
            )
            names[one] = f"t{len(lines)}"
            lines.append(f"const {ctype} {names[one]} = {text};")
        return names[one]

    last = f"result = {name_of(result)};"
    return [*lines, last]


def _moved(operand: Any, elements: int) -> np.uint64:
    return np.uint64(int(operand.address) + elements * operand.size)


def _faster(line: str) -> str:
    for slow, fast in FAST.items():
        line = line.replace(f" {slow}", f" {fast}")
    if " / " in line:
        before, after = line.split(" = (")
        line = f"{before} = __fdividef({after.replace(' / ', ', ')}"
    return line


def _odd(one: Constant) -> str:
    if math.isnan(one.value):
        return "__uint_as_float(0x7fffffffu)"
    return f"__uint_as_float(0x{'7' if one.value > 0 else 'f'}f800000u)"


@dataclass(eq=False)
class Fused:
    """A function of arrays that becomes one kernel.

    function: its parameters name the arrays. Each is as large as `out`, or a
    row of it (one element for each column), or a column (rows x 1), or a
    number. Computed in fp32, and rounded once. fast: with the instructions of
    the special function units, exact enough for bf16.
    """

    function: Callable
    fast: bool = False
    each: int = EACH
    block: int = BLOCK
    text: str = field(default="", init=False)
    _kernels: dict = field(default_factory=dict, init=False)

    def __post_init__(self):
        self.names = tuple(inspect.signature(self.function).parameters)
        symbols = tuple(Symbol(name) for name in self.names)
        self.result = expression(self.function(*symbols))

    def __call__(self, *arrays: Any, out: Any, stream: Any = None) -> None:
        self.launcher(*arrays, out=out)(stream)

    def launcher(self, *arrays: Any, out: Any) -> Callable:
        """Checks the arrays, compiles the kernel. Raises TypeError, ValueError."""
        if len(arrays) != len(self.names):
            raise TypeError(
                f"fuse: {len(arrays)} arrays for {', '.join(self.names)}"
            )
        take = ct.operands("fuse")
        shape = tuple(out.shape)
        columns = shape[-1] if shape else 1
        n = math.prod(shape)
        kinds, operands, over = {}, [], []
        for name, array in zip(self.names, arrays):
            if isinstance(array, (int, float)):
                kinds[name] = "number", "float"
                continue
            kind = self._kind(name, tuple(array.shape), shape)
            one = take.read(name, array, tuple(C_TYPES), most=1 << 40)
            kinds[name] = kind, C_TYPES[one.dtype]
            operands.append(one)
            if kind == "whole":
                over.append(name)
        to = take.write("out", out, tuple(C_TYPES), most=1 << 40, over=over)
        if not n:
            return lambda stream=None: None
        sizes = [one.size for one in (*operands, to)]
        wide = 16 // max(sizes)
        flat = all(kind in ("whole", "number") for kind, _ in kinds.values())
        while wide > 1 and (
            (not flat and columns % wide)
            or any(
                int(one.address) % (wide * one.size) for one in (*operands, to)
            )
        ):
            wide //= 2
        # What is left at the end is less than a vector: a launch of its own.
        whole = n // wide * wide
        columns = 1 if flat else columns
        runs = []
        for begin, end, width in ((0, whole, wide), (whole, n, 1)):
            if begin == end:
                continue
            kernel = self._kernel(kinds, C_TYPES[to.dtype], width, n)
            rest = iter(operands)
            values = [
                array if kind == "number" else _moved(next(rest), begin)
                for array, (kind, _) in zip(arrays, kinds.values())
            ]
            launch = partial(
                kernel,
                *values,
                _moved(to, begin),
                end - begin,
                columns,
                grid=ct.cdiv(end - begin, width * self.each * self.block),
                block=self.block,
            )
            runs.append(launch)

        def run(stream=None):
            for launch in runs:
                launch(stream=stream)

        run.operands = *operands, to  # an address keeps no array alive
        return run

    @staticmethod
    def _kind(name: str, own: tuple, shape: tuple) -> str:
        if own == shape:
            return "whole"
        if own == shape[-1:] or own == (1, shape[-1]):
            return "row"
        if len(shape) == 2 and own == (shape[0], 1):
            return "column"
        raise ValueError(
            f"fuse: {name} is {list(own)}, out {list(shape)}: an array is as large, a row or a column of it"
        )

    def _kernel(self, kinds: dict, out: str, wide: int, n: int) -> ct.Kernel:
        text = self.write(kinds, out, wide, n)
        self.text = self.text if wide == 1 and self.text else text
        if text not in self._kernels:
            self._kernels[text] = ct.Kernel(text, "fused")
        return self._kernels[text]

    def write(self, kinds: dict, out: str, wide: int, n: int) -> str:
        """The kernel's text. kinds: of each array whether it is a whole one, a
        row, a column or a number, and the type of its elements. n: elements of
        the whole ones."""
        place = {
            "whole": "i",
            "row": "(Index)i % (Index)columns",
            "column": "(Index)i / (Index)columns",
        }
        parameters, arrays, loads, known = [], [], [], {}
        for name, (kind, ctype) in kinds.items():
            if kind == "number":
                parameters.append(f"float {name}")
                known[Symbol(name)] = name
                continue
            parameters.append(f"const {ctype}* {name}")
            at = "" if kind == "column" else ".at[k]"
            vector = ctype if kind == "column" else f"Vector<{ctype}, {wide}>"
            arrays.append(f"  {vector} {name}_v[{self.each}];")
            loads.append(
                f"    {name}_v[e] = *reinterpret_cast<const {vector}*>({name} + {place[kind]});"
            )
            known[Symbol(name)] = f"to_float({name}_v[e]{at})"
        first = [
            f"const float {one.name}_k = {text};"
            for one, text in known.items()
            if text.startswith("to_float")
        ]
        names = {
            one: f"{one.name}_k" if text.startswith("to_float") else text
            for one, text in known.items()
        }
        *lines, last = body(self.result, names)
        if self.fast:
            lines = [_faster(line) for line in lines]
        last = last.replace("result = ", f"result.at[k] = rounded<{out}>(")
        lines = [*first, *lines, last.replace(";", ");")]
        return TEXT.format(
            entry="__global__",
            index="unsigned" if n < 1 << 32 else "long long",
            block=self.block,
            each=self.each,
            wide=wide,
            step=wide * self.block,
            per_block=wide * self.block * self.each,
            parameters=", ".join(parameters),
            out=out,
            arrays="\n".join(arrays),
            loads="\n".join(loads),
            body="\n".join("      " + line for line in lines),
        )
