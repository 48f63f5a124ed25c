"""What a source means, apart from how it is written: a hash that comments, docstrings and formatting leave alone.

Python: its syntax tree without docstrings, by cells where it has any; of the header only what changes a run; of a kernel in
a string what the kernel means. CUDA C++: its tokens, and those comments that are read by programs. Of other files, and where
a program can see how it is written, only the text can tell.
"""

import ast
import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from cudatut import yaml_text

CUDA = (".cu", ".cuh", ".h", ".hpp", ".cpp")

_HEADER = re.compile(r"# ---[ \t]*\n(.*?)^# ---[ \t]*$", re.S | re.M)
_CELL = re.compile(r"^# %%[ \t]*(?P<kind>\[markdown\])?[ \t]*(?P<title>.*?)[ \t]*$", re.M)
# Of an example's header: what it is called, and when it is recorded, changes nothing that a run shows.
_NO_PART_OF_A_RUN = ("title", "timeout_s", "alone", "long", "extra", "exercises")
# A program that reads its own text, or the numbers of its lines; what the package says of itself is none of its text.
_READS_ITSELF = re.compile(
    r"\bgetsource(?:lines)?\((?!ct\.)|\bgetcomments\b|\bf_lineno\b|\bco_firstlineno\b"
)
_READS_DOCSTRINGS = re.compile(r"__doc__|\bgetdoc\b|\bhelp\(|\bdoctest\b")


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

Changed = Callable[[ast.Module], ast.Module]


def python(text: str, changed: Changed | None = None) -> str | None:
    """What Python code means, as a text that is equal for codes of equal meaning. Raises SyntaxError, ValueError.

    The same for every version of Python that can read the code. changed: what is done to the syntax tree before.
    None where code stands before the first cell, and where it reads its own text.
    """
    if _READS_ITSELF.search(text):
        return None
    if not _CELL.search(text):
        return "\n".join(map(dump, _tree(text, changed, in_cells=False).body))
    found = cells(text, changed)
    if found is None:
        return None
    said = (f"# %% {title}\n{code}" if code else f"# %% {title}" for title, code in found)
    return "\n".join([repr(sorted(_of_header(text).items())), *said])


def cells(text: str, changed: Changed | None = None) -> list[tuple[str, str]] | None:
    """What the code of each cell of an example means, with the cell's title; None where code stands before the first one.

    Raises SyntaxError, ValueError.
    """
    marks = list(_CELL.finditer(text))
    starts = [text.count("\n", 0, mark.start()) + 1 for mark in marks]
    statements: list[list[ast.stmt]] = [[] for _ in marks]
    for statement in _tree(text, changed, in_cells=True).body:
        # What stands before the first mark is the header, and nothing else may be.
        at = sum(start < statement.lineno for start in starts) - 1
        if at < 0:
            return None
        statements[at].append(statement)
    lines, found = text.encode().split(b"\n"), []
    for mark, code in zip(marks, statements):
        if not mark["kind"]:
            silent = [";"] if code and _is_silent(code[-1], lines) else []
            found.append((mark["title"], "\n".join([*map(dump, code), *silent])))
    return found


def _tree(text: str, changed: Changed | None, in_cells: bool) -> ast.Module:
    # A string alone in a cell may be what it shows, so there the module has no docstring.
    tree = without_docstrings(ast.parse(text), text, module=not in_cells)
    return _with_kernels(changed(tree) if changed else tree, in_cells)


def _is_silent(last: ast.stmt, lines: list[bytes]) -> bool:
    """Whether a semicolon keeps a notebook from showing the value of a cell's last statement."""
    rest = lines[(last.end_lineno or last.lineno) - 1][last.end_col_offset :]
    return isinstance(last, ast.Expr) and rest.lstrip().startswith(b";")


def _of_header(text: str) -> dict[str, Any]:
    """What the header of an example says of its run."""
    import yaml

    found = _HEADER.match(text)
    if not found:
        return {}
    lines = (line.removeprefix("#").removeprefix(" ") for line in found[1].splitlines())
    try:
        own = yaml_text.load("\n".join(lines))["jupyter"]["cudatut"]
        return {key: value for key, value in own.items() if key not in _NO_PART_OF_A_RUN}
    except (yaml.YAMLError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"no header: {error}") from error


def without_docstrings(tree: ast.Module, text: str, module: bool = True) -> ast.Module:
    """The tree without docstrings, unless the code may read them."""
    if _READS_DOCSTRINGS.search(text):
        return tree
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in [tree] * module + [node for node in ast.walk(tree) if isinstance(node, kinds)]:
        match node.body:
            case [ast.Expr(value=ast.Constant(value=str())), *others]:
                node.body = others
    return tree


