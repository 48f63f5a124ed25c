"""The examples: where they are, what their headers say, and which files each is made of.

Reads text only: neither Jupyter nor NumPy nor a GPU is needed, so that `python -m cudatut list` is quick.
"""

import difflib
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Any

from cudatut import paths, words, yaml_text
from cudatut import sizes as sizes_of_header
from cudatut.errors import CudatutError
from cudatut.words import LANGUAGES

DEFAULT_TIMEOUT_S = 120.0
LEVELS = ("warm-up", "easy", "medium", "hard")  # of exercises
CHAPTER = "chapter"  # the script of a chapter's own example; others beside it add their names to the chapter's
# How the names of a chapter's further files end: what readers begin their exercises with, our solutions.
EXERCISES, SOLUTIONS = "_exercises", "_solutions"
ENDINGS = (EXERCISES, SOLUTIONS, "_claims")
MOVED = "moved.yml"  # where files of the examples lay before, and where they lie now
INSTALL_CELL = "install"  # title of the cell in front of an example's notebook

_HEADER = re.compile(r"# ---[ \t]*\n(.*?)^# ---[ \t]*$", re.S | re.M)
_CELL = re.compile(r"^# %%[ \t]*(?P<kind>\[markdown\])?[ \t]*(?P<title>.*?)[ \t]*$", re.M)
ARCH = re.compile(r"sm_[0-9]{2,3}[af]?")
_EXTRA = re.compile(r"[a-z0-9]*")
# What a Python file of an example can lead to: kernel files and other examples by their names in strings, headers
# included by an inline kernel, modules beside it.
_KERNEL_FILE = re.compile(r"""["']([\w.\-/]+\.cuh?)["']""")
_EXAMPLE_NAME = re.compile(r"""["']([\w\-]+/[\w\-/]+?)(?:\.py)?["']""")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.M)
_IMPORT = re.compile(
    r"^([ \t]*)(?:from[ \t]+\.*([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[\w, \t]+)|import[ \t]+([\w., \t]+))",
    re.M,
)
_BOOK = "cudatut.book."  # the examples as a package
_say = words.section("catalog")


class UnknownExampleError(CudatutError):
    """No example has this name; the message offers those that are close."""


class BadHeaderError(CudatutError):
    """The `# ---` header of an example is missing or says something else than it should."""


@dataclass(frozen=True)
class Example:
    """One example: `name` is "<part>/<chapter>" or "<part>/<chapter>_<stem>" (see `name_of`), `requires` the smallest compute
    capability that it claims.

    `alone`: it measures time, so nothing else may use the GPU while it is recorded. `long`: it takes long, and is
    recorded only when its files change. `extra`: what it needs besides, an extra of pyproject.toml. `sizes`: by variable, its value and those that tools see instead (`cudatut.sizes`).
    """

    name: str
    path: Path
    title: dict[str, str]
    requires: str
    timeout_s: float
    alone: bool = True
    long: bool = False
    extra: str = ""
    sizes: dict[str, tuple] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """Its script, relative to examples/."""
        return relative(self.path, paths.examples_dir())

    def first_cell(self) -> str:
        """The code in front of its notebook: what it needs where it is opened outside a checkout, such as in Colab."""
        extras = ",".join(filter(None, ("gpu", self.extra)))
        return (
            "try:\n"
            "    import cudatut.notebook\n"
            "except ImportError:  # such as in Colab: this compiles PyCUDA, which takes minutes\n"
            f'    %pip install -q "cudatut[{extras}] @ git+{paths.repository()}"\n'
            "    import cudatut.notebook\n"
            "\n"
            "    cudatut.notebook.install_cupy()\n"
            f'cudatut.notebook.prepare("{self.name}")'
        )

    def sources(self) -> list[str]:
        """Files that this example is made of, as its text tells: relative to examples/, with "/", sorted."""
        return sources_of([self])[self.name]


