"""Changes of the book drawn by a seed, harmless and not, each with the verdict that is right by construction.

    python tests/planted/changes.py [--seed N] [--count N]

plants them in a clone (see `judged.py`), prints what `restamp` and `status` make of each, and ends with 1 where a verdict is
wrong. `tests/planted/test_planted.py` does the same with a seed of its own.

A change is harmless where nothing that ran can notice it: then every recording of the file is fresh after `restamp`, without
a GPU. It is not where a run could notice it; then every recording of the file needs a GPU, or the instrument's ledger objects.
"""

import argparse
import ast
import itertools
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cudatut import catalog, paths
from cudatut.fingerprint.meaning import meaning_hash

CUDA = (".cu", ".cuh")
CELL = re.compile(r"^# %%.*$", re.MULTILINE)
CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b", re.MULTILINE)


@dataclass(frozen=True)
class Recorded:
    """What a recording says of its sources: `path` is that of its file, relative to the checkout."""

    path: str
    name: str
    sources: frozenset[str]
    meant: frozenset[str]  # those whose meaning counts
    shows_lines: bool
    aspects: (
        frozenset[str] | None
    )  # of the instrument that it used; None where it names neither that nor its kernels
    kernels: frozenset[tuple[str, str]] = frozenset()  # file and name


@dataclass
class Change:
    """A change, as new contents of files (None: removed), relative to the checkout.

    fresh: by recording, whether it is fresh after `restamp`; unknown: recordings of which that cannot be said.
    objects: whether the instrument's ledger does.
    """

    kind: str
    what: str
    files: dict[str, str | bytes | None]
    fresh: dict[str, bool] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    objects: bool = False

    def __str__(self) -> str:
        right = {True: "fresh", False: "needs a GPU"}
        wanted = sorted({right[one] for one in self.fresh.values()})
        wanted += ["the ledger objects"] * self.objects
        return f"{self.kind}: {self.what} ({len(self.fresh)} recordings: {', '.join(wanted) or 'fresh'})"


class Unfit(Exception):
    """This kind cannot be planted in what was drawn: draw again."""


class Book:
    """A checkout, its files of examples/ and its recordings."""

    def __init__(self, root: Path, recordings: Iterable[Recorded], draw: random.Random):
        self.root, self.recordings, self.draw = root, list(recordings), draw
        folder = root / "examples"
        self.names = sorted(
            path.relative_to(folder).as_posix()
            for path in folder.rglob("*")
            if path.suffix in (".py", *CUDA, ".gguf")
        )
        self.scripts = {name: self.text(name) for name in self.names if name.endswith(".py")}
        self.headers = {name: self.text(name) for name in self.names if name.endswith(CUDA)}

    def text(self, name: str) -> str:
        return (self.root / "examples" / name).read_text(encoding="utf-8")

    def of(self, *names: str) -> list[Recorded]:
        return [one for one in self.recordings if one.sources & set(names)]

    def pick(
        self, suffix: str, fits: Callable[[str], bool] = lambda name: True, most: int = 9
    ) -> str:
        """A file that some recordings have and not more than `most`."""
        found = [name for name in self.names if name.endswith(suffix)]
        found = [name for name in found if 0 < len(self.of(name)) <= most]
        for name in self.draw.sample(found, len(found)):
            if fits(name):
                return name
        raise Unfit(f"no {suffix} fits")

    def harmless(self, kind: str, what: str, files: dict[str, Any], *names: str) -> Change:
        """Whoever reads the text of a file, or shows the numbers of its lines, can notice it all the same.

        names: the files as they were called, relative to the examples, that changed or are gone.
        """
        fresh = {
            one.path: not one.shows_lines and one.sources & set(names) <= one.meant
            for one in self.of(*names)
        }
        return Change(kind, what, _placed(files), fresh)

    def harmful(self, kind: str, what: str, files: dict[str, Any], *names: str) -> Change:
        return Change(kind, what, _placed(files), {one.path: False for one in self.of(*names)})

    def unless_it_ran_none(self, change: Change, file: str) -> Change:
        """The change, without a verdict on recordings that name their kernels and none of this file: another process ran it,
        so that its machine code is compared with nothing.
        """
        for one in self.of(file):
            if one.aspects is not None and all(of != file for of, _ in one.kernels):
                change.unknown.add(one.path)
                change.fresh.pop(one.path, None)
        return change

    def judged_by_code(self, change: Change, file: str, kernels: set[str]) -> Change:
        """The change, without a verdict on recordings that name their kernels and ran none of these `kernels` of the file."""
        for one in self.of(file):
            ran = {name.partition("<")[0] for of, name in one.kernels if of == file}
            if one.aspects is not None and not ran & kernels:
                change.unknown.add(one.path)
                change.fresh.pop(one.path, None)
        return change


def _placed(files: dict[str, Any]) -> dict[str, Any]:
    return {f"examples/{name}": text for name, text in files.items()}


def _all_mean(book: Book, name: str) -> bool:
    """Whether to every recording the meaning of a file counts, so that its code may be compared."""
    return all(name in one.meant and not one.shows_lines for one in book.of(name))


# --- places in a text --------------------------------------------------------------------------------


def statements(text: str) -> list[ast.stmt]:
    """Those before which a line can be put."""
    found = [one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.stmt)]
    return [one for one in found if not getattr(one, "decorator_list", None)]


def lines_of_code(text: str) -> list[int]:
    """The numbers (from 0) of the lines of CUDA C++ after which a line can be put: neither in a macro nor in a comment."""
    found, comment = [], False
    for number, line in enumerate(text.splitlines()):
        comment = (comment or "/*" in line) and "*/" not in line
        if not comment and not line.endswith("\\"):
            found.append(number)
    return found


def body_lines(text: str) -> list[int]:
    """The numbers of the lines inside the kernels of a .cu file that are statements of their own."""
    found, inside, depth = [], False, 0
    for number, line in enumerate(text.splitlines()):
        inside = inside or "__global__" in line
        code = line.split("//")[0]
        if inside and depth > 0 and re.fullmatch(r"\s+[\w\[\].]+ [-+*]?= [^;]*;", code.rstrip()):
            found.append(number)
        depth += code.count("{") - code.count("}")
        if inside and depth == 0 and "}" in code:
            inside = False
    return found


