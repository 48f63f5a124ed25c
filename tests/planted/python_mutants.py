"""Single faults in Python, drawn by a seed: a comparison, constant, operator or statement is another, or gone.

Families, of which each is drawn as often as the others, as far as there are places:

    comparison   < is <=, == is !=, `in` is `not in` ...
    constant     a number is one more, one less or doubled; True is False
    operator     + is -, * is /, `and` is `or`, a `not` is gone
    statement    a call or an assignment is gone
    raise        an error is not raised; what a `return` gives is None
    arguments    two of a call stand in each other's place; two keys of a dictionary have each other's value
    extreme      min is max, first is last
"""

import ast
import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FAMILIES = ("comparison", "constant", "operator", "statement", "raise", "arguments", "extreme")


@dataclass(frozen=True)
class Mutant:
    """`old` at the place `at` (in characters) of a file, relative to the checkout, is `new`.

    function: the first line of the function that it lies in; 0: of none, so it runs when the module is imported. source: the
    line of the text in which it begins.
    """

    file: str
    at: int
    old: str
    new: str
    family: str
    line: int
    function: int
    source: str = ""

    @property
    def name(self) -> str:
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.file}:{self.line} {self.family}: `{old}` -> `{new}` in `{self.source}`"

    def applied(self, text: str) -> str:
        """The text with the fault. Raises ValueError where it is another text."""
        if text[self.at : self.at + len(self.old)] != self.old:
            raise ValueError(f"{self.file} has changed since this fault was drawn: draw again")
        return text[: self.at] + self.new + text[self.at + len(self.old) :]

    def facts(self) -> dict:
        return asdict(self)


_COMPARED = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}  # fmt: skip
_COMPUTED = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "*"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"), ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"), ast.Pow: ("**", "*"),
}  # fmt: skip
_EXTREMES = {"min": "max", "max": "min", "any": "all", "all": "any", "lower": "upper", "floor": "ceil"}  # fmt: skip
_EXTREMES |= {"startswith": "endswith", "endswith": "startswith", "partition": "rpartition", "rpartition": "partition"}  # fmt: skip