@dataclass(frozen=True)
class ChapterFiles:
    """Where the files of a chapter lie, by its name ("start/errors"), or would lie: in the chapter's folder."""

    name: str

    @property
    def part(self) -> str:
        return self.name.partition("/")[0]

    @property
    def stem(self) -> str:
        """The name without the part: "errors"."""
        return self.name.partition("/")[2]

    @property
    def folder(self) -> Path:
        return paths.examples_dir() / self.name

    def script(self, ending: str = "") -> Path:
        """Its example, or what `ending` (such as EXERCISES) names."""
        there = path_of(f"{self.name}{ending}")
        return there if there.is_file() else self.folder / f"{ending[1:] or CHAPTER}.py"

    @property
    def kernel(self) -> Path:
        return self.folder / f"{self.stem}.cu"

    def exercises_notebook(self, lang: str = "en") -> Path:
        """What Colab opens from the pages of a language."""
        return self.script(EXERCISES).with_suffix(".ipynb" if lang == "en" else f".{lang}.ipynb")

    def page(self, lang: str) -> Path:
        return paths.docs_dir() / lang / f"{self.name}.md"

    @property
    def figures(self) -> Path:
        return paths.docs_dir() / "figures" / f"{self.name}.py"

    @property
    def overlay(self) -> Path:
        """The Chinese of its comments and narration (`cudatut.overlays`)."""
        return self.folder / "zh.yml"

    @property
    def labels(self) -> Path:
        return paths.docs_dir() / "labels" / f"{self.name.replace('/', '_')}.yml"

    @property
    def drafts(self) -> tuple[str, str]:
        """The patterns of examples/drafts.txt for its examples."""
        return self.name, f"{self.name}_*"

    def owns(self, example: str, chapters: Iterable[str]) -> bool:
        """Whether an example's name is of this chapter, and not of another one whose longer name fits."""
        fitting = [name for name in {self.name, *chapters} if f"{example}_".startswith(f"{name}_")]
        return max(fitting, key=len, default="") == self.name

    def code(self, chapters: Iterable[str]) -> list[Path]:
        """Its Python and kernel files that are there, sorted. chapters: the names of all chapters."""
        root, chapters = paths.examples_dir(), set(chapters)
        beside = [
            path
            for path in root.glob(f"{self.name}*")
            if self.owns(relative(path.with_suffix(""), root), chapters)
        ]
        found = [*self.folder.rglob("*"), *beside]
        return sorted(path for path in found if path.suffix in (".py", ".cu", ".cuh"))


def examples(drafts: bool = False) -> list[Example]:
    """The examples, sorted by name; those in progress only with `drafts`. Raises BadHeaderError naming the file, and
    CudatutError where two files have one name.

    A .py file without header and without `# %%` cells is a module that examples share, not an example; nor is
    `<chapter>/exercises.py`, which holds what readers begin their exercises with (`cudatut.exercises`).
    An example in progress matches a pattern of examples/drafts.txt: it can be run and recorded by name, but nothing
    waits for its recording, and the site leaves it out.
    """
    root = paths.examples_dir()
    if not root.is_dir():
        raise CudatutError(f"there is no folder of examples at {root}")
    patterns = [] if drafts else draft_patterns()
    found: list[Example] = []
    named: dict[str, Path] = {}
    for path in sorted(root.rglob("*.py")):
        file = relative(path, root)
        if any(part.startswith((".", "_")) for part in file.split("/")):
            continue
        if (other := named.setdefault(name_in(file), path)) != path:
            raise CudatutError(
                f"{shown(other)} and {shown(path)} are both called {name_in(file)}: give one of them another name"
            )
        # One in progress is not even read: its header may be half written.
        if not matches(file, patterns) and (example := _read(path)) is not None:
            found.append(example)
    return sorted(found, key=lambda example: example.name)


def draft_patterns() -> list[str]:
    """Patterns of examples/drafts.txt, such as `basics/registers*`: one a line, `#` begins a comment."""
    path = paths.examples_dir() / "drafts.txt"
    if not path.is_file():
        return []
    lines = (line.partition("#")[0].strip() for line in read_text(path).splitlines())
    return [line for line in lines if line]


def matches(file: str, patterns: list[str]) -> bool:
    """Whether a file, relative to examples/, belongs to an example in progress: by its place, or by the name that it gives."""
    names = (file.rpartition(".")[0], name_in(file))
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