def last_line(node: ast.stmt | ast.expr) -> int:
    """Number of the line on which a piece of Python ends."""
    return node.end_lineno or node.lineno


def with_line(text: str, at: int, line: str) -> str:
    """The text with a line put in before the line of this number."""
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:at], f"{line}\n", *lines[at:]])


def replaced_once(
    text: str, pattern: str, new: Callable[[re.Match], str], draw: random.Random
) -> str:
    """The text with one of the places changed that a pattern finds."""
    found = list(re.finditer(pattern, text, re.MULTILINE))
    if not found:
        raise Unfit(f"nothing like {pattern}")
    one = draw.choice(found)
    return text[: one.start()] + new(one) + text[one.end() :]


def changed_call(text: str, keyword: str, new: Callable[[Any], Any], draw: random.Random) -> str:
    """The text with a constant that a call gives by this keyword replaced."""
    found = [
        one.value
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call)
        for one in call.keywords
        if one.arg == keyword
        and isinstance(one.value, ast.Constant)
        and type(one.value.value) in (int, float)
    ]
    if not found:
        raise Unfit(f"no call gives {keyword}")
    return with_node(text, draw.choice(found), lambda node: repr(new(node.value)))


def with_node(text: str, node: ast.expr, new: Callable[[Any], str]) -> str:
    """The text with an expression on one line replaced."""
    if node.lineno != node.end_lineno:
        raise Unfit("it goes over lines")
    lines = text.splitlines(keepends=True)
    raw = lines[node.lineno - 1].encode()
    raw = raw[: node.col_offset] + new(node).encode() + raw[node.end_col_offset :]
    lines[node.lineno - 1] = raw.decode()
    return "".join(lines)


# --- harmless ----------------------------------------------------------------------------------------


def comment_in_python(book: Book) -> Change:
    name = book.pick(".py")
    text = book.text(name)
    at = book.draw.choice(statements(text)).lineno - 1
    remark = book.draw.choice(["# A remark.", "# 一句说明。", "    # indented anyhow", "# x = 1"])
    if (first := CELL.search(text)) and at < text[: first.end()].count("\n") + 1:
        raise Unfit("before the first cell")
    return book.harmless(
        "comment in Python", f"{name}:{at + 1}", {name: with_line(text, at, remark)}, name
    )


def docstring(book: Book) -> Change:
    def documented(name: str) -> bool:
        return "__doc__" not in book.text(name) and bool(functions(book.text(name)))

    def functions(text: str) -> list[ast.FunctionDef | ast.ClassDef]:
        kinds = (ast.FunctionDef, ast.ClassDef)
        return [
            one
            for one in ast.walk(ast.parse(text))
            if isinstance(one, kinds) and one.body[0].lineno > one.lineno
        ]

    name = book.pick(".py", documented)
    text = book.text(name)
    one = book.draw.choice(functions(text))
    first = one.body[0]
    if ast.get_docstring(one) is None:
        text = with_line(text, first.lineno - 1, f'{" " * first.col_offset}"""What it does."""')
    else:
        lines = text.splitlines(keepends=True)
        new = f'{" " * first.col_offset}"""Other words,\n\n{" " * first.col_offset}in three lines."""\n'
        text = "".join([*lines[: first.lineno - 1], new, *lines[first.end_lineno :]])
    return book.harmless("docstring", f"{name}, {one.name}", {name: text}, name)


def python_written_otherwise(book: Book) -> Change:
    """A module without cells, as Python itself writes it; or parentheses and blank lines in an example."""
    name = book.pick(".py", lambda name: "__doc__" not in book.text(name))
    text = book.text(name)
    if CELL.search(text) is None and book.draw.random() < 0.7:
        return book.harmless(
            "formatting of Python",
            f"{name}, by ast.unparse",
            {name: ast.unparse(ast.parse(text)) + "\n"},
            name,
        )
    values = [
        one.value
        for one in statements(text)
        if isinstance(one, ast.Assign | ast.Return)
        and one.value
        and one.value.lineno == one.value.end_lineno
        and isinstance(one.value, ast.BinOp | ast.Call | ast.Attribute | ast.Subscript)
    ]
    if not values:
        raise Unfit("no value to put in parentheses")
    value = book.draw.choice(values)
    words = ast.get_source_segment(text, value)
    new = with_node(text, value, lambda node: f"({words})")
    return book.harmless(
        "formatting of Python", f"{name}:{value.lineno}, parentheses", {name: new}, name
    )


def prose(book: Book) -> Change:
    """The words of a cell, or of the title."""
    name = book.pick(".py", lambda name: "# %% [markdown]" in book.text(name))
    text = book.text(name)
    if book.draw.random() < 0.3:
        new = replaced_once(text, r'en: "', lambda m: 'en: "Anew: ', book.draw)
        if new.index('en: "Anew') > text.index("# %%"):
            raise Unfit("not the title")
        return book.harmless("title", name, {name: new}, name)
    new = replaced_once(
        text, r"^# %% \[markdown\]\n", lambda m: f"{m[0]}# Other words.\n#\n", book.draw
    )
    return book.harmless("prose", name, {name: new}, name)


def comment_in_inline_kernel(book: Book) -> Change:
    """In a kernel that stands in a string of an example, where nothing but the compiler sees it."""

    def strings(name: str) -> list[ast.Constant]:
        text = book.text(name)
        if not CELL.search(text) or ".source" in text or "PROGRAM" in text:
            return []
        calls = [one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Call) and one.args]
        called = {"Kernel", "SourceModule"}
        calls = [
            one for one in calls if getattr(one.func, "attr", getattr(one.func, "id", "")) in called
        ]
        given = [one.args[0] for one in calls if isinstance(one.args[0], ast.Constant)]
        return [
            one for one in given if "__global__" in str(one.value) and one.lineno < last_line(one)
        ]

    name = book.pick(".py", lambda name: bool(strings(name)))
    one = book.draw.choice(strings(name))
    new = with_line(book.text(name), last_line(one) - 1, "// A remark in the kernel.")
    return book.harmless(
        "comment in a kernel in a string", f"{name}:{one.lineno}", {name: new}, name
    )


