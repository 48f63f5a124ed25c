"""The examples: where they are, what their headers say, and which files each is made of.

Reads text only: neither Jupyter nor NumPy nor a GPU is needed, so that `python -m cudatut list` is quick.
"""

import difflib
import re
import sys
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from cudatut import paths
from cudatut import sizes as sizes_of_header
from cudatut.errors import CudatutError

DEFAULT_TIMEOUT_S = 120.0

_HEADER = re.compile(r"# ---[ \t]*\r?\n(.*?)^# ---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_CELL = re.compile(r"^# %%", re.MULTILINE)
_CELL_LINE = re.compile(
    r"^# %%[ \t]*(?P<kind>\[markdown\])?[ \t]*(?P<title>[^\r\n]*?)[ \t]*\r?$", re.MULTILINE
)
EXERCISES = "_exercises"  # how the name of a file with the beginnings of exercises ends
ARCH = re.compile(r"sm_\d{2,3}[af]?")
# What a Python file of an example can lead to: kernel files and other examples by their names in strings, headers
# included by an inline kernel, modules beside it.
_KERNEL_FILE = re.compile(r"""["']([\w.\-/]+\.cuh?)["']""")
_EXAMPLE_NAME = re.compile(r"""["']([\w\-]+/[\w\-/]+?)(?:\.py)?["']""")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+([\w., \t]+)", re.MULTILINE)
_FROM = re.compile(r"^[ \t]*from[ \t]+\.*([\w.]+)[ \t]+import\b", re.MULTILINE)


class UnknownExampleError(CudatutError):
    """No example has this name; the message offers those that are close."""


class BadHeaderError(CudatutError):
    """The `# ---` header of an example is missing or says something else than it should."""


@dataclass(frozen=True)
class Example:
    """One example: `name` is "<part>/<stem>", `requires` the smallest compute capability that it claims.

    `alone`: it measures time, so nothing else may use the GPU while it is recorded. `long`: it takes long, and is recorded
    only when its files change. `sizes`: by variable, its value and
    those that tools see instead (`cudatut.sizes`).
    """

    name: str
    path: Path
    title: dict[str, str]
    requires: str
    timeout_s: float
    alone: bool = True
    long: bool = False
    sizes: dict[str, tuple] = field(default_factory=dict)

    @property
    def notebook(self) -> Path:
        """Path of the recording, whether or not it is there."""
        return self.path.with_suffix(".ipynb")

    @cached_property
    def _sources(self) -> tuple[str, ...]:
        root = paths.examples_dir()
        return tuple(sorted(relative(path, root) for path in _reachable(self.path, root)))

    def sources(self) -> list[str]:
        """Files that this example is made of, as its text tells: relative to examples/, with "/", sorted.

        The .py itself, the .cu and .cuh files that it names, what those include, modules and examples that it names.
        """
        return list(self._sources)


def examples(drafts: bool = False) -> list[Example]:
    """The examples, sorted by name; those in progress only with `drafts`. Raises BadHeaderError naming the file.

    A .py file without header and without `# %%` cells is a module that examples share, not an example; nor is
    `<chapter>_exercises.py`, which holds what readers begin their exercises with (`cudatut.exercises`).
    An example in progress matches a pattern of examples/drafts.txt: it can be run and recorded by name, but nothing
    waits for its recording, and the site leaves it out.
    """
    root = paths.examples_dir()
    if not root.is_dir():
        raise CudatutError(f"there is no folder of examples at {root}")
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        if any(part.startswith((".", "_")) for part in parts):
            continue
        example = _read(path, root)
        if example is not None:
            found.append(example)
    patterns = [] if drafts else draft_patterns()
    found = [e for e in found if not any(fnmatchcase(e.name, pattern) for pattern in patterns)]
    return sorted(found, key=lambda example: example.name)


def draft_patterns() -> list[str]:
    """Patterns of examples/drafts.txt, such as `basics/registers*`: one a line, `#` begins a comment."""
    path = paths.examples_dir() / "drafts.txt"
    if not path.is_file():
        return []
    lines = (line.partition("#")[0].strip() for line in _text(path).splitlines())
    return [line for line in lines if line]


def matches(file: str, patterns: list[str]) -> bool:
    """Whether a file, relative to examples/, belongs to an example in progress."""
    return any(fnmatchcase(file.rpartition(".")[0], pattern) for pattern in patterns)


def renamed() -> dict[str, str]:
    """Old names of examples and what they are called now: examples/renamed.yml. Raises CudatutError."""
    path = paths.examples_dir() / "renamed.yml"
    if not path.is_file():
        return {}
    names = _yaml(_text(path), "examples/renamed.yml")
    if not isinstance(names, dict) or not all(
        isinstance(name, str) for pair in names.items() for name in pair
    ):
        raise CudatutError("examples/renamed.yml: each line must be 'old name: new name'")
    return names


def get(name: str) -> Example:
    """The example of this name; a path to its .py, .cu or .ipynb will do too. Raises UnknownExampleError."""
    wanted = re.sub(
        r"\.(py|cu|ipynb)$",
        "",
        name.replace("\\", "/").removeprefix("./").removeprefix("examples/"),
    )
    root = paths.examples_dir()
    path = root / f"{wanted}.py"
    example = _read(path, root) if path.is_file() and path.resolve().is_relative_to(root) else None
    if example is not None:
        return example
    if new := renamed().get(wanted):
        print(f"{wanted} is called {new} now.", file=sys.stderr)
        return get(new)
    if wanted.endswith(EXERCISES) and path.is_file():
        raise UnknownExampleError(
            f"'{wanted}' is no example: it holds the beginnings of exercises. "
            f"`python -m cudatut exercise {wanted.removesuffix(EXERCISES)}` lists them."
        )
    everything = [example.name for example in examples(drafts=True)]
    stems = {known.rpartition("/")[2]: known for known in everything}
    close = [
        stems[stem]
        for stem in difflib.get_close_matches(wanted.rpartition("/")[2], stems, n=3, cutoff=0.6)
    ]
    close += difflib.get_close_matches(wanted, everything, n=3, cutoff=0.8)
    hint = f" Did you mean {' or '.join(dict.fromkeys(close))}?" if close else ""
    raise UnknownExampleError(
        f"there is no example '{name}'.{hint} `python -m cudatut list` names them all."
    )


def relative(path: Path, root: Path) -> str:
    """Name of an example file in recordings and lists: relative to examples/, with "/" on every system."""
    return path.relative_to(root).as_posix()


def header(path: Path, shown: str) -> dict[str, Any] | None:
    """What the `# ---` header of a Python file says under `jupyter: cudatut:`, or None without a header.

    shown: the file's name in messages. Raises BadHeaderError for a header that cannot be read.
    """
    match = _HEADER.match(_text(path))
    if match is None:
        return None
    lines = (line.removeprefix("#").removeprefix(" ") for line in match[1].splitlines())
    found = _yaml("\n".join(lines), shown)
    own = (found.get("jupyter") or {}).get("cudatut") if isinstance(found, dict) else None
    if not isinstance(own, dict):
        raise BadHeaderError(
            f"{shown}: the header lacks 'jupyter: cudatut:'; see docs/en/contributing.md"
        )
    return own


def cells(path: Path) -> dict[str, str]:
    """Code of each named cell of a file, without the blank lines around it."""
    text = _text(path)
    found: dict[str, str] = {}
    marks = list(_CELL_LINE.finditer(text))
    for mark, following in zip(marks, [*marks[1:], None]):
        if mark["title"] and not mark["kind"]:
            code = text[mark.end() : following.start() if following else len(text)]
            found[mark["title"]] = code.replace("\r\n", "\n").strip("\n").rstrip()
    return found


def sizes(path: Path) -> dict[str, tuple]:
    """`sizes` of the header of any Python file; empty without. Raises BadHeaderError."""
    root = paths.examples_dir()
    shown = f"examples/{relative(path, root)}" if path.is_relative_to(root) else str(path)
    return _sizes(path, header(path, shown) or {}, shown)


def _sizes(path: Path, own: dict[str, Any], shown: str) -> dict[str, tuple]:
    if "sizes" not in own:
        return {}
    try:
        return sizes_of_header.read(own["sizes"], _text(path))
    except ValueError as error:
        raise BadHeaderError(f"{shown}: the header's {error}") from error


def _read(path: Path, root: Path) -> Example | None:
    if path.stem.endswith(EXERCISES):  # begun by readers: it does not run to its end
        return None
    name = relative(path.with_suffix(""), root)
    shown = f"examples/{name}.py"
    own = header(path, shown)
    if own is None:
        if _CELL.search(_text(path)):
            raise BadHeaderError(
                f"{shown} has cells but does not begin with a '# ---' header; see docs/en/contributing.md"
            )
        return None
    title, requires, timeout_s = (
        own.get("title"),
        own.get("requires"),
        own.get("timeout_s", DEFAULT_TIMEOUT_S),
    )
    if not isinstance(title, dict) or not all(
        isinstance(title.get(lang), str) for lang in ("en", "zh")
    ):
        raise BadHeaderError(f"{shown}: the header's title must have 'en' and 'zh'")
    if not isinstance(requires, str) or not ARCH.fullmatch(requires):
        raise BadHeaderError(
            f"{shown}: the header's requires is {requires!r}; write it like sm_75 or sm_90a"
        )
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)) or not timeout_s > 0:
        raise BadHeaderError(
            f"{shown}: the header's timeout_s is {timeout_s!r}; it must be a number of seconds"
        )
    flags = {"alone": own.get("alone", True), "long": own.get("long", False)}
    for flag, value in flags.items():
        if not isinstance(value, bool):
            raise BadHeaderError(
                f"{shown}: the header's {flag} is {value!r}; it must be true or false"
            )
    return Example(
        name,
        path,
        dict(title),
        requires,
        float(timeout_s),
        **flags,
        sizes=_sizes(path, own, shown),
    )


