"""Which files of a tree of examples a kernel file includes."""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from cudatut.fingerprint.meaning import CUDA
from cudatut.gpu import headers


def included(names: Iterable[str], tree: Mapping[str, bytes]) -> set[str]:
    """These files, if they are of kernels or have kernels in strings, and what they include of the tree, directly or not."""
    seen: set[str] = set()
    todo = [name for name in names if name.endswith((*CUDA, ".py")) and name in tree]
    while todo:
        if (name := todo.pop()) not in seen:
            seen.add(name)
            folder = PurePosixPath(name).parent
            for quoted in headers.quoted(tree[name].decode("utf-8", "replace")):
                places = (str(folder / quoted), quoted)
                todo += [place for place in places if place in tree][:1]
    return seen