def comment_in_cuda(book: Book) -> Change:
    name = book.pick(
        book.draw.choice(CUDA), lambda name: "__LINE__" not in book.text(name), most=12
    )
    text = book.text(name)
    at = book.draw.choice(lines_of_code(text)) + 1
    remark = book.draw.choice(["// A remark.", "/* 一句\n   说明 */", "", '  // "quoted'])
    return book.harmless(
        "comment in CUDA", f"{name}:{at}", {name: with_line(text, at, remark)}, name
    )


def cuda_written_otherwise(book: Book) -> Change:
    name = book.pick(book.draw.choice(CUDA), lambda name: "__LINE__" not in book.text(name))
    lines = book.text(name).splitlines(keepends=True)
    wide = [re.sub(r"^( +)", r"\1\1", line) if not line.startswith("#") else line for line in lines]
    new = (
        re.sub(r"(?<=\w)\s*,[ \t]*(?=\w+[ ,)])", " ,  ", "".join(wide))
        if "#" not in "".join(wide)
        else "".join(wide)
    )
    if '"' in new:
        new = "".join(wide)  # blanks in a string count
    if new == "".join(lines):
        raise Unfit("it has no indentation")
    return book.harmless("formatting of CUDA", name, {name: new}, name)


def module_renamed(book: Book) -> Change:
    """With the imports of all who name it."""
    name = _module_to_move(book)
    folder, stem = _at(name.removesuffix(".py"))
    new = f"{folder}/{stem}_{book.draw.choice(['parts', 'anew', 'x'])}.py"
    files = {name: None, new: book.text(name)} | _with_imports(book, name, new)
    return book.harmless("module renamed", f"{name} to {new}", files, *_known(book, files))


def module_moved(book: Book) -> Change:
    """To another folder, with the imports of all who name it."""
    name = _module_to_move(book)
    folder, stem = _at(name.removesuffix(".py"))
    other = f"{_another_folder(book, folder)}/{stem}"
    if any(one.startswith((f"{other}.py", f"{other}/")) for one in book.names):
        raise Unfit("there is one of this name")
    files = {name: None, f"{other}.py": book.text(name)}
    files |= _with_imports(book, name, f"{other}.py")
    return book.harmless("module moved", f"{name} to {other}.py", files, *_known(book, files))


def _at(name: str) -> tuple[str, str]:
    """The folder of a file, and its name there."""
    folder, _, last = name.rpartition("/")
    return folder, last


def _another_folder(book: Book, folder: str) -> str:
    return book.draw.choice(sorted({_at(one)[0] for one in book.names} - {folder, ""}))


def _dotted(name: str) -> str:
    """A module as others import it from the package of the examples."""
    return "cudatut.book." + name.removesuffix(".py").replace("/", ".")


def _known(book: Book, files: dict[str, Any]) -> list[str]:
    return [name for name in files if name in book.names]


def _module_to_move(book: Book) -> str:
    # Those that the package calls by their names, and those that a script calls by a name that it makes.
    called = ("exercises.py", "/ladder.py", "/autotuning_space.py", "/tuner.py")
    scripts = book.scripts.values()

    def fits(name: str) -> bool:
        text, made = book.text(name), f"{_dotted(_at(name)[0])}.{{"
        own = not CELL.search(text) and not name.endswith(called) and "/" in name
        alone = own and "__file__" not in text and "__name__" not in text
        # A program in a string imports as scripts do, and keeps the old name.
        alone = alone and not any(_imported_in_words(one, name) for one in scripts)
        return alone and bool(_users(book, name)) and not any(made in one for one in scripts)

    return book.pick(".py", fits)


def _imports_of(text: str, name: str) -> list[ast.ImportFrom]:
    """The statements that import from a module, or the module from its folder."""
    folder, stem = _at(name.removesuffix(".py"))
    return [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        and (
            node.module == _dotted(name)
            or (node.module == _dotted(folder) and stem in [one.name for one in node.names])
        )
    ]


def _imported_in_words(text: str, name: str) -> bool:
    """Whether a string of a script imports a module or from it."""
    folder, stem = _at(name.removesuffix(".py"))
    if stem not in text:
        return False
    pattern = rf"from {re.escape(_dotted(folder))}(\.{stem}\b| import .*\b{stem}\b)"
    return any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.search(pattern, node.value)
        for node in ast.walk(ast.parse(text))
    )


def _users(book: Book, name: str) -> dict[str, str]:
    """The scripts that import a module."""
    stem = _at(name.removesuffix(".py"))[1]
    return {
        user: text
        for user, text in book.scripts.items()
        if stem in text and _imports_of(text, name)
    }


def _with_imports(book: Book, name: str, new: str) -> dict[str, str]:
    """The scripts that import a module, with its new name: it is called by that in all of a script, or in its import alone."""
    stem, to = (_at(one.removesuffix(".py"))[1] for one in (name, new))
    changed = {}
    for user, text in _users(book, name).items():
        everywhere = book.draw.random() < 0.5 and to not in text and _only_a_module(text, stem)
        lines = text.splitlines(keepends=True)
        for node in sorted(_imports_of(text, name), key=lambda node: node.lineno, reverse=True):
            indent = " " * node.col_offset
            said = [
                f"{indent}{ast.unparse(one)}\n" for one in _renamed(node, name, new, everywhere)
            ]
            lines[node.lineno - 1 : last_line(node)] = said
        changed[user] = "".join(lines)
        if everywhere:
            changed[user] = re.sub(rf"(?<![\w.\"/]){stem}(?=\.)", to, changed[user])
        ast.parse(changed[user])
    return changed