@cache  # by what the file says
def moves_in(text: str) -> dict[str, str]:
    """Old places and new ones, as moved.yml says with this text. Raises CudatutError for what is no such list."""
    found = _yaml(text, f"examples/{MOVED}")
    if not isinstance(found, dict) or {type(x) for pair in found.items() for x in pair} - {str}:
        raise CudatutError(f"examples/{MOVED}: each line must be 'old place: new place'")
    return found


def moved() -> dict[str, str]:
    """Where files of the examples lay before, and where they lie now: examples/moved.yml. Raises CudatutError."""
    path = paths.examples_dir() / MOVED
    return moves_in(read_text(path)) if path.is_file() else {}


def renamed() -> dict[str, str]:
    """Old names of examples, and of what else lay in a script that moved, and what they are called now."""
    scripts = ((old, new) for old, new in moved().items() if old.endswith(".py"))
    names = ((name_in(old), name_in(new)) for old, new in scripts)
    return {old: new for old, new in names if old != new}


def name_of(path: Path) -> str:
    """The name of the example in a file of the examples."""
    return name_in(relative(path, paths.examples_dir()))


def name_in(file: str) -> str:
    """The name of the example in a file relative to examples/: 'llm/softmax' for llm/softmax/chapter.py, 'llm/softmax_claims'
    for claims.py beside it, 'start/add' for start/add.py, a file without a folder of its own.
    """
    *folders, stem = file.rpartition(".")[0].split("/")
    if len(folders) != 2:
        return "/".join([*folders, stem])
    part, chapter = folders
    return f"{part}/{chapter}" if stem == CHAPTER else f"{part}/{chapter}_{stem}"


def script_in(name: str, files: Iterable[str]) -> str | None:
    """Of files relative to examples/ the script of an example, if it is among them."""
    return next((one for one in files if one.endswith(".py") and name_in(one) == name), None)


def path_of(name: str) -> Path:
    """Where the script of an example lies, or would lie: the reverse of `name_of`."""
    root = paths.examples_dir()
    if (flat := root / f"{name}.py").is_file():
        return flat
    part, _, stem = name.partition("/")
    words = stem.split("_")
    for count in range(len(words), 0, -1):
        folder, own = "_".join(words[:count]), "_".join(words[count:]) or CHAPTER
        if (path := root / part / folder / f"{own}.py").is_file():
            return path
    return root / part / stem / f"{CHAPTER}.py"


def plain(name: str) -> str:
    """A name from what somebody typed: also a path to the example's .py, .cu or .ipynb, of today or before a move."""
    bare = _bare(name)
    path = paths.examples_dir() / moved().get(f"{bare}.py", f"{bare}.py")
    if path.is_file() and path.suffix == ".py":
        return name_of(path)
    # A kernel in a chapter's folder has the name of an example, and not that of its script.
    kernel = re.fullmatch(r"(\w+)/(\w+)/(\2(?:_\w+)?)", bare)
    return f"{kernel[1]}/{kernel[3]}" if kernel else bare


def _bare(name: str) -> str:
    """What somebody typed, without the folders and the ending that name a file of it."""
    name = name.replace("\\", "/").removeprefix("./").removeprefix("examples/")
    name = re.sub(r"^recordings/[^/]+/", "", name)
    return re.sub(r"\.(py|cu|ipynb)$", "", name).strip("/")


def get(name: str) -> Example:
    """The example of this name; a path to its .py, .cu or .ipynb will do too. Raises UnknownExampleError."""
    wanted, root = plain(name), paths.examples_dir()
    path = path_of(wanted)
    if path.is_file() and path.resolve().is_relative_to(root) and (example := _read(path)):
        if (old := f"{_bare(name)}.py") in moved() and name_in(old) != example.name:
            print(_say("moved", old=name_in(old), new=example.name), file=sys.stderr)
        return example
    if wanted.endswith(EXERCISES) and path.is_file():
        chapter = wanted.removesuffix(EXERCISES)
        raise UnknownExampleError(_say("beginnings", name=wanted, chapter=chapter))
    hint = did_you_mean(wanted, [example.name for example in examples()])
    raise UnknownExampleError(_say("no example", name=name, hint=hint))


