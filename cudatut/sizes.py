"""The header's `sizes`: what a tool sees in place of the sizes that an example's code states.

    #     sizes: {n: [1_111_111, 1_111]}

Instrumented kernels are 10 to 100 times slower, and the reader's code should not speak of it: it says `n = 1_111_111`.
While a sanitizer runs the example, that assignment has the second value; under a profiler it has the third, or the
second where there is none.
"""

import ast
from typing import Any

from cudatut.tool import SANITIZERS

# What arithmetic on numbers is made of, as in `(64, 1 << 25)`.
_ARITHMETIC = (
    ast.Constant, ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator, ast.Tuple, ast.List, ast.Load,
)  # fmt: skip


def read(value: Any, text: str) -> dict[str, tuple]:
    """Sizes as the header states them, compared with the code below it; a YAML list in it becomes what the code has.

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
        written = [constant(node.value) for node in _assignments(tree, name)]
        written = [one for one in written if one is not None]
        if not written:
            raise ValueError(
                f"sizes names '{name}', but no line at the top level of a cell is `{name} = ` and a number or tuple"
            )
        found[name] = tuple(_as(written[0], choice) for choice in choices)
        said = found[name][0]
        for one in written:
            if one != said or type(one) is not type(said):
                raise ValueError(f"sizes has {said!r} for '{name}', but the code says {one!r}")
    return found


def applied(tree: ast.Module, sizes: dict[str, tuple], tool: str | None) -> ast.Module:
    """The program with the values that `tool` shall see; line numbers stay as they are."""
    for name, (full, *smaller) in sizes.items():
        chosen = full if not tool else smaller[0] if tool in SANITIZERS else smaller[-1]
        for node in _assignments(tree, name):
            if constant(node.value) is not None:
                new = ast.parse(repr(chosen), mode="eval").body
                # All of it in one place: an error in the line is then still shown where it is.
                for part in ast.walk(new):
                    ast.copy_location(part, node.value)
                node.value = new
    return tree


def constant(node: ast.expr) -> Any:
    """Value of a number, a tuple or list of numbers, or arithmetic on numbers; None for anything else."""
    parts = list(ast.walk(node))
    numbers = (type(part.value) in (int, float) for part in parts if isinstance(part, ast.Constant))
    if not all(isinstance(part, _ARITHMETIC) for part in parts) or not all(numbers):
        return None
    return eval(compile(ast.Expression(node), "size", "eval"))


def _assignments(tree: ast.Module, name: str) -> list[ast.Assign]:
    """Statements `name = ...` at the top level, alone on their line."""
    return [
        node
        for node in tree.body
        if isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == name
    ]


def _as(like: Any, value: Any) -> Any:
    """`value` from YAML, which knows no tuples, with tuples where `like` has them."""
    if not isinstance(value, list):
        return value
    inner = like[0] if isinstance(like, (tuple, list)) and like else ()
    items = [_as(inner, item) for item in value]
    return items if isinstance(like, list) else tuple(items)