def _renamed(node: ast.ImportFrom, name: str, new: str, everywhere: bool) -> list[ast.ImportFrom]:
    """A statement that imports a module or from it, by the module's new name. everywhere: what it is called is new, too."""
    if node.module == _dotted(name):
        return [ast.ImportFrom(_dotted(new), node.names, 0)]
    (_, stem), (folder, to) = (_at(one.removesuffix(".py")) for one in (name, new))
    others = [one for one in node.names if one.name != stem]
    bound = [one.asname or (to if everywhere else stem) for one in node.names if one.name == stem]
    own = [ast.alias(to, one if one != to else None) for one in bound]
    rest = [ast.ImportFrom(node.module, others, 0)] if others else []
    return [*rest, ast.ImportFrom(_dotted(folder), own, 0)]


def _only_a_module(text: str, stem: str) -> bool:
    """Whether a name is used as a module alone: each time before a dot, and nowhere in words."""
    uses = re.findall(rf"(?<![\w.]){stem}\b(.?)", text, re.MULTILINE)
    return uses.count(".") == len(uses) - 1


def kernel_renamed(book: Book) -> Change:
    def fits(name: str) -> bool:
        stem = _at(name)[1].removesuffix(".cu")
        used = all(
            any(f'"{name}"' in book.scripts.get(one, "") for one in rec.sources)
            for rec in book.of(name)
        )
        alone = not any(
            f'"{stem}.cu"' in text for text in (*book.scripts.values(), *book.headers.values())
        )
        return used and alone and "@rung" not in book.text(name) and _all_mean(book, name)

    name = book.pick(".cu", fits)
    new = name.replace(".cu", "_renamed.cu")
    users = {
        user: text.replace(f'"{name}"', f'"{new}"')
        for user, text in book.scripts.items()
        if f'"{name}"' in text
    }
    files = {name: None, new: book.text(name)} | users
    return book.harmless("kernel renamed", f"{name} to {new}", files, *_known(book, files))


def header_moved(book: Book) -> Change:
    name, users = _header(book)
    folder, last = _at(name)
    new = f"{_another_folder(book, folder)}/{last}"
    if new in book.names or re.search(r'#include "(?!\w+/)', book.text(name)):
        raise Unfit("there is one of this name, or it includes one beside it")
    files = {name: None, new: book.text(name)}
    files |= {user: _with_include(text, name, user, new) for user, text in users.items()}
    return book.harmless("header moved", f"{name} to {new}", files, *_known(book, files))


def header_merged(book: Book) -> Change:
    """Into the one file that includes it: what is compiled is the same."""
    name, users = _header(book, only=1)
    ((user, text),) = users.items()
    own = re.sub(r"^#pragma once\n", "", book.text(name), flags=re.MULTILINE)
    if re.search(r'#include "', own) or not user.endswith(CUDA) or not _cheap(book, name):
        raise Unfit("it includes others, or takes long to compile")
    line = next(
        one
        for one in text.splitlines()
        if re.search(rf'#include "(?:[\w/]+/)?{re.escape(_at(name)[1])}"', one)
    )
    files = {name: None, user: text.replace(line, own, 1)}
    return book.harmless("headers merged", f"{name} into {user}", files, *_known(book, files))


def _header(book: Book, only: int | None = None) -> tuple[str, dict[str, str]]:
    """A header of which every use is an #include, and the files that include it."""

    def users(name: str) -> dict[str, str]:
        folder, last = _at(name)
        found = {}
        for user, text in {**book.headers, **book.scripts}.items():
            beside = _at(user)[0] == folder and f'#include "{last}"' in text
            if beside or f'#include "{name}"' in text:
                found[user] = text
        return found

    def fits(name: str) -> bool:
        named = any(
            f'"{name}"' in re.sub(rf'#include "{name}"', "", text) for text in book.scripts.values()
        )
        well = (
            not named
            and _all_mean(book, name)
            and all(_all_mean(book, user) for user in users(name))
        )
        return bool(users(name)) and well and (only is None or len(users(name)) == only)

    name = book.pick(".cuh", fits, most=14)
    return name, users(name)


def _with_include(text: str, name: str, user: str, new: str) -> str:
    last = _at(name)[1]
    return text.replace(f'#include "{name}"', f'#include "{new}"').replace(
        f'#include "{last}"', f'#include "{new}"'
    )


def _cheap(book: Book, name: str) -> bool:
    """Whether the kernels of a file are few, small, and compiled as their text says."""

    def files(name: str, seen: set[str]) -> set[str]:
        if name not in seen and name in book.headers:
            seen.add(name)
            for quoted in re.findall(r'#include "([^"]+)"', book.headers[name]):
                for place in (f"{_at(name)[0]}/{quoted}", quoted):
                    files(place, seen)
        return seen

    compiled = [one for one in book.headers if one.endswith(".cu") and name in files(one, set())]
    texts = [book.headers[one] for one in {part for one in compiled for part in files(one, set())}]
    known = "".join(texts)
    small = len(known) < 24_000 and not re.search(r"<cute/|<cutlass/|<cub/|\bmain\s*\(", known)
    plain = all(not CONDITION.search(text) for text in texts)
    instances = known.count("@instance") + known.count("@rung")
    templates = len(re.findall(r"^\s*template[^\n]*\n?[^\n]*__global__", known, re.MULTILINE))
    return bool(compiled) and small and plain and instances <= 6 and templates <= instances


def unused_function(book: Book) -> Change:
    """The compiler leaves it out."""
    name = book.pick(
        book.draw.choice(CUDA), lambda name: _cheap(book, name) and _all_mean(book, name)
    )
    function = "\n__device__ __forceinline__ int never_called(int a) { return 3 * a; }"
    text = book.text(name)
    if 'extern "C"' not in text and name.endswith(".cu") and "template" not in text:
        function = function.replace("\n", "\n// Of no use.\n")
    return book.harmless("unused function", name, {name: text + function + "\n"}, name)


