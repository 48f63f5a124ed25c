"""Files that were moved or renamed: which is which now, and what a source means apart from where things lie.

What moves changes the words by which others name it: an `#include`, an `import`, a path in a string. So two sources mean
the same when they do once each such name is replaced by the file that it names, called by its place of today.
"""

import ast
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath

from cudatut.fingerprint import meaning

Place = Callable[
    [str], str | None
]  # a name in a source -> the file that it names, as it is called today, or None

_INCLUDE = re.compile(r'^([ \t]*#[ \t]*include[ \t]*)"([^"\n]+)"', re.M)
# The names under which the examples are a package.
_PACKAGES = ("cudatut.book.", "cudatut.examples.")


def found(gone: Mapping[str, bytes], new: Mapping[str, bytes]) -> dict[str, str]:
    """For each file that is gone where it is now, if one of the new files can be it: by its text, else by its name.

    What a name alone has found must still be compared: `same` does.
    """
    texts: dict[str, list[str]] = {}
    for name, data in new.items():
        texts.setdefault(meaning.text_hash(data), []).append(name)
    moved = {}
    for name, data in gone.items():
        same_text = texts.get(meaning.text_hash(data), [])
        same_name = [one for one in new if _last(one) == _last(name)]
        both = [one for one in same_text if one in same_name]
        for candidates in (both, same_text, same_name):
            if len(candidates) == 1:
                moved[name] = candidates[0]
                break
    return moved


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def same(
    name: str,
    data: bytes,
    now: str,
    data_now: bytes,
    files: Iterable[str],
    files_now: Iterable[str],
    moved: Mapping[str, str],
) -> bool:
    """Whether a source meant then what it (or what it became) means now, apart from where files lie.

    files, files_now: names of all files of the examples then and now. moved: see `found`.
    """
    before = _placed(name, data, frozenset(files), lambda file: moved.get(file, file))
    after = _placed(now, data_now, frozenset(files_now), lambda file: file)
    return before is not None and before == after


def _placed(
    name: str, data: bytes, files: frozenset[str], today: Callable[[str], str]
) -> str | None:
    """The hash of a source's meaning with files called by their places of today; None where only its text can tell."""
    folder = PurePosixPath(name).parent

    def place(named: str, beside: bool) -> str | None:
        places = [folder / named] * beside + [PurePosixPath(named)]
        return next((today(str(one)) for one in places if str(one) in files), None)

    try:
        text = data.replace(b"\r\n", b"\n").decode()
        if name.endswith(meaning.CUDA):
            named = lambda m: f'{m[1]}"{place(m[2], True) or m[2]}"'  # noqa: E731
            said = meaning.cuda(_INCLUDE.sub(named, text))
        elif name.endswith(".py"):
            said = meaning.python(text, lambda tree: _Placed(place).whole(tree))
        else:
            return hashlib.sha256(data).hexdigest()
    except (UnicodeDecodeError, SyntaxError, ValueError, RecursionError):
        return None
    return None if said is None else hashlib.sha256(said.encode()).hexdigest()


class _Placed(ast.NodeTransformer):
    """A syntax tree in which files of the examples are named by their places of today.

    An import of a module of the examples, whatever form it has, becomes `_module_of_the_book(name, file, attribute)`, at
    the place of the first such import of its block; so does `name = ct.shared("part/module")`.
    """

    def __init__(self, place: Callable[[str, bool], str | None]):
        self._place = place

    def whole(self, tree: ast.Module) -> ast.Module:
        """The tree, its imports of the book sorted: a formatter orders them by names that a move changes."""
        tree = self.visit(tree)
        bindings = [node for node in tree.body if _is_binding(node)]
        in_order = iter(sorted(bindings, key=meaning.dump))
        tree.body = [next(in_order) if _is_binding(node) else node for node in tree.body]
        return tree

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

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
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
        if isinstance(node.value, str) and "/" in node.value and "\n" not in node.value:
            for suffix in ("", ".py"):
                if file := self._place(node.value + suffix, False):
                    return ast.copy_location(ast.Constant(file.removesuffix(suffix)), node)
        return node

    def _binding(self, node: ast.stmt, bound: str, module: str, attribute: str | None):
        for package in _PACKAGES:
            module = module.removeprefix(package)
        if not module:
            return None
        file = self._place(f"{module.replace('.', '/')}.py", True)
        return _binding(node, bound, file, attribute) if file else None


def _binding(node: ast.stmt, bound: str, file: str, attribute: str | None) -> ast.stmt:
    values = [ast.Constant(bound), ast.Constant(file), ast.Constant(attribute)]
    call = ast.Call(ast.Name("_module_of_the_book", ast.Load()), values, [])
    return ast.copy_location(ast.Expr(call), node)


def _is_binding(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id="_module_of_the_book"))):
            return True
    return False