def _with_kernels(tree: ast.Module, in_cells: bool) -> ast.Module:
    """The tree with CUDA C++ in strings replaced by its tokens, where such a string is compiled and nobody else sees it.

    in_cells: of an example, whose variables no other file imports.
    """
    nodes = list(ast.walk(tree))
    if any(isinstance(node, ast.Attribute) and node.attr == "source" for node in nodes):
        return tree  # `kernel.source`
    compiled = {id(source) for node in nodes if (source := _compiled_by(node))}
    uses: dict[str, list[bool]] = {}  # of each name whether each use of it is to be compiled
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            uses.setdefault(node.id, []).append(id(node) in compiled)
    for node in nodes if in_cells else ():
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=text) if all(
                uses.get(name, [False])
            ):
                compiled.add(id(text))
    for node in nodes:
        if id(node) in compiled and isinstance(node, ast.Constant):
            node.value = _tokens_of_kernel(node.value)
    return tree


def _tokens_of_kernel(value: Any) -> Any:
    if isinstance(value, str) and "__global__" in value:
        with suppress(ValueError):  # one that does not compile, to show the compiler's words
            return cuda(value) or value
    return value


def _compiled_by(node: ast.AST) -> ast.expr | None:
    """The source in a call such as `ct.Kernel(source, ...)` or `SourceModule(source)`."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[source, *_]):
            return source if name in ("Kernel", "SourceModule") else None
    return None


def dump(node: Any) -> str:
    """A syntax tree as text: as `ast.dump`, but the same in every version of Python."""
    if isinstance(node, ast.Constant):
        return f"{type(node.value).__name__} {node.value!a}"
    if isinstance(node, ast.JoinedStr):  # Python 3.12 keeps empty parts
        parts = [one for one in node.values if getattr(one, "value", None) != ""]
        return f"JoinedStr(values={dump(parts)})" if parts else "JoinedStr()"
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
_BLANK = r"(?:[ \t]|/\*.*?\*/)"
_DIRECTIVE = re.compile(rf"{_BLANK}*#{_BLANK}*(?P<define>define{_BLANK}+\w+)?", re.DOTALL)
# What `_tokens` says of a macro that makes a string of an argument.
_STRING_OF = "#string-of"
# By these code knows the numbers of its lines.
_LINE_NUMBERS = ("__LINE__", "__builtin_LINE", "source_location")
# Of a backslash and a blank at the end of a line compilers think differently.
_UNCLEAR = re.compile(r"\\[ \t\r\f\v]+\n")
_GOES_ON = "\\\n"


def cuda(text: str) -> str | None:
    """The tokens of CUDA C++, with NULs between them; a directive of the preprocessor ends with an empty one.

    Where a macro makes a string of an argument, it counts whether there are blanks between tokens. None where the code
    knows the numbers of its lines. Raises ValueError for a literal or comment that does not end.
    """
    if _UNCLEAR.search(text) or (_GOES_ON in text and 'R"' in text):  # a raw string keeps it
        return None
    text = text.replace(_GOES_ON, "")
    said = list(_tokens(text))
    if _STRING_OF in said:
        said = list(_tokens(text, blanks=True))
    return None if {*_LINE_NUMBERS} & {*said} else "\0".join(said)


def read_comments(text: str) -> list[str]:
    """The comments of CUDA C++ that programs read, such as `// @rung 20 block=256`. Raises ValueError as `cuda`."""
    if not _READ.search(text):  # which is most of them
        return []
    return [token for token in _tokens(text.replace(_GOES_ON, "")) if _READ.match(token)]


def _tokens(text: str, blanks: bool = False) -> Iterator[str]:
    """The tokens of a text without lines that go on in the next. blanks: with " " for what separates two of a line or more."""
    directive, begins, apart = False, True, False
    for found in _TOKEN.finditer(text):  # every character is in one
        at = found.start()
        kind = found.lastgroup if found.lastgroup != "mark" else "raw"
        if (kind == "sign" and found[0] in "\"'") or (
            text.startswith("/*", at) and kind != "comment"
        ):
            raise ValueError(f"{text[at : at + 20]!r} has no end")
        if kind == "sign" and found[0] == "#":
            if begins:
                directive = True
                whole = _DIRECTIVE.match(text, at)
                if whole and whole["define"]:
                    # A macro with parameters has its parenthesis right behind its name.
                    close = text.startswith("(", whole.end())
                    yield "#define-function" if close else "#define-object"
            elif directive:
                yield _STRING_OF
        if kind == "line":
            if directive:
                yield ""
            directive, begins = False, True
        elif kind == "comment":
            if _READ.match(found[0]):
                yield " ".join(found[0].split())
        elif kind != "space":
            if blanks and apart:
                yield " "
            begins = False
            yield found[0]
        apart = kind in ("line", "comment", "space")
    if directive:
        yield ""