def local_renamed(book: Book) -> Change:
    """A variable of a kernel, everywhere in its file."""
    declared = re.compile(
        r"^\s+(?:const )?(?:int|float|bool|unsigned|size_t) (\w{2,}) = ", re.MULTILINE
    )

    def locals_of(name: str) -> list[str]:
        text, others = (
            book.text(name),
            [one for other, one in book.headers.items() if other != name],
        )
        found = [
            one
            for one in set(declared.findall(text))
            if text.count('"') == text.count('extern "C"') * 2
        ]
        return sorted(
            one
            for one in found
            if not any(re.search(rf"\b{one}\b", text) for text in others if one in text)
            and not re.search(rf"[(,][^;{{}}]*\b{one}\b\s*[,)]\s*{{", text)
        )

    name = book.pick(
        ".cu", lambda name: _cheap(book, name) and _all_mean(book, name) and bool(locals_of(name))
    )
    one = book.draw.choice(locals_of(name))
    new = re.sub(rf"\b{one}\b", f"{one}_renamed", book.text(name))
    change = book.harmless("variable renamed", f"{name}, {one}", {name: new}, name)
    return book.unless_it_ran_none(change, name)


def macro_parameter_renamed(book: Book) -> Change:
    pattern = re.compile(r"^#define \w+\((\w+)[^\n]*(?:(?<=\\)\n[^\n]*)*", re.MULTILINE)

    def fits(name: str) -> bool:
        text = book.text(name)
        return bool(pattern.search(text)) and _cheap(book, name) and _all_mean(book, name)

    name = book.pick(".cu", fits)
    found = book.draw.choice(list(pattern.finditer(book.text(name))))
    macro = re.sub(rf"\b{found[1]}\b", f"{found[1]}_", found[0])
    new = book.text(name).replace(found[0], macro)
    change = book.harmless("parameter of a macro renamed", f"{name}, {found[1]}", {name: new}, name)
    return book.unless_it_ran_none(change, name)


def number_spelled_otherwise(book: Book) -> Change:
    name = book.pick(".cu", lambda name: _cheap(book, name) and _all_mean(book, name))
    text = book.text(name)
    at = [
        one
        for one in body_lines(text)
        if re.search(r"(?<![\w.])\d+(?![\w.])", text.splitlines()[one])
    ]
    if not at:
        raise Unfit("no number in a kernel")
    lines = text.splitlines(keepends=True)
    one = book.draw.choice(at)
    lines[one] = re.sub(
        r"(?<![\w.])(\d+)(?![\w.])", lambda m: f"({hex(int(m[1]))})", lines[one], count=1
    )
    return book.harmless(
        "number spelled otherwise", f"{name}:{one + 1}", {name: "".join(lines)}, name
    )


def beside_the_recordings(book: Book) -> Change:
    """Files that no recording has: a new module and a new kernel."""
    part = book.draw.choice(["basics", "llm", "gemm"])
    files = {f"{part}/new_thing.py": "X = 1\n", f"{part}/new_thing.cu": "__device__ int x;\n"}
    return book.harmless("new files", ", ".join(files), files)


# --- harmful -----------------------------------------------------------------------------------------


def comment_where_lines_are_shown(book: Book) -> Change:
    """Of one line less or more all numbers below change."""
    shown = {source for one in book.recordings if one.shows_lines for source in one.sources}
    names = [name for name in book.names if name in shown and name.endswith((".py", ".cu"))]
    names = [
        name for name in names if len(book.of(name)) <= 9 and "__LINE__" not in book.text(name)
    ]
    name = book.draw.choice(names)
    text = book.text(name)
    if name.endswith(".py"):
        last = statements(text)[-1]
        new = with_line(text, last.lineno - 1, "# A remark.")
    else:
        new = with_line(text, book.draw.choice(lines_of_code(text)) + 1, "// A remark.")
    return book.harmless("comment where lines are shown", name, {name: new}, name)


def comment_where_text_is_read(book: Book) -> Change:
    """Somebody may print it."""
    read = {
        source
        for one in book.recordings
        for source in one.sources - one.meant
        if source.endswith(CUDA)
    }
    names = [name for name in sorted(read) if len(book.of(name)) <= 9]
    name = book.draw.choice(names)
    new = with_line(
        book.text(name), book.draw.choice(lines_of_code(book.text(name))) + 1, "// A remark."
    )
    return book.harmless("comment where text is read", name, {name: new}, name)


def constant_in_kernel(book: Book) -> Change:
    name = book.pick(".cu", lambda name: bool(body_lines(book.text(name))))
    lines = book.text(name).splitlines(keepends=True)
    at = [
        one
        for one in body_lines(book.text(name))
        if re.search(r"= [^;]*(?<![\w.])\d+(?:\.\d+f)?(?![\w.])", lines[one])
    ]
    if not at:
        raise Unfit("no number in a kernel")
    one = book.draw.choice(at)
    head, _, value = lines[one].partition("= ")
    value = re.sub(r"(?<![\w.])(\d+)", lambda m: str(int(m[1]) + 1), value, count=1)
    lines[one] = f"{head}= {value}"
    change = book.harmful("constant in a kernel", f"{name}:{one + 1}", {name: "".join(lines)}, name)
    # Those that name their kernels are judged by the machine code of these: whoever runs another one of the file need not care.
    return book.judged_by_code(change, name, _kernels_around("".join(lines[:one])))


_THREAD = re.compile(
    r"^([^/\n]*[^\w/.\n]) *threadIdx\.x\b", re.MULTILINE
)  # in code, not in a comment


def another_thread(book: Book) -> Change:
    name = book.pick(".cu", lambda name: bool(_THREAD.search(book.text(name))))
    text = book.text(name)
    place = book.draw.choice(list(_THREAD.finditer(text)))
    new = f"{text[: place.start()]}{place[1]} (threadIdx.x ^ 1){text[place.end() :]}"
    change = book.harmful("another thread", name, {name: new}, name)
    return book.judged_by_code(change, name, _kernels_around(text[: place.start()]))


def _kernels_around(before: str) -> set[str]:
    """The name of the kernel that the text before a place is in the middle of."""
    said = re.findall(r"\b(\w+)\s*\(", before.rpartition("__global__")[2])
    return {word for word in said if not word.startswith("__")}


