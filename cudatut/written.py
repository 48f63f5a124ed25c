"""What the code of a cell says of the results that it shows: their names, and all that a claim states.

Read off its syntax tree, and only where it stands in plain words: a call at the top level of a cell has run, and a literal
is what it is. So nothing is told of names that a loop or a function makes.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from cudatut.results import short

# What shows a result: its kind, the place of its name among the arguments, the name of that argument, and the default.
_SHOWS: dict[str, tuple[str, int, str, str | None]] = {
    "check": ("check", 2, "name", "output"),
    "bench": ("benchmark", 3, "name", "benchmark"),
    "facts": ("facts", 0, "title", None),
    "yours": ("facts", 2, "title", "measured here"),
    "table": ("table", 0, "title", None),
    "series": ("series", 0, "title", None),
    "goals": ("goals", 0, "title", None),
    "picture": ("picture", 0, "name", None),
    "claim": ("claim", 0, "id", None),
}
# The field of a result that holds its name.
_NAME = {kind: field for kind, _, field, _ in _SHOWS.values()}
_FILE = re.compile(r"[\w.\-/]{1,200}")
Named = tuple[str, Any]  # kind and name of a result; None for a kind without
_OF_CLAIMS = (
    *("source", "place", "form", "statement", "expected", "measured", "unit", "rule", "depends"),
    "found",
)
_DEFAULTS = {"found": "measured"}
_A_WORD = 3  # characters: less of a name tells nothing
_UNKNOWN = object()  # a value that no literal tells


@dataclass
class _Said:
    """What one cell says. shown: results that it has shown once it ran, and how many of each name; kinds: likewise.

    names: what names the results have that it may show, by kind; free: kinds of which a result may have any name.
    words: all its strings, and pieces of them.
    """

    shown: Counter[Named] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    names: list[tuple[str, re.Pattern[str]]] = field(default_factory=list)
    free: set[str] = field(default_factory=set)
    claims: list[ast.Call] = field(default_factory=list)
    words: set[str] = field(default_factory=set)

    def may_show(self, kind: str, name: str) -> bool:
        return any(kind == one and pattern.fullmatch(name) for one, pattern in self.names)


class Code:
    """The code of an example, read once for all its recordings.

    files: names of the kernels' files that calls at its top level give, such as `ct.Kernel("part/file.cu", ...)`.
    """

    def __init__(self, cells: Mapping[str, str]):
        """cells: the source of each code cell by its title."""
        self.files: set[str] = set()
        self._modules = {"cudatut"}  # the names under which it is imported
        self._functions = _Said()  # of all cells: what one defines, another may call
        self._values: dict[str, list[Any]] = {}  # what each name is bound to
        self._cells = {title: self._said(_parsed(source)) for title, source in cells.items()}

    def problems(
        self,
        shown: Mapping[str, Sequence[dict[str, Any]]],
        elsewhere: Callable[[], set[str]] = set,
    ) -> Iterator[str]:
        """Where the results (schema v1) that each cell showed, by its title, are not those that the code names.

        elsewhere: gives the words of the modules that the cells import, whose functions may show results, too.
        """
        for title, results in shown.items():
            cell = self._cells.get(title, _Said())
            for problem in [*_lacking(cell, results), *self._alien(cell, results, elsewhere)]:
                yield f"cell '{title}' {problem}"
            for claim in (result for result in results if result["kind"] == "claim"):
                for problem in self._claim(cell, claim):
                    yield f"cell '{title}', the claim '{claim['id']}': {problem}"

    def _said(self, tree: ast.Module) -> _Said:
        said = _Said()
        imported = (one for node in tree.body if isinstance(node, ast.Import) for one in node.names)
        self._modules |= {one.asname or one.name for one in imported if one.name == "cudatut"}
        todo: list[tuple[ast.AST, bool]] = [(tree, False)]
        while todo:
            node, inside = todo.pop()
            match node:
                case ast.Constant(value=str(word)):
                    said.words.add(word)
                    if inside:
                        self._functions.words.add(word)
                case ast.Call() if (function := _function(node, self._modules)) in _SHOWS:
                    kind, pattern = _named_by(node, function)
                    if pattern is None:
                        (self._functions if inside else said).free.add(kind)
                    elif not inside:
                        said.names.append((kind, pattern))
                    if function == "claim":
                        said.claims.append(node)
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
                    self._values.setdefault(name, []).append(value)
                    todo.append((node.value, inside))
                    continue
                case ast.Name(id=name, ctx=ast.Store()):
                    self._values.setdefault(name, []).append(_UNKNOWN)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
                    inside = True
            todo += [(child, inside) for child in ast.iter_child_nodes(node)]
        for statement in tree.body:
            match statement:
                case ast.Expr(value=ast.Call() as call) | ast.Assign(value=ast.Call() as call):
                    _remember(said, call, _function(call, self._modules))
                    self.files.update(_file(call))
        return said

    def _alien(
        self, cell: _Said, results: Sequence[dict[str, Any]], elsewhere: Callable[[], set[str]]
    ) -> Iterator[str]:
        """Results that another cell shows by a name of which this one has not a word."""
        for kind, name in {_named(result) for result in results} - set(cell.shown):
            sayers = (cell, self._functions)
            if not isinstance(name, str) or cell.may_show(kind, name):
                continue
            if any(kind in one.free or _could_say(one.words, name) for one in sayers):
                continue
            others = [title for title, one in self._cells.items() if one.may_show(kind, name)]
            if others and not _could_say(elsewhere(), name):
                yield f"has the {kind} {short(name)}, which cell '{others[0]}' shows"

    def _claim(self, cell: _Said, claim: dict[str, Any]) -> Iterator[str]:
        """Where a claim is not what the call that states it says, as far as that is literal."""
        calls = [c for c in cell.claims if claim["id"] in self._possible(_keyword(c, "id"))]
        if calls:
            # Of two calls of one id, in two branches, one has run.
            yield from min((list(self._differs(call, claim)) for call in calls), key=len)
            return
        ids = [
            self._possible(_keyword(c, "id")) for one in self._cells.values() for c in one.claims
        ]
        if not any(_UNKNOWN in possible for possible in ids):
            yield "this cell does not state it"

    def _differs(self, call: ast.Call, claim: dict[str, Any]) -> Iterator[str]:
        for what in _OF_CLAIMS:
            given = _keyword(call, what)
            if what == "measured" and given is None:  # its sides or its seeds tell it
                continue
            told = self._possible(given) if given else [_DEFAULTS.get(what)]
            has = claim.get(what, _DEFAULTS.get(what))
            if _UNKNOWN not in told and has not in map(_as_json, told):
                words = " or ".join(map(short, told))
                yield f"its {what} is {short(has)}, and in the code it is {words}"
        match _keyword(call, "control"):
            case ast.Tuple(elts=[node, *_]):
                told = self._possible(node)
                if _UNKNOWN not in told and claim["control"]["what"] not in told:
                    yield "its control has other words than in the code"

    def _possible(self, node: ast.expr | None) -> list[Any]:
        """The values that an expression may have, where literals tell; None for one that is not there."""
        match node:
            case None:
                return [None]
            case ast.IfExp(body=one, orelse=other):
                return self._possible(one) + self._possible(other)
            case ast.Name(id=name):
                values = self._values.get(name, ())
                return list(values) if len(values) == 1 else [_UNKNOWN]
        try:
            return [ast.literal_eval(node)]
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return [_UNKNOWN]


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):  # such as a magic of Jupyter's
        return ast.Module([], [])


def _function(call: ast.Call, modules: set[str]) -> str | None:
    """The function of cudatut that is called, as `facts` in `ct.facts(...)`; None for another."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=module), attr=name) if module in modules:
            return name
    return None