def did_you_mean(wanted: str, known: list[str]) -> str:
    """' Did you mean start/errors?' where some of the known names are close, as a whole or without the part; else ''."""
    stem = wanted.rpartition("/")[2]
    stems = difflib.get_close_matches(stem, [name.rpartition("/")[2] for name in known])
    close = [name for stem in stems for name in known if name.rpartition("/")[2] == stem]
    close += difflib.get_close_matches(wanted, known, cutoff=0.8)
    return _say("did you mean", names=_say("or").join(dict.fromkeys(close))) if close else ""


def relative(path: Path, root: Path) -> str:
    """Name of an example file in recordings and lists: relative to examples/, with "/" on every system."""
    return path.relative_to(root).as_posix()


def shown(path: Path) -> str:
    """A file's name in messages."""
    root = paths.examples_dir()
    return f"examples/{relative(path, root)}" if path.is_relative_to(root) else str(path)


def header(path: Path) -> dict[str, Any] | None:
    """What the `# ---` header of a Python file says under `jupyter: cudatut:`, or None without a header.

    Raises BadHeaderError for a header that cannot be read.
    """
    return _header(path, read_text(path))


@cache  # by what the file says, so that one that changes is read again
def _header(path: Path, text: str) -> dict[str, Any] | None:
    match = _HEADER.match(text)
    if match is None:
        return None
    lines = (line.removeprefix("#").removeprefix(" ") for line in match[1].splitlines())
    found = _yaml("\n".join(lines), shown(path))
    own = (found.get("jupyter") or {}).get("cudatut") if isinstance(found, dict) else None
    if not isinstance(own, dict):
        raise BadHeaderError(
            f"{shown(path)}: the header lacks 'jupyter: cudatut:'; see docs/en/contributing.md"
        )
    return own


def value_of(
    own: dict[str, Any], where: str, key: str, fits: Callable[[Any], Any], how: str, *default: Any
) -> Any:
    """A value of a header, or the default. Raises BadHeaderError, naming place, key and value, where it does not fit."""
    value = own.get(key, *default)
    if not fits(value):
        raise BadHeaderError(f"{where} {key} is {value!r}; {how}")
    return value


def bilingual(value: Any) -> bool:
    """Whether a header's value is a text in each language."""
    texts = [value.get(lang) for lang in LANGUAGES] if isinstance(value, dict) else [None]
    return all(isinstance(text, str) and text.strip() for text in texts)


def requires(own: dict[str, Any], where: str) -> str:
    """The header's `requires`. Raises BadHeaderError."""
    how = "write it like sm_75 or sm_90a"
    return value_of(own, where, "requires", lambda arch: ARCH.fullmatch(str(arch)), how)


def cells(path: Path) -> dict[str, str]:
    """Code of each named cell of a file, without the blank lines around it."""
    return {
        title: source.strip("\n").rstrip()
        for title, kind, source in cells_of(read_text(path))
        if title and kind == "code"
    }