def another_unroll(book: Book) -> Change:
    name = book.pick(
        ".cu", lambda name: re.search(r"^\s*#pragma unroll$", book.text(name), re.M) is not None
    )
    new = re.sub(
        r"^(\s*)#pragma unroll$", r"\1#pragma unroll 1", book.text(name), flags=re.MULTILINE
    )
    change = book.harmful("unroll", name, {name: new}, name)
    # Of a loop of one step the machine code is the same.
    return book.judged_by_code(change, name, set())


def a_parameter(book: Book) -> Change:
    """Python converts and checks what it gives by the types that stand there."""
    name = book.pick(
        ".cu",
        lambda name: bool(re.search(r"__global__[^{;]*\bint (?:m|n|k|length)\b", book.text(name))),
    )
    new = replaced_once(
        book.text(name),
        r"(__global__[^{;]*?)\bint (m|n|k|length)\b",
        lambda m: f"{m[1]}unsigned {m[2]}",
        book.draw,
    )
    return book.harmful("type of a parameter", name, {name: new}, name)


def rung_block(book: Book) -> Change:
    """How a ladder launches its kernel stands in a comment."""
    name = book.pick(
        ".cu",
        lambda name: bool(re.search(r"^// @rung .*block=\d+", book.text(name), re.M)),
        most=99,
    )
    new = re.sub(
        r"^(// @rung .*block=)(\d+)",
        lambda m: f"{m[1]}{int(m[2]) // 2}",
        book.text(name),
        flags=re.MULTILINE,
    )
    return book.harmful("block of a rung", name, {name: new}, name)


def launch_block(book: Book) -> Change:
    name = book.pick(".py", lambda name: re.search(r"\bblock=\d", book.text(name)) is not None)
    new = changed_call(book.text(name), "block", lambda value: value * 2, book.draw)
    return book.harmful("block of a launch", name, {name: new}, name)


def tolerance(book: Book) -> Change:
    name = book.pick(".py", lambda name: re.search(r"\b[ar]tol=\d", book.text(name)) is not None)
    word = "rtol" if "rtol=" in book.text(name) and book.draw.random() < 0.5 else "atol"
    new = changed_call(book.text(name), word, lambda value: value + 1, book.draw)
    return book.harmful("tolerance of a check", name, {name: new}, name)


def random_seed(book: Book) -> Change:
    name = book.pick(".py", lambda name: re.search(r"\brng\(\d+\)", book.text(name)) is not None)
    new = replaced_once(
        book.text(name), r"\brng\((\d+)\)", lambda m: f"rng({int(m[1]) + 1})", book.draw
    )
    return book.harmful("random seed", name, {name: new}, name)


def kernel_option(book: Book) -> Change:
    pattern = r'\b(ct\.Kernel\("[\w/.]+", "[^"]+")\)'
    name = book.pick(".py", lambda name: re.search(pattern, book.text(name)) is not None)
    new = replaced_once(
        book.text(name), pattern, lambda m: f'{m[1]}, options=["-use_fast_math"])', book.draw
    )
    return book.harmful("option of a kernel", name, {name: new}, name)


def order_of_statements(book: Book) -> Change:
    def pairs(name: str) -> list[tuple[ast.stmt, ast.stmt]]:
        text, found = book.text(name), []
        for node in ast.walk(ast.parse(text)):
            body = getattr(node, "body", None)
            for one, other in itertools.pairwise(body) if isinstance(body, list) else ():
                calls = isinstance(one, ast.Expr) and isinstance(other, ast.Expr)
                whole = other.lineno == one.end_lineno + 1
                if calls and whole and ast.dump(one) != ast.dump(other):
                    found.append((one, other))
        return found

    name = book.pick(".py", lambda name: bool(pairs(name)))
    one, other = book.draw.choice(pairs(name))
    lines = book.text(name).splitlines(keepends=True)
    first = lines[one.lineno - 1 : one.end_lineno]
    second = lines[other.lineno - 1 : other.end_lineno]
    lines[one.lineno - 1 : other.end_lineno] = [*second, *first]
    return book.harmful("order of statements", f"{name}:{one.lineno}", {name: "".join(lines)}, name)


def value_hidden(book: Book) -> Change:
    """A notebook shows the value of a cell's last statement, unless a semicolon follows."""

    def shown(name: str) -> list[int]:
        text = book.text(name)
        marks = [*CELL.finditer(text)]
        ends = [mark.start() for mark in marks[1:]] + [len(text)]
        found = []
        for mark, end in zip(marks, ends):
            code = text[mark.end() : end]
            if "[markdown]" not in mark[0] and code.strip():
                last = ast.parse(code).body[-1:]
                line = code.splitlines()[last_line(last[0]) - 1] if last else ""
                if last and isinstance(last[0], ast.Expr) and "#" not in line:
                    found.append(text[: mark.end()].count("\n") + last_line(last[0]) - 1)
        return found

    name = book.pick(".py", lambda name: bool(CELL.search(book.text(name))) and bool(shown(name)))
    at = book.draw.choice(shown(name))
    lines = book.text(name).splitlines(keepends=True)
    lines[at] = lines[at].rstrip("\n") + ";\n"
    return book.harmful("value of a cell hidden", f"{name}:{at + 1}", {name: "".join(lines)}, name)


def cell_renamed(book: Book) -> Change:
    name = book.pick(".py", lambda name: bool(re.search(r"^# %% [a-z]", book.text(name), re.M)))
    new = replaced_once(book.text(name), r"^# %% [a-z0-9-]+$", lambda m: f"{m[0]}-anew", book.draw)
    return book.harmful("cell renamed", name, {name: new}, name)


def header_sizes(book: Book) -> Change:
    """What a sanitizer sees instead of the size that the code gives."""
    pattern = r"^(#     sizes: \{\w+: \[\d+, )(\d+)(?=\])"
    name = book.pick(".py", lambda name: re.search(pattern, book.text(name), re.M) is not None)
    new = re.sub(
        pattern,
        lambda m: f"{m[1]}{int(m[2]) + 1}",
        book.text(name),
        count=1,
        flags=re.MULTILINE,
    )
    return book.harmful("sizes of the header", name, {name: new}, name)


