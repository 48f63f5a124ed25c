"""The kernels that the examples' text declares: in `.cu` files and in strings of Python, with macros and instances.

A kernel in a .py file is a string that defines a `__global__` function, wrapped in extern "C" { } as PyCUDA's SourceModule
and `ct.Kernel` do. Comments inside a source say what is meant:

    // expect: compile error      it must not compile
    // expect: spills             registers may spill to local memory
    // requires: sm_80            this source claims less than its example does

A template is compiled for the instances that are named: in a `.cu` file by its `@rung` line and by lines
`// @instance gemm<128, float>`, and in both kinds of source by a call such as `ct.Kernel(source, "gemm<64, half>")`.
"""

import ast
import re
import textwrap
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

from cudatut import catalog, paths
from cudatut.fingerprint.meaning import CUDA
from cudatut.gpu import instances
from cudatut.gpu.signature import kernels
from cudatut.restamp.includes import included

# What the book is compiled for: Turing, A100, RTX 30, RTX 40, H100, B200, RTX 50.
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
ALWAYS = ("90", "120")  # and the lowest that a kernel claims; the others where all are asked for
MAY_DIFFER = re.compile(r"__CUDA_ARCH|#[ \t]*include[ \t]*<")  # from architecture to architecture

DEFINES_KERNEL = re.compile(r"__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\b")


@dataclass(frozen=True)
class Source:
    """CUDA C++ that has to compile: `where` names the file and line, `requires` is like "sm_75"."""

    where: str
    code: str
    requires: str = "sm_75"
    defines: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    wrap: bool = False  # in extern "C" { }
    instances: tuple[str, ...] = ()  # of its templates
    folders: tuple[Path, ...] = field(default=(), compare=False)
    # Parts of its text, or values of its macros, are known to a run only.
    computed: bool = field(default=False, compare=False)

    @property
    def file(self) -> str:
        """Where it lies, relative to the folder that holds the examples."""
        return self.where.partition(":")[0]

    @property
    def line(self) -> int:
        """Of a source in a string the line on which that begins; 0 for a file."""
        return int(self.where.partition(":")[2] or 0)

    def architectures(self, every: bool = True) -> list[str]:
        """Those it claims: every one of the book's from `requires` on; exactly it for "sm_90a"."""
        asked = re.search(r"//\s*requires:\s*(sm_\w+)", self.code)
        number = (asked[1] if asked else self.requires).removeprefix("sm_")
        if not number.isdecimal():
            return [number]
        first, *more = sorted(
            {number, *(str(a) for a in ARCHITECTURES if a >= int(number))}, key=int
        )
        return [first, *(arch for arch in more if every or arch in ALWAYS)]

    def code_for(self, texts: Sequence[str], every: bool = False) -> list[str]:
        """Flags of nvcc; texts: the source and the headers of ours that it includes.

        Unless `every` architecture is asked for, all are assembled from the PTX of the lowest where no text may read
        otherwise for another one: the front end is what costs time, most of it for CUDA's own headers.
        """
        wanted = self.architectures(every)
        if every or any(map(MAY_DIFFER.search, texts)):
            pairs = [(arch, f"sm_{arch}") for arch in wanted]
        else:
            pairs = [(wanted[0], f"[{','.join(f'sm_{arch}' for arch in wanted)}]")]
        return [flag for a, c in pairs for flag in ("-gencode", f"arch=compute_{a},code={c}")]


def sources(more: Iterable[Path] = ()) -> list[Source]:
    """All of them, each once: .cu files (those of the examples and `more`), and strings in the .py of examples."""
    root = paths.examples_dir()
    claims: dict[Path, list[str]] = {}
    examples = catalog.examples(drafts=True)
    made_of = catalog.sources_of(examples)
    for example in examples:
        for name in made_of[example.name]:
            claims.setdefault(root / name, []).append(example.requires)
    order = partial(sorted, key=lambda arch: (len(arch), arch))
    found: list[Source] = []
    for path in sorted([*root.rglob("*.cu"), *more]):
        found += of_file(path, order(set(claims.get(path, ["sm_75"]))))
    for path in sorted(root.rglob("*.py")):
        found += of_script(path, order(claims.get(path, ["sm_75"]))[0])
    return _unique(found)


