"""Files that were moved or renamed: which is which now, and what a source means apart from where things lie.

What moves changes the words by which others name it: an `#include`, an `import`, a path in a string. So two sources mean
the same when they do once each such name is replaced by the file that it names, called by its place of today.
"""

import ast
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from cudatut import catalog
from cudatut.fingerprint import meaning
from cudatut.restamp.trees import Tree

_INCLUDE = re.compile(r'^([ \t]*#[ \t]*include[ \t]*)"([^"\n]+)"', re.M)
# A file of the examples that a program in a string names.
_QUOTED = re.compile(r"""(["'])(\w[\w./-]*\.\w+)\1""")
# The names under which the examples are a package.
_PACKAGES = ("cudatut.book.", "cudatut.examples.")


@dataclass(frozen=True)
class Placed:
    """A source with files called by their places of today: the hash of what it means, None where only its text can tell,
    and the files that it names.
    """

    meaning: str | None
    names: frozenset[str] = frozenset()


def found(then: Tree, now: Tree, gone: Collection[str]) -> dict[str, str]:
    """For each of the sources that are gone where it is now, if one of the new files can be it.

    As moved.yml says, else by its text, its meaning or its name. What words alone have found must still be compared: `placed`
    does. Raises CudatutError for a moved.yml that is no list of names.
    """
    if not gone:
        return {}
    listed = catalog.moves_in(now[catalog.MOVED].decode()) if catalog.MOVED in now else {}
    moved = {name: listed[name] for name in gone if listed.get(name) in now}
    gone = [name for name in gone if name not in moved]
    new = [name for name in now if name not in then and name not in moved.values()]
    of_text, of_name = _grouped(new, now.sha256), _grouped(new, _last)
    for name in gone:
        same_text = of_text.get(then.sha256(name), [])
        same_name = of_name.get(_last(name), [])
        both = [one for one in same_text if one in same_name]
        alone = [ones[0] for ones in (both, same_text) if len(ones) == 1]
        if not alone and (means := then.meaning(name)):
            kind = PurePosixPath(name).suffix
            alike = [one for one in new if one.endswith(kind) and now.meaning(one) == means]
            alone = alike if len(alike) == 1 else []
        if not alone and len(same_name) == 1:
            alone = same_name
        if alone:
            moved[name] = alone[0]
    return moved


def _grouped(names: Iterable[str], key: Callable[[str], str | None]) -> dict[str | None, list[str]]:
    groups: dict[str | None, list[str]] = {}
    for name in names:
        groups.setdefault(key(name), []).append(name)
    return groups


def _last(name: str) -> str:
    return name.rpartition("/")[2]


Place = Callable[[str, bool], str | None]
Answers = dict[tuple[str, bool], str | None]
# Of each text at its place what was found, with the answers that led to it: the same ones lead to the same.
_found_before: dict[tuple[str, str | None], list[tuple[Answers, Placed]]] = {}


def placed(name: str, tree: Tree, moved: Mapping[str, str]) -> Placed:
    """A source of a tree, with the files that it names called by their places of today. moved: see `found`."""
    folder = PurePosixPath(name).parent

    def place(named: str, beside: bool) -> str | None:
        """The file that a source means by a name, as it is called today, or None."""
        for one in [str(folder / named)] * beside + [named.removeprefix("./")]:
            if one in tree:
                return moved.get(one, one)
        return None

    before = _found_before.setdefault((name, tree.sha256(name)), [])
    for known, result in before:
        if all(place(*question) == answer for question, answer in known.items()):
            return result
    answers: Answers = {}

    def noted(named: str, beside: bool) -> str | None:
        answers[named, beside] = place(named, beside)
        return answers[named, beside]

    means = _meaning(name, tree, noted)
    before.append((answers, Placed(means, frozenset(filter(None, answers.values())))))
    return before[-1][1]


def _meaning(name: str, tree: Tree, place: Place) -> str | None:
    try:
        text = tree[name].replace(b"\r\n", b"\n").decode()
        if name.endswith(meaning.CUDA):
            said = meaning.cuda(_included(text, place))
        elif name.endswith(".py"):
            said = meaning.python(text, _Placer(place).whole)
        else:
            return tree.sha256(name)
    except (UnicodeDecodeError, SyntaxError, ValueError, RecursionError):
        return None
    return None if said is None else hashlib.sha256(said.encode()).hexdigest()


def _included(text: str, place: Place) -> str:
    return _INCLUDE.sub(lambda found: f'{found[1]}"{place(found[2], True) or found[2]}"', text)