def constant_in_module(book: Book) -> Change:
    def numbers(name: str) -> list[ast.Constant]:
        nodes = ast.walk(ast.parse(book.text(name)))
        return [
            one
            for one in nodes
            if isinstance(one, ast.Constant) and type(one.value) is int and one.value > 1
        ]

    name = book.pick(".py", lambda name: not CELL.search(book.text(name)) and bool(numbers(name)))
    one = book.draw.choice(numbers(name))
    new = with_node(book.text(name), one, lambda node: str(node.value + 1))
    ast.parse(new)
    return book.harmful("constant in a module", f"{name}:{one.lineno}", {name: new}, name)


def module_moved_away(book: Book) -> Change:
    """And those that import it are left as they were."""
    name = _module_to_move(book)
    new = name.replace(".py", "_elsewhere.py")
    return book.harmful(
        "module moved away", f"{name} to {new}", {name: None, new: book.text(name)}, name
    )


def kernel_moved_away(book: Book) -> Change:
    name = book.pick(".cu")
    new = name.replace(".cu", "_elsewhere.cu")
    return book.harmful(
        "kernel moved away", f"{name} to {new}", {name: None, new: book.text(name)}, name
    )


def header_shadowed(book: Book) -> Change:
    """A new file that the compiler finds before the one that was meant."""
    pattern = re.compile(r'^#include "([\w/]+/\w+\.cuh)"$', re.MULTILINE)
    name = book.pick(".cu", lambda name: bool(pattern.search(book.text(name))))
    meant = book.draw.choice(pattern.findall(book.text(name)))
    folder = _at(name)[0]
    new = f"{folder}/{meant}"
    users = [
        one
        for one, text in book.headers.items()
        if _at(one)[0] == folder and f'#include "{meant}"' in text
    ]
    text = f"{book.text(meant)}\n#define SHADOWED 1\n"
    change = book.harmful("header shadowed", f"{meant} by {new}", {new: text}, *users)
    # A script may read a kernel's text and replace the include: what it compiles has no such header.
    included = {one.path for one in book.of(meant)}
    change.fresh = {path: fresh for path, fresh in change.fresh.items() if path in included}
    # One of another folder may compile that text from its own, which has no such header.
    others = {
        one.path
        for one in book.recordings
        if one.path in change.fresh and _folder_of(one.name) != folder
    }
    change.unknown |= others
    change.fresh = {path: fresh for path, fresh in change.fresh.items() if path not in others}
    return change


def _folder_of(example: str) -> str:
    """The folder of an example's script, relative to the examples."""
    return catalog.path_of(example).parent.relative_to(paths.examples_dir()).as_posix()


def module_shadowed(book: Book) -> Change:
    """A new module that Python finds before the library of its name."""
    importing = [
        name
        for name, text in book.scripts.items()
        if re.search(r"^import numpy as np$", text, re.MULTILINE)
    ]
    recorded = {one.name for one in book.recordings}
    folders = {_at(one)[0] for one in importing if catalog.name_in(one) in recorded}
    folder = book.draw.choice(sorted(folders))
    users = [name for name in importing if _at(name)[0] == folder]
    files = {f"{folder}/numpy.py": "pi = 3\n"}
    change = book.harmful("library shadowed", f"numpy by {folder}/numpy.py", files)
    # Whoever has none of these among its sources has numpy from elsewhere.
    own = {catalog.name_in(user) for user in users}
    change.fresh.update({one.path: False for one in book.recordings if one.name in own})
    change.unknown.update(one.path for one in book.of(*users) if one.path not in change.fresh)
    return change


def data_changed(book: Book) -> Change:
    name = "llm/model/tang.gguf"
    if not book.of(name):
        raise Unfit("no recording says that it reads it")
    raw = bytearray((book.root / "examples" / name).read_bytes())
    raw[book.draw.randrange(len(raw))] ^= 1
    return book.harmful("data that is read", name, {name: bytes(raw)}, name)


# --- the instrument ----------------------------------------------------------------------------------

LEDGER = "cudatut/instrument.yml"


def _instrument(book: Book, suffix: str, fits: Callable[[str], bool]) -> tuple[str, str]:
    listed = yaml.safe_load((book.root / LEDGER).read_text(encoding="utf-8"))["files"]
    texts = {
        name: (book.root / "cudatut" / name).read_text(encoding="utf-8") for name in sorted(listed)
    }
    texts = {name: text for name, text in texts.items() if name.endswith(suffix) and fits(text)}
    if not texts:
        raise Unfit("no file of the instrument fits")
    name = book.draw.choice(sorted(texts))
    return name, texts[name]


def comment_in_instrument(book: Book) -> Change:
    name, text = _instrument(book, ".py", lambda text: True)
    at = book.draw.choice(statements(text)).lineno - 1
    return Change(
        "comment in the instrument", name, {f"cudatut/{name}": with_line(text, at, "# A remark.")}
    )


def instrument_tolerance(book: Book) -> Change:
    name = "gpu/check.py"
    text = (book.root / "cudatut" / name).read_text(encoding="utf-8")
    new = replaced_once(text, r"(?<=float32\": )1e-5", lambda m: "1e5", book.draw)
    return Change("tolerance of ct.check", name, {f"cudatut/{name}": new}, objects=True)


def instrument_without_flush(book: Book) -> Change:
    name, text = _instrument(
        book, "timing.py", lambda text: bool(re.search(r"^\s+flush_l2\(\)", text, re.M))
    )
    new = replaced_once(text, r"^(\s+)flush_l2\(\)", lambda m: f"{m[1]}pass", book.draw)
    return Change("flush of the L2 cache", name, {f"cudatut/{name}": new}, objects=True)


def instrument_probe(book: Book) -> Change:
    name, text = _instrument(book, ".cu", lambda text: True)
    new = replaced_once(
        text, r"(?<=[=*+<] )(\d+)(?=[;,) ])", lambda m: str(int(m[1]) + 1), book.draw
    )
    return Change("probe", name, {f"cudatut/{name}": new}, objects=True)


def instrument_constant(book: Book) -> Change:
    name, new = _other_instrument(book)
    return Change("constant of the instrument", name, {f"cudatut/{name}": new}, objects=True)


