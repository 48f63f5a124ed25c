"""examples/primitives/fusion without a GPU: the kernels that the fuser writes, and how wide accesses may be."""

import math
import random
import re
from types import SimpleNamespace

import numpy as np
import pytest

from cudatut.book.primitives.fusion import fuse, launch

WHOLE = "whole", "float"


def lines_of(function, **how):
    """The lines of C in the innermost loop of the function's kernel."""
    made = fuse.Fused(function, **how)
    kinds = dict.fromkeys(made.names, WHOLE)
    text = made.write(kinds, "float", 4, 1000)
    body = text.split("for (int k = 0; k < 4; ++k) {")[1].split("}")[0]
    return [line.strip() for line in body.strip().splitlines()]


def computed(lines, **values):
    """What the lines compute, each with fp64."""
    space = {
        "expf": math.exp, "logf": math.log, "sqrtf": math.sqrt, "tanhf": math.tanh, "erff": math.erf,
        "fabsf": abs, "fmaxf": max, "fminf": min,
    }  # fmt: skip
    space |= {f"{name}_k": value for name, value in values.items()}
    for line in lines:
        if "to_float" in line:
            continue
        if found := re.fullmatch(r"result\.at\[k\] = rounded<float>\((.*)\);", line):
            return eval(found[1], space)
        name, text = re.fullmatch(r"const (?:float|bool) (\w+) = (.*);", line).groups()
        text = re.sub(r"(?<=\d)f\b", "", text)
        if choice := re.fullmatch(r"\((\w+) \? (.*) : (.*)\)", text):
            text = f"({choice[2]} if {choice[1]} else {choice[3]})"
        space[name] = eval(text, space)
    raise AssertionError("no result")


def drawn(chance, depth):
    """A random expression of x and y, as text for both."""
    if not depth:
        return chance.choice(["x", "y", f"{chance.uniform(-2, 2):.3f}"])
    a, b, c = (drawn(chance, depth - 1) for _ in range(3))
    form = chance.choice(
        ["({a} + {b})", "({a} - {b})", "({a} * {b})", "(-{a})", "tanh({a})", "erf({a})", "absolute({a})",
         "maximum({a}, {b})", "minimum({a}, {b})", "where({a} < {b}, {b}, {c})", "where({a} > {b}, {b}, {c})",
         "({a} / (1.5 + absolute({b})))", "silu({a})"]
    )  # fmt: skip
    return form.format(a=a, b=b, c=c)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_written_computes_what_the_function_computes(seed):
    chance = random.Random(seed)
    text = f"0.0 * x + 0.0 * y + {drawn(chance, 3)}"
    function = eval(f"lambda x, y: {text}", vars(fuse) | {})
    lines = lines_of(function)
    for _ in range(5):
        x, y = chance.uniform(-3, 3), chance.uniform(-3, 3)
        wanted = float(function(np.float64(x), np.float64(y)))
        assert computed(lines, x=x, y=y) == pytest.approx(wanted, rel=1e-12, abs=1e-12), text


def test_what_occurs_twice_is_computed_once():
    lines = lines_of(lambda x: (x + 1.0) * (x + 1.0) + fuse.exp(x + 1.0))
    assert sum("+ 1.0f" in line for line in lines) == 1
    assert sum("expf" in line for line in lines) == 1


def test_fast_functions_take_the_place_of_exact_ones_and_of_them_alone():
    def function(x):
        return fuse.erf(x) / (fuse.exp(x) + fuse.tanh(x)) + fuse.log(fuse.sqrt(x))

    exact, fast = " ".join(lines_of(function)), " ".join(lines_of(function, fast=True))
    for one in ("erff(", "expf(", "tanhf(", "logf("):
        assert f" {one}" in exact and f" {one}" not in fast
    for one in ("erf_fast(", "__expf(", "tanh_fast(", "__logf(", "__fdividef("):
        assert one in fast and one not in exact
    assert "sqrtf(" in fast and " / " not in fast


def test_constants_that_are_no_finite_number():
    lines = lines_of(lambda x: fuse.minimum(x, math.inf) + fuse.maximum(x, -math.inf))
    assert "__uint_as_float(0x7f800000u)" in " ".join(lines)
    assert "__uint_as_float(0xff800000u)" in " ".join(lines)
    assert "0x7fffffffu" in " ".join(lines_of(lambda x: x + math.nan))


def test_python_s_if_and_what_is_no_number_are_refused():
    with pytest.raises(TypeError, match=r"where\(condition"):
        fuse.Fused(lambda x: x if x > 0 else -x)
    with pytest.raises(TypeError, match="neither a number"):
        fuse.Fused(lambda x: x + "1")


def test_rows_columns_and_other_shapes():
    kind = fuse.Fused._kind
    assert [kind("y", own, (3, 5)) for own in ((3, 5), (5,), (1, 5), (3, 1))] == ["whole", "row", "row", "column"]  # fmt: skip
    for own in ((3,), (5, 3), (1, 3), (15,), ()):
        with pytest.raises(ValueError, match="as large, a row or a column"):
            kind("y", own, (3, 5))


def test_each_array_is_read_at_its_own_place():
    made = fuse.Fused(lambda whole, row, column, number: (whole + row) * column + number)
    kinds = {
        "whole": ("whole", "__nv_bfloat16"), "row": ("row", "float"), "column": ("column", "__nv_bfloat16"),
        "number": ("number", "float"),
    }  # fmt: skip
    lines = [line.strip() for line in made.write(kinds, "float", 4, 1000).splitlines()]
    for name, ctype, place in (
        ("whole", "Vector<__nv_bfloat16, 4>", "i"),
        ("row", "Vector<float, 4>", "(Index)i % (Index)columns"),
        ("column", "__nv_bfloat16", "(Index)i / (Index)columns"),
    ):
        assert f"{ctype} {name}_v[2];" in lines
        load = f"{name}_v[e] = *reinterpret_cast<const {ctype}*>({name} + {place});"
        assert load in lines
        at = "" if name == "column" else ".at[k]"
        assert f"const float {name}_k = to_float({name}_v[e]{at});" in lines
    parameters = re.search(r"fused\((.*?)\) \{", " ".join(lines))[1]
    assert parameters.split(", ") == [
        "const __nv_bfloat16* whole", "const float* row", "const __nv_bfloat16* column", "float number", "float* out",
        "long long n", "int columns",
    ]  # fmt: skip
    assert "result.at[k] = rounded<float>(t2);" in lines


def test_indices_hold_the_length():
    made = fuse.Fused(lambda x, b: x + b)
    kinds = {"x": WHOLE, "b": ("row", "float")}
    assert "using Index = unsigned;" in made.write(kinds, "float", 4, (1 << 32) - 1)
    assert "using Index = long long;" in made.write(kinds, "float", 4, 1 << 32)


def operand(address, size):
    return SimpleNamespace(address=np.uint64(address), size=size)


@pytest.mark.parametrize(
    "addresses, size, columns, wide",
    [
        ([0, 16], 4, 0, 4), ([0, 8], 4, 0, 2), ([4, 16], 4, 0, 1), ([0, 32], 2, 0, 8), ([0, 2], 2, 0, 1),
        ([0, 16], 4, 6, 2), ([0, 16], 4, 7, 1), ([0, 16], 2, 12, 4), ([0, 16], 2, 16, 8),
    ],
)  # fmt: skip
def test_accesses_are_as_wide_as_all_arrays_allow(addresses, size, columns, wide):
    operands = [operand(at, size) for at in addresses]
    assert launch.elements_per_access(*operands, columns=columns) == wide