class _Placer(ast.NodeTransformer):
    """A syntax tree in which files of the examples are named by their places of today.

    An import of a module of the examples, whatever form it has, becomes `_module_of_the_book(name, file, attribute)`, at
    the place of the first such import of its block; so does `name = ct.shared("part/module")`, which older sources have. A
    module that nothing else in the file is called by is called by its place, too.
    """

    def __init__(self, place: Place):
        self._place = place

    def whole(self, tree: ast.Module) -> ast.Module:
        """The tree, its imports of the book sorted, each block by itself: a formatter orders them by names that a move changes."""
        tree = self.visit(tree)
        self._name_by_place(tree)
        tree.body = [node for block in _blocks(tree.body) for node in _in_order(block)]
        return tree

    def _name_by_place(self, tree: ast.Module) -> None:
        """Call each module of the book by its file, where its name means nothing else in this source."""
        nodes = list(ast.walk(tree))
        calls = [call for node in nodes if (call := _bound(node)) and call[2].value is None]
        taken = {node.id for node in nodes if isinstance(node, ast.Name) and not _reads(node)}
        taken |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        taken |= {one.asname or one.name for one in nodes if isinstance(one, ast.alias)}
        taken |= {name for node in nodes if (name := getattr(node, "name", None))}
        files: dict[str, set[str]] = {}
        for bound, file, _ in calls:
            files.setdefault(bound.value, set()).add(file.value)
        new = {name: f"module {min(of)}" for name, of in files.items() if len(of) == 1}
        new = {name: one for name, one in new.items() if name not in taken}
        for bound, _, _ in calls:
            bound.value = new.get(bound.value, bound.value)
        for node in nodes:
            if isinstance(node, ast.Name):
                node.id = new.get(node.id, node.id)

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        return [
            self._binding(node, alias.asname or alias.name, alias.name, None)
            or ast.copy_location(ast.Import([alias]), node)
            for alias in node.names
        ]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        module, others, found = node.module or "", [], []
        for alias in node.names:
            bound = alias.asname or alias.name
            whole = f"{module}.{alias.name}" if module else alias.name
            binding = self._binding(node, bound, whole, None)
            binding = binding or self._binding(node, bound, module, alias.name)
            if binding is None:
                others.append(alias)
            else:
                found.append(binding)
        rest = ast.ImportFrom(node.module, others, node.level)
        return [*found, ast.copy_location(rest, node)] if others else found

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=bound)],
                value=ast.Call(
                    func=ast.Attribute(attr="shared"), args=[ast.Constant(value=str(named))]
                ),
            ):
                if file := self._place(f"{named}.py", False):
                    return _binding(node, bound, file, None)
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if not isinstance(node.value, str):
            return node
        if "\n" in node.value:  # a kernel, or a program
            node.value = _included(node.value, lambda name, _: self._place(name, False))
            node.value = _QUOTED.sub(self._quoted, node.value)
        elif "/" in node.value:
            for suffix in ("", ".py"):
                file = self._place(node.value + suffix, False)
                if file and (not suffix or catalog.name_in(file) != node.value):
                    # An example is called by its name, wherever its script lies.
                    return ast.copy_location(ast.Constant(file.removesuffix(suffix)), node)
        return node

    def _quoted(self, found: re.Match) -> str:
        return f"{found[1]}{self._place(found[2], False) or found[2]}{found[1]}"

    def _binding(self, node: ast.stmt, bound: str, module: str, attribute: str | None) -> Any:
        for package in _PACKAGES:
            module = module.removeprefix(package)
        if not module:
            return None
        file = self._place(f"{module.replace('.', '/')}.py", True)
        return _binding(node, bound, file, attribute) if file else None


def _blocks(body: list[ast.stmt]) -> list[list[ast.stmt]]:
    """Statements in groups: imports whose lines follow each other, so that no mark of a cell is between; all others alone."""
    blocks: list[list[ast.stmt]] = []
    for node in body:
        last = blocks[-1][-1] if blocks else None
        if last and _imports(last) and _imports(node) and node.lineno - _end(last) <= 1:
            blocks[-1].append(node)
        else:
            blocks.append([node])
    return blocks


def _in_order(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The bindings of a block sorted, each at the place (which says its cell, too) of the one that stood there."""
    in_order = iter(sorted(filter(_bound, block), key=meaning.dump))
    places = [(one.lineno, one.col_offset, one.end_lineno, one.end_col_offset) for one in block]
    for node, place in zip(block, places):
        new = next(in_order) if _bound(node) else node
        new.lineno, new.col_offset, new.end_lineno, new.end_col_offset = place
        yield new


def _imports(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom) or _bound(node) is not None


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _binding(node: ast.stmt, bound: str, file: str, attribute: str | None) -> ast.stmt:
    values: list[ast.expr] = [ast.Constant(bound), ast.Constant(file), ast.Constant(attribute)]
    call = ast.Call(ast.Name("_module_of_the_book", ast.Load()), values, [])
    return ast.copy_location(ast.Expr(call), node)


def _bound(node: ast.AST) -> list[Any] | None:
    """The arguments of the call `_module_of_the_book(...)`, if this statement is one."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id="_module_of_the_book"), args=constants)):
            return constants
    return None


def _reads(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)
