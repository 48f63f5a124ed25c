"""What a kernel's source includes, for PyCUDA's cache of compiled kernels.

PyCUDA has nvcc preprocess every source that says '#include' before it looks into its cache: 0.1 to 0.5 s for each kernel
that was compiled long ago. What the cache has to know is less: the text of the headers that lie beside the source, and
the version of nvcc, which it counts in and with which the toolkit's own headers come.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)
_DIRECTIVE = re.compile(r"^([ \t]*)#[ \t]*include\b", re.MULTILINE)
_ADDS_FOLDERS = re.compile(r"-I|include|-isystem|-idirafter")


def with_digest(source: str, folders: Sequence[Path], flags: Sequence[str] = ()) -> str:
    """The same program in words that PyCUDA need not preprocess, preceded by a comment that changes with its headers.

    folders: where `#include "..."` is looked for after the folder of the file that says so. The comment is one line.
    A source comes back as it is where that comment could not know of a change: a header between quotation marks that is in
    none of the folders, a header of PyCUDA's, a name that a macro makes, or `flags` that add folders.
    """
    if not _DIRECTIVE.search(source) or any(_ADDS_FOLDERS.search(flag) for flag in flags):
        return source
    headers = found(source, folders)
    if headers is None:
        return source
    digest = hashlib.sha256(b"\0".join(headers)).hexdigest()
    return f"// headers {digest}\n" + _DIRECTIVE.sub(r"\1# include", source)


def quoted(source: str) -> list[str]:
    """The names that a source includes between quotation marks."""
    return [name for name, _ in _INCLUDE.findall(source) if name]


def sha256(text: bytes) -> str:
    """The hash of a header's text."""
    return hashlib.sha256(text).hexdigest()


def found(source: str, folders: Sequence[Path]) -> list[bytes] | None:
    """Headers between quotation marks, those that they include too, each once; None if one cannot be known."""
    known: dict[Path, bytes] = {}
    todo: list[tuple[str, Sequence[Path]]] = [(source, ())]
    for text, beside in todo:  # which grows
        included = _INCLUDE.findall(text)
        if len(included) < len(_DIRECTIVE.findall(text)):  # a macro's
            return None
        if any(named.startswith("pycuda") for _, named in included):  # PyCUDA's own
            return None
        for name in (quoted for quoted, _ in included if quoted):
            places = (folder / name for folder in (*beside, *folders))
            path = next((place.resolve() for place in places if place.is_file()), None)
            if path is None:
                return None
            if path not in known:
                known[path] = path.read_bytes()
                todo.append((known[path].decode("utf-8", "replace"), [path.parent]))
    return list(known.values())