class _Finder(ast.NodeVisitor):
    """Yields (first character, old, new, family, line, function) of all faults of a text."""

    def __init__(self, text: str):
        self.text = text
        self.found: list[tuple[int, str, str, str, int, int]] = []
        self.starts = [0]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.lines = text.splitlines()
        self.function = 0

    def place(self, line: int, column: int) -> int:
        """In characters; `ast` counts columns in bytes."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: Any) -> tuple[int, int]:
        return (
            self.place(node.lineno, node.col_offset),
            self.place(node.end_lineno, node.end_col_offset),
        )

    def put(self, start: int, end: int, new: str, family: str) -> None:
        line = self.text.count("\n", 0, start) + 1
        self.found.append((start, self.text[start:end], new, family, line, self.function))

    def between(self, left: ast.AST, right: ast.AST, old: str, new: str, family: str) -> None:
        """Replace the operator between two operands."""
        start, end = self.span(left)[1], self.span(right)[0]
        words = re.escape(old).replace(r"\ ", r"\s+")
        pattern = rf"\b{words}\b" if old[0].isalpha() else words
        if found := re.search(pattern, self.text[start:end]):
            self.put(start + found.start(), start + found.end(), new, family)

    # --- what is left out

    def visit_FunctionDef(self, node):
        outer, self.function = self.function, node.lineno
        if node.decorator_list:
            self.function = min(one.lineno for one in node.decorator_list)
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        for one in node.body:
            self.visit(one)
        self.function = outer

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        for one in node.body:
            self.visit(one)

    def visit_AnnAssign(self, node):
        if node.value:
            self.visit(node.value)

    def visit_JoinedStr(self, node):
        pass  # Python 3.11 does not tell where its parts are

    def visit_Import(self, node):
        pass

    visit_ImportFrom = visit_Import

    # --- faults

    def visit_Compare(self, node):
        left = node.left
        for op, right in zip(node.ops, node.comparators):
            old, new = _COMPARED[type(op)]
            self.between(left, right, old, new, "comparison")
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node):
        if type(node.op) in _COMPUTED and not isinstance(node.left, ast.Constant | ast.JoinedStr):
            self.between(node.left, node.right, *_COMPUTED[type(node.op)], "operator")
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:]):
            self.between(left, right, old, new, "operator")
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            start, inner = self.span(node)[0], self.span(node.operand)[0]
            self.put(start, inner, "", "operator")
        self.generic_visit(node)

    def visit_Constant(self, node):
        start, end = self.span(node)
        if isinstance(node.value, bool):
            self.put(start, end, repr(not node.value), "constant")
        elif isinstance(node.value, int):
            for new in (node.value + 1, node.value - 1):
                self.put(start, end, repr(new), "constant")
        elif isinstance(node.value, float):
            self.put(start, end, repr(2 * node.value or 1.0), "constant")

    def visit_Subscript(self, node):
        self.generic_visit(node)
        if isinstance(node.slice, ast.UnaryOp) and isinstance(node.slice.operand, ast.Constant):
            self.put(*self.span(node.slice), "0", "extreme")  # the last is the first

    def visit_Call(self, node):
        named = (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        if named in _EXTREMES:
            end = self.span(node.func)[1]
            self.put(end - len(named), end, _EXTREMES[named], "extreme")
        plain = [one for one in node.args if not isinstance(one, ast.Starred)]
        for left, right in itertools.pairwise(plain):
            (a, b), (c, d) = self.span(left), self.span(right)
            if self.text[a:b] != self.text[c:d]:
                new = self.text[c:d] + self.text[b:c] + self.text[a:b]
                self.put(a, d, new, "arguments")
        self.generic_visit(node)

    def visit_Dict(self, node):
        both = list(zip(node.keys, node.values))
        for (key, value), (other, at) in itertools.pairwise(both):
            if isinstance(key, ast.Constant) and isinstance(other, ast.Constant):
                (a, b), (c, d) = self.span(value), self.span(at)
                if self.text[a:b] != self.text[c:d]:
                    new = self.text[c:d] + self.text[b:c] + self.text[a:b]
                    self.put(a, d, new, "arguments")
        self.generic_visit(node)

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node.value, ast.Call):
            self.put(*self.span(node), "pass", "statement")
        self.generic_visit(node)

    def visit_Assign(self, node):
        target = node.targets[0]
        if isinstance(target, ast.Attribute | ast.Subscript) and self.function:
            self.put(*self.span(node), "pass", "statement")
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        self.put(*self.span(node), "pass", "statement")
        self.generic_visit(node)

    def visit_Raise(self, node):
        self.put(*self.span(node), "pass", "raise")
        # What an error says may be anything; when it is raised may not.

    def visit_Return(self, node):
        if node.value and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            start, end = self.span(node.value)
            self.put(start, end, "None", "raise")
        self.generic_visit(node)


def possible(file: str, text: str) -> list[Mutant]:
    """All faults of a file, each of which Python can parse."""
    finder = _Finder(text)
    finder.visit(ast.parse(text))
    lines = text.splitlines()
    return [
        Mutant(file, at, old, new, family, line, function, lines[line - 1].strip())
        for at, old, new, family, line, function in finder.found
    ]


def drawn(texts: dict[str, str], seed: int) -> Iterator[Mutant]:
    """Faults without end of repetition: the families take turns; no line twice in a family."""
    draw = random.Random(seed)
    left: dict[str, list[Mutant]] = {family: [] for family in FAMILIES}
    for file in sorted(texts):
        for one in possible(file, texts[file]):
            left[one.family].append(one)
    for some in left.values():
        draw.shuffle(some)
    seen = set()
    while any(left.values()):
        for family in FAMILIES:
            while left[family]:
                one = left[family].pop()
                if (one.file, one.line, family) in seen:
                    continue
                seen.add((one.file, one.line, family))
                try:
                    compile(one.applied(texts[one.file]), one.file, "exec")
                except SyntaxError:
                    continue
                yield one
                break


def package_files(root: Path) -> dict[str, str]:
    found = sorted((root / "cudatut").rglob("*.py"))
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in found}