def cells_of(text: str) -> Iterator[tuple[str, str, str]]:
    """(title, "code" or "markdown", source) of each cell of an example's text, as its notebook has them (jupytext's rules).

    Cells of prose are numbered, md-1, md-2 ..., and lose their comment signs.
    """
    marks = list(_CELL.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    numbers = itertools.count(1)
    for mark, end in zip(marks, ends):
        whole = text[mark.end() : end].removeprefix("\n")
        source = whole.rstrip("\n")
        blank = len(whole) - len(source) - 1  # lines; two of them stand between cells
        source += "\n" * (blank - 1) * (blank > 2)
        if mark["kind"]:
            lines = (line.removeprefix("#").removeprefix(" ") for line in source.split("\n"))
            yield f"md-{next(numbers)}", "markdown", "\n".join(lines)
        else:
            yield mark["title"], "code", source


def sizes(path: Path, own: dict[str, Any] | None = None) -> dict[str, tuple]:
    """`sizes` of the header of any Python file; empty without. Raises BadHeaderError."""
    text = read_text(path)
    return _sizes(path, text, own or _header(path, text) or {})


def _sizes(path: Path, text: str, own: dict[str, Any]) -> dict[str, tuple]:
    try:
        return sizes_of_header.read(own["sizes"], text) if "sizes" in own else {}
    except ValueError as error:
        raise BadHeaderError(f"{shown(path)}: the header's {error}") from error


def _read(path: Path) -> Example | None:
    if name_of(path).endswith(EXERCISES):  # begun by readers: it does not run to its end
        return None
    return _example(path, read_text(path))


@cache  # by what the file says, as `_header`
def _example(path: Path, text: str) -> Example | None:
    own = _header(path, text)
    if own is None:
        if _CELL.search(text):
            raise BadHeaderError(
                f"{shown(path)} has cells but does not begin with a '# ---' header; see docs/en/contributing.md"
            )
        return None
    where = f"{shown(path)}: the header's"
    value, flag = partial(value_of, own, where), lambda found: isinstance(found, bool)
    return Example(
        name=name_of(path),
        path=path,
        title=value("title", bilingual, "it must have 'en' and 'zh'"),
        requires=requires(own, where),
        timeout_s=float(value("timeout_s", _is_time, "give seconds", DEFAULT_TIMEOUT_S)),
        alone=value("alone", flag, "it must be true or false", True),
        long=value("long", flag, "it must be true or false", False),
        extra=value("extra", _EXTRA.fullmatch, "name an extra of pyproject.toml, such as llm", ""),
        sizes=_sizes(path, text, own),
    )


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and value > 0


def _yaml(text: str, shown: str) -> object:
    import yaml

    try:
        return yaml_text.load(text)
    except yaml.YAMLError as error:
        raise BadHeaderError(
            f"{shown}: the header is not YAML: {' '.join(str(error).split())}"
        ) from error


def sources_of(some: Iterable[Example]) -> dict[str, list[str]]:
    """By the names of examples what `Example.sources` gives; of many at once, each file is read once."""
    root, mentioned = paths.examples_dir(), cache(_mentioned)
    return {
        one.name: sorted(relative(path, root) for path in with_includes(one.path, mentioned))
        for one in some
    }


def with_includes(path: Path, mentioned: Callable[[Path], list[Path]] | None = None) -> list[Path]:
    """A file and those among the examples that its text leads to, directly or not, sorted.

    A kernel file leads to the headers that it includes; a .py also to kernel files, modules and examples that it names.
    mentioned: what a file leads to directly, for who has read some already.
    """
    seen, todo = set(), [path]
    while todo:
        if (path := todo.pop()) not in seen:
            seen.add(path)
            todo += (mentioned or _mentioned)(path)
    return sorted(seen)


def imported(text: str, beside: Path, margin: bool = False) -> Iterator[Path]:
    """Where a module of the book would lie that a Python text imports, by its bare name from the folder `beside` or from
    `cudatut.book`; of each import several places, most of which no file has. margin: only imports that are not indented.
    """
    for indented, module, attributes, modules in _IMPORT.findall(text):
        if margin and indented:
            continue
        listed = re.sub(r"#.*", "", attributes or modules).strip("()").split(",")
        names = [words[0] for words in map(str.split, listed) if words]
        for name in [module, *(f"{module}.{name}" for name in names)] if module else names:
            folder = paths.examples_dir() if name.startswith(_BOOK) else beside
            yield folder / f"{name.removeprefix(_BOOK).replace('.', '/')}.py"


def _mentioned(path: Path) -> list[Path]:
    text, beside, root = read_text(path), path.parent, paths.examples_dir()
    candidates = [folder / name for name in _INCLUDE.findall(text) for folder in (beside, root)]
    if path.suffix == ".py":
        candidates += [root / name for name in _KERNEL_FILE.findall(text)]
        named = _EXAMPLE_NAME.findall(text)
        candidates += [root / f"{name}.py" for name in named] + [path_of(name) for name in named]
        candidates += imported(text, beside)
    found = [candidate.resolve() for candidate in candidates if candidate.is_file()]
    return [file for file in found if file.is_relative_to(root)]


def read_text(path: Path) -> str:
    """A file's text; its lines end with \\n on every system."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CudatutError(f"{path} is not UTF-8 text: {error}") from error
