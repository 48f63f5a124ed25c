"""The header's `sizes`: what a tool sees in place of the sizes that an example's code states.

    #     sizes: {n: [1_111_111, 1_111]}

Instrumented kernels are 10 to 100 times slower, and the reader's code should not speak of it: it says `n = 1_111_111`.
While a sanitizer runs the example, that assignment has the second value; under a profiler it has the third, or the
second where there is none.
"""

import ast
from collections.abc import Iterator
from typing import Any

from cudatut.tool import size

# What arithmetic on numbers is made of, as in `(64, 1 << 25)`.
_ARITHMETIC = (
    ast.Constant, ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator, ast.Tuple, ast.Load,
)  # fmt: skip


def read(value: Any, text: str) -> dict[str, tuple]:
    """Sizes as the header states them, compared with the code below it; a YAML list in them becomes the code's tuple.

    text: the whole file. Raises ValueError saying what is wrong.
    """
    if not isinstance(value, dict):
        raise ValueError(f"sizes is {value!r}; write it like {{n: [1_111_111, 1_111]}}")
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"the code cannot be read: {error}") from error
    found = {}
    for name, choices in value.items():
        if not isinstance(choices, list) or len(choices) not in (2, 3):
            raise ValueError(
                f"sizes has {name}: {choices!r}; give two values (the code's, a sanitizer's) or three (and a profiler's)"
            )
        written = [number for _, number in _assignments(tree, name)]
        if not written:
            raise ValueError(
                f"sizes names '{name}', but no line at the top level of a cell is `{name} = ` and a number or tuple"
            )
        found[name] = _tuples(choices)
        said = found[name][0]
        for one in written:
            if one != said or type(one) is not type(said):
                raise ValueError(f"sizes has {said!r} for '{name}', but the code says {one!r}")
    return found


def applied(tree: ast.Module, sizes: dict[str, tuple]) -> ast.Module:
    """The program with the values that the tool which runs this process shall see; line numbers stay as they are."""
    for name, choices in sizes.items():
        for node, _ in _assignments(tree, name):
            node.value = ast.copy_location(ast.Constant(size(*choices)), node.value)
    return tree


def _assignments(tree: ast.Module, name: str) -> Iterator[tuple[ast.Assign, Any]]:
    """Statements `name = ...` at the top level, alone on their line, of a number or a tuple, with that value."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=target)]) if target == name:
                if (value := _constant(node.value)) is not None:
                    yield node, value


def _constant(node: ast.expr) -> Any:
    """Value of a number, a tuple of numbers, or arithmetic on numbers; None for anything else."""
    parts = list(ast.walk(node))
    numbers = (type(part.value) in (int, float) for part in parts if isinstance(part, ast.Constant))
    if not all(isinstance(part, _ARITHMETIC) for part in parts) or not all(numbers):
        return None
    return eval(compile(ast.Expression(node), "size", "eval"))


def _tuples(value: Any) -> Any:
    """A value from YAML, which knows no tuples, with tuples for its lists."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