def including(files: Collection[str]) -> list[Source]:
    """Those that are, or include, one of these files of the examples, whatever GPU they claim."""
    root, wanted = paths.examples_dir(), set(files)
    texts = {
        catalog.relative(path, root): path.read_bytes()
        for path in root.rglob("*")
        if path.suffix in (".py", *CUDA)
    }
    found: list[Source] = []
    for name in sorted(texts):
        if wanted & included([name], texts):
            path = root / name
            found += of_file(path) if name.endswith(".cu") else of_script(path)
    return _unique(found)


def _unique(found: list[Source]) -> list[Source]:
    unique = {
        (s.code, s.requires, s.defines, s.options, s.wrap, s.instances): s for s in reversed(found)
    }
    return sorted(unique.values(), key=lambda source: (source.file, source.line))


def of_file(path: Path, claimed: Sequence[str] = ("sm_75",)) -> list[Source]:
    """The .cu file once for each different set of macros that the examples compile it with."""
    code = path.read_text(encoding="utf-8")
    if "__global__" not in code:
        return []  # host code around a library: tests/cudatut/gpu/test_vendor.py compiles it
    root = paths.examples_dir()
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    variants: dict[tuple, list[str]] = {}
    for call in calls_with(name):
        asked = variants.setdefault((defines_of(call), options_of(call)), [])
        asked += instances_of(call)
    where = place(path)
    folders = (path.parent, root)
    # As ct.Kernel does; a program is compiled by nvcc alone.
    wrap = instances.wrapped(code, "") and not re.search(r"^int main\(", code, re.MULTILINE)
    return [
        Source(
            where,
            code,
            arch,
            defines,
            options,
            wrap,
            unique_names(code, asked),
            folders,
        )
        for (defines, options), asked in sorted((variants or {((), ()): []}).items())
        for arch in claimed
        # An architecture of its own (sm_90a) does not follow from a smaller claim, nor the reverse.
        if arch == claimed[0] or not arch.removeprefix("sm_").isdecimal()
    ]


def of_script(path: Path, requires: str = "sm_75") -> list[Source]:
    """The kernels in the strings of a .py file."""
    text = path.read_text(encoding="utf-8")
    if "__global__" not in text or catalog.name_of(path).endswith(catalog.EXERCISES):
        return []  # those of exercises are stubs, which test_exercises.py compiles behind their givens
    folders = (path.parent, paths.examples_dir())
    found = _of_tree(_tree(path), place(path), 1)
    return [replace(source, requires=requires, folders=folders) for source in found]


def of_python(text: str, where: str, first_line: int = 1) -> list[Source]:
    """Kernels in the strings of Python code, and in the programs that are themselves such strings."""
    return _of_tree(ast.parse(text), where, first_line)


def _of_tree(tree: ast.Module, where: str, first_line: int) -> list[Source]:
    by_name = {
        call_arg.id: call
        for call in calls(tree)
        for call_arg in call.args
        if isinstance(call_arg, ast.Name)
    }
    found = []

    def visit(node: ast.AST, call: ast.Call | None, target: str | None) -> None:
        if isinstance(node, ast.expr) and (code := text_of(node)) is not None:
            if DEFINES_KERNEL.search(code):
                line = first_line + node.lineno - 1
                if is_python(code):
                    found.extend(of_python(textwrap.dedent(code), where, line))
                else:
                    compiling = call or by_name.get(target or "")
                    made = kernel(code, f"{where}:{line}", compiling)
                    fixed = constant(keyword(compiling, "defines"))
                    computed = isinstance(node, ast.JoinedStr) or not fixed
                    found.append(replace(made, computed=computed))
            return
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            target = node.targets[0].id
        if isinstance(node, ast.Call):
            call = node
        for child in ast.iter_child_nodes(node):
            visit(child, call, target)

    visit(tree, None, None)
    return found