def _other_instrument(book: Book) -> tuple[str, str]:
    name, text = _instrument(book, ".py", lambda text: True)
    nodes = [one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Constant)]
    numbers = [one for one in nodes if type(one.value) in (int, float) and one.value]
    if not numbers:
        raise Unfit("no number")
    one = book.draw.choice(numbers)
    return name, with_node(text, one, lambda node: repr(node.value + 1))


def _with_ledger(
    book: Book, name: str, new: str, change: Callable[[dict, str], None]
) -> dict[str, str | bytes | None]:
    """A changed file of the instrument, and the ledger; change: what to do with it, given the new meaning."""
    ledger = yaml.safe_load((book.root / LEDGER).read_text(encoding="utf-8"))
    ledger["same"] = ledger["same"] or []
    change(ledger, str(meaning_hash(name, new.encode())))
    return {f"cudatut/{name}": new, LEDGER: yaml.safe_dump(ledger, sort_keys=False)}


def instrument_told_why(book: Book) -> Change:
    """An entry says why no value can move."""
    name, new = _other_instrument(book)

    def entry(ledger: dict, meaning: str) -> None:
        ledger["same"].append({"file": name, "meaning": meaning, "why": "the constant is for show"})

    files = _with_ledger(book, name, new, entry)
    return Change(
        "instrument changed, with a reason",
        name,
        files,
        {one.path: True for one in book.recordings if one.aspects is not None},
    )


def instrument_told_nothing(book: Book) -> Change:
    """An entry without a reason."""
    name, new = _other_instrument(book)

    def entry(ledger: dict, meaning: str) -> None:
        ledger["same"].append({"file": name, "meaning": meaning, "why": " "})

    return Change(
        "instrument changed, without a reason",
        name,
        _with_ledger(book, name, new, entry),
        objects=True,
    )


def _have_meaning(ledger: dict, name: str, meaning: str) -> None:
    """Write a meaning down, and leave out what was said of the one before."""
    ledger["files"][name]["meaning"] = meaning
    ledger["same"] = [one for one in ledger["same"] if one["file"] != name]


def instrument_raised(book: Book) -> Change:
    """The number is raised: what used it is stale, and nothing else."""
    name, new = _other_instrument(book)

    def raised(ledger: dict, meaning: str) -> None:
        _have_meaning(ledger, name, meaning)
        for aspect in ledger["files"][name]["of"]:
            ledger["numbers"][aspect] += 1

    files = _with_ledger(book, name, new, raised)
    return Change("instrument raised", name, files, _of_its_aspects(book, name))


def instrument_written_over(book: Book) -> Change:
    """The ledger has the new meaning, and the number is the old one."""
    name, new = _other_instrument(book)

    def over(ledger: dict, meaning: str) -> None:
        _have_meaning(ledger, name, meaning)

    files = _with_ledger(book, name, new, over)
    return Change("meaning in the ledger written over", name, files, _of_its_aspects(book, name))


def _of_its_aspects(book: Book, name: str) -> dict[str, bool]:
    """Of each recording that names its instrument, whether a change in that file leaves it fresh: it used none of its aspects."""
    of = set(yaml.safe_load((book.root / LEDGER).read_text(encoding="utf-8"))["files"][name]["of"])
    named = {one.path: one.aspects for one in book.recordings if one.aspects is not None}
    return {path: not of & aspects for path, aspects in named.items()}


# --- drawing -----------------------------------------------------------------------------------------

HARMLESS = (
    comment_in_python, docstring, python_written_otherwise, prose, comment_in_inline_kernel, comment_in_cuda,
    cuda_written_otherwise, module_renamed, module_moved, kernel_renamed, header_moved, header_merged, unused_function,
    local_renamed, macro_parameter_renamed, number_spelled_otherwise, beside_the_recordings, comment_in_instrument, instrument_told_why,
)  # fmt: skip
HARMFUL = (
    comment_where_lines_are_shown, comment_where_text_is_read, constant_in_kernel, another_thread, another_unroll,
    a_parameter, rung_block, launch_block, tolerance, random_seed, kernel_option, order_of_statements, value_hidden,
    cell_renamed, header_sizes, constant_in_module, header_shadowed, module_shadowed, module_moved_away, kernel_moved_away, data_changed,
)  # fmt: skip
OF_THE_INSTRUMENT = (  # harmful, too
    instrument_tolerance, instrument_without_flush, instrument_probe, instrument_constant, instrument_told_nothing,
    instrument_raised, instrument_written_over,
)  # fmt: skip


def drawn(book: Book, count: int) -> list[Change]:
    """So many changes, half of them harmless, an eighth in what measures; each kind comes before any comes twice."""
    found: list[Change] = []
    known: set[str] = set()
    measures = -(-count // 8)
    several = (HARMLESS, count // 2), (HARMFUL, count - count // 2 - measures), (OF_THE_INSTRUMENT, measures)  # fmt: skip
    for kinds, many in several:
        waiting = _in_turns(kinds, book.draw)
        found += [_planted(book, waiting, known) for _ in range(many)]
    return found


def _in_turns(
    kinds: tuple[Callable[[Book], Change], ...], draw: random.Random
) -> Iterator[Callable]:
    while True:
        yield from draw.sample(kinds, len(kinds))


def _planted(book: Book, waiting: Iterator[Callable[[Book], Change]], known: set[str]) -> Change:
    """The first change that can be planted and is not among those that are known by their words."""
    for kind in waiting:
        for _ in range(20):
            with suppress(Unfit):
                change = kind(book)
                if str(change) not in known:
                    known.add(str(change))
                    return change
    raise AssertionError("no kind fits")


def main() -> int:
    """Draw, plant, ask, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--count", type=int, default=40)
    options = parser.parse_args()
    from judged import judged

    print(f"seed {options.seed}")
    wrong = 0
    for change, problems in judged(options.seed, options.count):
        print(
            f"{'wrong' if problems else 'right'}  {change}",
            *(f"       {one}" for one in problems),
            sep="\n",
            flush=True,
        )
        wrong += bool(problems)
    print(f"{options.count - wrong} of {options.count} verdicts are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
