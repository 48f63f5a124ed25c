"""What a source means, apart from how it is written: a hash that comments, docstrings and formatting leave alone.

Python: its syntax tree without docstrings, by cells where it has any; of the header only what changes a run. CUDA C++: its
tokens, and those comments that are read by programs. Other files mean their bytes.
"""

import ast
import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

CUDA = (".cu", ".cuh", ".h", ".hpp", ".cpp")

_HEADER = re.compile(r"# ---[ \t]*\n(.*?)^# ---[ \t]*$", re.S | re.M)
_CELL = re.compile(r"^# %%[ \t]*(?P<kind>\[markdown\])?[ \t]*(?P<title>.*?)[ \t]*$", re.M)
# Of an example's header: what it is called, and when it is recorded, changes nothing that a run shows.
_NO_PART_OF_A_RUN = ("title", "timeout_s", "alone", "long", "extra", "exercises")


def text_hash(data: bytes) -> str:
    """SHA-256 of a text file whose lines end with \\n, whatever git made of them on this system."""
    return hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()


def meaning_hash(name: str, data: bytes) -> str | None:
    """SHA-256 of what a source means; None where only its text can tell: data, or a source that cannot be read."""
    suffix = PurePosixPath(name).suffix
    if suffix != ".py" and suffix not in CUDA:
        return None
    try:
        text = data.replace(b"\r\n", b"\n").decode()
        said = python(text) if suffix == ".py" else cuda(text)
    except (UnicodeDecodeError, SyntaxError, ValueError, RecursionError):
        return None
    return None if said is None else hashlib.sha256(said.encode()).hexdigest()


# --- Python --------------------------------------------------------------------------------------


def python(text: str, changed: Callable[[ast.Module], ast.Module] | None = None) -> str | None:
    """What Python code means, as a text that is equal for codes of equal meaning. Raises SyntaxError.

    The same for every version of Python that can read the code. changed: what is done to the syntax tree before.
    """
    tree = changed(ast.parse(text)) if changed else ast.parse(text)
    marks = list(_CELL.finditer(text))
    if not marks:
        return "\n".join(map(dump, without_docstrings(tree, text).body))
    said = [repr(sorted(_of_header(text).items()))]
    starts = [text.count("\n", 0, mark.start()) + 1 for mark in marks]
    cells: list[list[ast.stmt]] = [[] for _ in marks]
    # A string alone in a cell may be what it shows, so here the module has no docstring.
    for statement in without_docstrings(tree, text, module=False).body:
        # What stands before the first mark is the header, and nothing else may be.
        at = sum(start < statement.lineno for start in starts) - 1
        if at < 0:
            return None
        cells[at].append(statement)
    for mark, statements in zip(marks, cells):
        if not mark["kind"]:
            said += [f"# %% {mark['title']}", *map(dump, statements)]
    return "\n".join(said)


def _of_header(text: str) -> dict[str, Any]:
    """What the header of an example says of its run."""
    import yaml

    found = _HEADER.match(text)
    if not found:
        return {}
    lines = (line.removeprefix("#").removeprefix(" ") for line in found[1].splitlines())
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        own = yaml.load("\n".join(lines), Loader=loader)["jupyter"]["cudatut"]
        return {key: value for key, value in own.items() if key not in _NO_PART_OF_A_RUN}
    except (yaml.YAMLError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"no header: {error}") from error


def without_docstrings(tree: ast.Module, text: str, module: bool = True) -> ast.Module:
    """The tree without docstrings, unless the code may read them."""
    if "__doc__" in text:
        return tree
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in [tree] * module + [node for node in ast.walk(tree) if isinstance(node, kinds)]:
        match node.body:
            case [ast.Expr(value=ast.Constant(value=str())), *others]:
                node.body = others
    return tree


def dump(node: Any) -> str:
    """A syntax tree as text: as `ast.dump`, but the same in every version of Python."""
    if isinstance(node, ast.Constant):
        return f"{type(node.value).__name__} {node.value!a}"
    if isinstance(node, ast.AST):
        # `kind` is the u of u"", `ctx` follows from the place; what is empty is said by newer versions only.
        fields = (
            f"{name}={dump(value)}"
            for name, value in ast.iter_fields(node)
            if name not in ("kind", "ctx", "type_comment") and value is not None and value != []
        )
        return f"{type(node).__name__}({', '.join(fields)})"
    if isinstance(node, list):
        return f"[{', '.join(map(dump, node))}]"
    return ascii(node)


# --- CUDA C++ ------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""
      (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
    | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    | (?P<char>[uUL]?'(?:\\.|[^'\\\n])+')
    | (?P<word>[A-Za-z_$][\w$]*)
    | (?P<line>\n)
    | (?P<space>[ \t\r\f\v]+)
    | (?P<sign><<<|>>>|<<=|>>=|->\*|<=>|\.\.\.|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|.)
    """,
    re.VERBOSE | re.DOTALL,
)
# Comments that programs read: how a rung is launched, and what it needs (`cudatut.gpu.ladder`).
_READ = re.compile(r"//\s*(?:@rung|requires:)\s")
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(?P<define>define[ \t]+\w+)?")


def cuda(text: str) -> str | None:
    """The tokens of CUDA C++, with NULs between them; a directive of the preprocessor ends with an empty one.

    None where the code knows the numbers of its lines. Raises ValueError for a literal or comment that does not end.
    """
    said = list(_tokens(text.replace("\\\n", "")))
    return None if "__LINE__" in said else "\0".join(said)


def _tokens(text: str) -> Iterator[str]:
    directive, begins, at = False, True, 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        kind = found.lastgroup if found.lastgroup != "mark" else "raw"
        if (kind == "sign" and found[0] in "\"'") or (
            text.startswith("/*", at) and kind != "comment"
        ):
            raise ValueError(f"{text[at : at + 20]!r} has no end")
        if begins and kind == "sign" and found[0] == "#":
            directive = True
            define = _DIRECTIVE.match(text, at)["define"]
            if define:
                # A macro with parameters has its parenthesis right behind its name.
                close = text.startswith("(", at + len(_DIRECTIVE.match(text, at)[0]))
                yield "#define-function" if close else "#define-object"
        if kind == "line":
            if directive:
                yield ""
            directive, begins = False, True
        elif kind == "comment":
            if _READ.match(found[0]):
                yield " ".join(found[0].split())
        elif kind != "space":
            begins = False
            yield found[0]
        at = found.end()
    if directive:
        yield ""
