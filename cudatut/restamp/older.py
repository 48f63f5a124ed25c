"""What the sources of a recording meant that was made before recordings said it, and which of them its code read as text."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from cudatut.fingerprint import meaning
from cudatut.restamp.includes import included
from cudatut.restamp.trees import Tree


def meanings(metadata: Mapping[str, Any], then: Tree, names: Collection[str]) -> dict[str, str]:
    """The hashes of what some sources of a recording meant, by today's rule, without those of which only the text counts.

    metadata: of the recording. then: a tree in which its sources lie as it ran them; of one that lies otherwise nothing is
    known. A recording that names its kernels says itself of which sources the meaning counts.
    """
    sources = metadata["sources"]
    if "kernels" in metadata:
        known = set(metadata.get("meanings", ()))
    else:
        known = set(names) - read(sources, then)
    found = {
        name: then.meaning(name)
        for name in names
        if name in known and then.sha256(name) == sources[name]
    }
    return {name: sha for name, sha in found.items() if sha}


def read(sources: Collection[str], then: Tree) -> set[str]:
    """The sources of an older recording that its Python may have read as text, comments and all, rather than compiled.

    Where the code says which file it reads, that one; else all files that the same code names; and where it names none of
    the sources, every kernel file.
    """
    found, kernels = set(), {name for name in sources if name.endswith(meaning.CUDA)}
    for name in (one for one in sources if one.endswith(".py") and one in then):
        reading, everywhere = _what_is_read(then[name])
        for said in reading:
            elsewhere = any(one.startswith(("/", ".")) for one in said)  # "/proc/...", ".ptx"
            exact = _named(said, sources)
            named = exact or ([] if elsewhere else _named(everywhere, sources) or kernels)
            found |= {one for one in named if one != name}
    return found | included(found, then)


# The words by one of which a program reads a text.
_READS = re.compile(rb"\bread_(?:text|bytes)\b|\.source\.|\bopen\(|\bgetsource\b")


@cache
def _what_is_read(code: bytes) -> tuple[list[frozenset[str]], frozenset[str]]:
    """The strings in each expression whose text a source reads; where there is one, also all strings of the source."""
    if not _READS.search(code):
        return [], frozenset()
    tree = ast.parse(code)
    reading = [_strings(node) for node in _reading(tree)]
    return reading, _strings(tree) if reading else frozenset()


def _reading(tree: ast.AST) -> Iterator[ast.AST]:
    """The expressions whose text a program reads: a path, or a kernel of which it asks for the source."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=read, attr="read_text" | "read_bytes")):
                yield read
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=read, attr="source"))):
                yield read  # kernel.source.replace(...)
            case ast.Call(func=ast.Name(id="open"), args=[read, *mode]) if "b" not in _mode(mode):
                yield read
            case ast.Call(func=ast.Attribute(attr="getsource"), args=[read, *_]):
                yield read


def _mode(arguments: list[ast.expr]) -> str:
    match arguments:
        case [ast.Constant(value=str(mode)), *_]:
            return mode
    return "r"


def _strings(tree: ast.AST) -> frozenset[str]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return frozenset(node.value for node in nodes if isinstance(node.value, str))


def _named(strings: Iterable[str], sources: Iterable[str]) -> list[str]:
    """The sources that strings name, by their paths or as examples."""
    strings = set(strings)
    return [name for name in sources if {name, name.removesuffix(".py")} & strings]