def _remember(said: _Said, call: ast.Call, function: str | None) -> None:
    """What a call at the top level of a cell has shown."""
    if function not in _SHOWS:
        return
    kind, name = _SHOWS[function][0], _name(call, function)
    said.kinds[kind] += 1
    if isinstance(name, str):
        said.shown[kind, name] += 1


def _name(call: ast.Call, function: str) -> Any:
    """The literal that a call has for the name of its result, or the default; None where that cannot be told."""
    starred = any(isinstance(one, ast.Starred) for one in call.args)
    if starred or any(one.arg is None for one in call.keywords):
        return None
    match _given(call, function):
        case None | ast.Constant(value=None):
            return _SHOWS[function][3]
        case ast.Constant(value=value):
            return value
    return None


def _given(call: ast.Call, function: str) -> ast.expr | None:
    """What a call has for the name of its result, as code."""
    _, place, keyword, _ = _SHOWS[function]
    return _keyword(call, keyword) or next(iter(call.args[place:]), None)


def _file(call: ast.Call) -> Iterator[str]:
    """The file of a kernel that a call names by a literal; a kernel may also be given as its text."""
    match call:
        case ast.Call(func=ast.Attribute(attr="Kernel"), args=[ast.Constant(value=str(name)), *_]):
            if _FILE.fullmatch(name):
                yield name


def _named_by(call: ast.Call, function: str) -> tuple[str, re.Pattern[str] | None]:
    """The kind of the results that a call may show, and what names they have; None where that may be any."""
    kind, name = _SHOWS[function][0], _name(call, function)
    if isinstance(name, str):
        return kind, re.compile(re.escape(name))
    match _given(call, function):
        case ast.JoinedStr(values=parts):
            words: list[Any] = [p.value if isinstance(p, ast.Constant) else None for p in parts]
            if any(word and len(word.strip()) >= _A_WORD for word in words):
                pattern = "".join(".*" if word is None else re.escape(word) for word in words)
                return kind, re.compile(pattern, re.DOTALL)
    return kind, None


def _could_say(words: Iterable[str], name: str) -> bool:
    """Whether a name may be made of some of these words."""
    return any(word == name or (len(word.strip()) >= _A_WORD and word in name) for word in words)


@lru_cache(maxsize=512)
def words_of(source: str) -> frozenset[str]:
    """The strings of a module, and the pieces of those that have values in them."""
    return frozenset(
        node.value
        for node in ast.walk(_parsed(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _lacking(cell: _Said, results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Results that the cell has shown, and that are not there."""
    found = Counter(map(_named, results))
    kinds = Counter(result["kind"] for result in results)
    for (kind, name), times in cell.shown.items():
        if found[kind, name] < times:
            yield f"shows the {kind} {short(name)}, and it is not there"
    for kind, times in cell.kinds.items():
        if kinds[kind] < times:
            yield f"shows {times} or more results of the kind {kind}, and there are {kinds[kind]}"


def _named(result: dict[str, Any]) -> Named:
    return result["kind"], result.get(_NAME.get(result["kind"], ""))


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


def _as_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