def _yaml(text: str, shown: str) -> object:
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise BadHeaderError(
            f"{shown}: the header is not YAML: {' '.join(str(error).split())}"
        ) from error


def with_includes(path: Path) -> list[Path]:
    """A kernel file and the headers among the examples that it includes, directly or not, sorted."""
    return sorted(_reachable(path, paths.examples_dir().resolve()))


def _reachable(start: Path, root: Path) -> set[Path]:
    seen: set[Path] = set()
    todo = [start]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        todo += [found for found in _mentioned(path, root) if found.is_relative_to(root)]
    return seen


def _mentioned(path: Path, root: Path) -> list[Path]:
    text = _text(path)
    candidates = [
        folder / name for name in _INCLUDE.findall(text) for folder in (path.parent, root)
    ]
    if path.suffix == ".py":
        candidates += [root / name for name in _KERNEL_FILE.findall(text)]
        candidates += [root / f"{name}.py" for name in _EXAMPLE_NAME.findall(text)]
        modules = [
            name.split()[0]
            for group in _IMPORT.findall(text)
            for name in group.split(",")
            if name.strip()
        ]
        modules += _FROM.findall(text)
        candidates += [path.parent / f"{module.replace('.', '/')}.py" for module in modules]
    return [candidate.resolve() for candidate in candidates if candidate.is_file()]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CudatutError(f"{path} is not UTF-8 text: {error}") from error
