"""What the check of an exercise compares: does it look at anything that the reader wrote?

By names alone, so this errs on the side of 'yes': what is computed from a name of the stub, by a function of the givens or in
the check, and what is handed to a call beside it (an output array) may hold the reader's work.
"""

import ast
from collections.abc import Iterator

_BLOCKS = (ast.For, ast.While, ast.If, ast.With, ast.Try)


def bound(code: str) -> set[str]:
    """Names that code defines or fills at its top level, its blocks included; those of modules are not among them."""
    return {name for node in _statements(ast.parse(code).body) for name in _targets(node)}


def compares(given: str, stub: str, check: str) -> bool:
    """Whether a comparison of the check may depend on what the stub defines.

    A comparison is a call of `ct.check`, an `assert`, or a call of a function of the givens that holds one of these.
    """
    before, after = ast.parse(given).body, ast.parse(check).body
    statements = [*_statements(before), *_statements(after)]
    modules = {name for node in statements for name in _imported(node)}
    own = {node.name: node for node in statements if isinstance(node, ast.FunctionDef)}
    comparing = {name for name, node in own.items() if any(map(_compares_itself, ast.walk(node)))}
    mine, size = bound(stub), 0
    while size != len(mine):  # until nothing more comes from the reader's names
        size = len(mine)
        for node in statements:
            if names := _names(node) - modules:
                if isinstance(node, ast.FunctionDef):
                    mine |= {node.name} if names & mine else set()
                elif names & mine:
                    mine |= names | _targets(node)
    for node in after:
        for part in ast.walk(node):
            called = isinstance(part, ast.Call) and getattr(part.func, "id", None) in comparing
            if (called or _compares_itself(part)) and (_names(part) - modules) & mine:
                return True
    return False


def _compares_itself(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "check" and getattr(node.func.value, "id", None) == "ct"
    return isinstance(node, ast.Assert)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements in order, those inside blocks as well; a function is one of them, as a whole."""
    for node in body:
        yield node
        if isinstance(node, _BLOCKS):
            inner = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.stmt)]
            inner += [one for part in getattr(node, "handlers", []) for one in part.body]
            yield from _statements(inner)


def _head(node: ast.stmt) -> list[ast.AST]:
    """The parts of a statement that are none of the statements inside its block."""
    if not isinstance(node, _BLOCKS):
        return [node]
    return [part for part in ast.iter_child_nodes(node) if not isinstance(part, ast.stmt)]


def _names(node: ast.AST) -> set[str]:
    parts = _head(node) if isinstance(node, ast.stmt) else [node]
    found = {one for part in parts for one in ast.walk(part)}
    return {one.id for one in found if isinstance(one, ast.Name)}


def _targets(node: ast.stmt) -> set[str]:
    """Names that a statement defines or fills."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    parts = (one for part in _head(node) for one in ast.walk(part))
    # Of `out[i] = ...` the element is what is stored: the name of the array is inside.
    stored = [one for one in parts if isinstance(getattr(one, "ctx", None), ast.Store)]
    return {one.id for target in stored for one in ast.walk(target) if isinstance(one, ast.Name)}


def _imported(node: ast.stmt) -> set[str]:
    if not isinstance(node, (ast.Import, ast.ImportFrom)):
        return set()
    return {(one.asname or one.name).partition(".")[0] for one in node.names}
