"""The header's `sizes`: what a tool sees in place of the sizes that an example's code states.

    #     sizes: {n: [1_111_111, 1_111]}

Instrumented kernels are 10 to 100 times slower, and the reader's code should not speak of it: it says `n = 1_111_111`.
While a sanitizer runs the example, that assignment has the second value; under a profiler it has the third, or the
second where there is none.
"""

import ast
import operator
from typing import Any

from cudatut.tool import SANITIZERS

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.Pow: operator.pow,
}


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
                f"sizes has {name}: {choices!r}; give two values (the code's, a sanitizer's) or three "
                "(and a profiler's)"
            )
        written = [constant(node.value) for node in _assignments(tree, name)]
        written = [one for one in written if one is not None]
        if not written:
            raise ValueError(
                f"sizes names '{name}', but no line at the top level of a cell is `{name} = ` and a number or tuple"
            )
        like = written[0]
        values = tuple(_as(like, choice) for choice in choices)
        for one in written:
            if one != values[0] or type(one) is not type(values[0]):
                raise ValueError(f"sizes has {values[0]!r} for '{name}', but the code says {one!r}")
        found[name] = values
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
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = constant(operand)
            return -value if isinstance(value, (int, float)) else None
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            a, b = constant(left), constant(right)
            numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
            return _OPERATORS[type(op)](a, b) if numbers else None
        case ast.Tuple(elts=items) | ast.List(elts=items):
            values = [constant(item) for item in items]
            if any(value is None for value in values):
                return None
            return tuple(values) if isinstance(node, ast.Tuple) else values
    return None


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