def text_of(node: ast.AST) -> str | None:
    """A string's value; of an f-string the fixed parts, with 1 where a value goes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = map(text_of, node.values)
        return "".join("1" if part is None else part for part in parts)
    return None


def is_python(code: str) -> bool:
    try:
        ast.parse(textwrap.dedent(code))
    except SyntaxError:
        return False
    return True


def kernel(code: str, where: str, call: ast.Call | None) -> Source:
    bare = call is not None and any(
        k.arg == "no_extern_c" and isinstance(k.value, ast.Constant) and k.value.value is True
        for k in call.keywords
    )
    named = unique_names(code, instances_of(call))
    wrap = not bare and not named and 'extern "C"' not in code
    return Source(where, code, "sm_75", defines_of(call), options_of(call), wrap, named)


def instances_of(call: ast.Call | None) -> list[str]:
    """The instance that a call compiles, `ct.Kernel(source, "gemm<64>")`: its second argument."""
    if call is None or len(call.args) < 2:
        return []
    name = text_of(call.args[1])
    return [name] if name and re.fullmatch(r"[\w:]+<[^;{}]*>", name) else []


def unique_names(code: str, asked: list[str]) -> tuple[str, ...]:
    """Those and the ones that the source declares, each once: a second of the same is an error to nvcc."""
    return tuple(
        dict.fromkeys([*instances.declared(code), *(instances.normal(name) for name in asked)])
    )


def place(path: Path) -> str:
    """Where a file lies, relative to the folder that holds the examples."""
    above = paths.examples_dir().parent
    return path.relative_to(above).as_posix() if path.is_relative_to(above) else path.name


def calls_with(text: str) -> list[ast.Call]:
    """Calls in the examples that have this text among their arguments."""
    scripts = scripts_with(paths.examples_dir(), text)
    return [call for path in scripts for call in _calls(path) if text in _texts(call)]


def macros_are_hidden(source: Source) -> bool:
    """Whether a run may compile a source with macros that nobody reads off the scripts: with other values than constants.

    So it is with a rung, whose ladder gives them, and with a file that no script names, or one in another place than in the
    call that compiles it.
    """
    if not source.where.endswith(".cu"):
        return False  # of a source in a string, `computed` tells
    if "// @rung" in source.code:
        return True
    name = source.file.partition("/")[2]
    named = sum(
        isinstance(node, ast.Constant) and node.value == name
        for path in scripts_with(paths.examples_dir(), name)
        for node in _nodes(path)
    )
    compiling = [call for call in calls_with(name) if constant(keyword(call, "defines"))]
    return not compiling or named != len(compiling)


def scripts_with(root: Path, text: str) -> list[Path]:
    """The scripts of the examples in which this text stands."""
    return [path for path, code in _scripts(root).items() if text in code]


@cache
def _scripts(root: Path) -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))}


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(_tree(path)))


def _calls(path: Path) -> list[ast.Call]:
    return [node for node in _nodes(path) if isinstance(node, ast.Call)]


def _texts(call: ast.Call) -> list[str]:
    constants = [one.value for one in call.args if isinstance(one, ast.Constant)]
    return [value for value in constants if isinstance(value, str)]


def calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def keyword(call: ast.Call | None, name: str) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == name), None) if call else None


def defines_of(call: ast.Call | None) -> tuple[str, ...]:
    """-D flags of a call; a value that is known only at run time counts as 1."""
    value = keyword(call, "defines")
    if not isinstance(value, ast.Dict):
        return ()
    return tuple(
        f"-D{key.value!s}={str(item.value) if isinstance(item, ast.Constant) else 1}"
        for key, item in zip(value.keys, value.values, strict=True)
        if isinstance(key, ast.Constant)
    )


def constant(value: ast.expr | None) -> bool:
    """Whether a dictionary in a call holds constants alone, or is not given."""
    return value is None or (
        isinstance(value, ast.Dict)
        and all(isinstance(one, ast.Constant) for one in (*value.keys, *value.values))
    )


def options_of(call: ast.Call | None) -> tuple[str, ...]:
    value = keyword(call, "options")
    if not isinstance(value, (ast.List, ast.Tuple)):
        return ()
    return tuple(str(item.value) for item in value.elts if isinstance(item, ast.Constant))


def templates_without_instance(code: str, named: tuple[str, ...]) -> list[str]:
    """The templates of a source of which nobody names an instance: no code is made of them."""
    made = {re.sub(r"^.*::", "", name.partition("<")[0]) for name in named}
    # Or the source launches it, or instantiates it itself.
    used = re.findall(r"(\w+)\s*<[^;{}<]*>\s*(?:<<<|\(\s*[\w:* ]*\)\s*;)", code)
    defined = [kernel.partition("<")[0] for kernel in kernels(code) if "<" in kernel]
    return [name for name in defined if name not in {*made, *used}]
