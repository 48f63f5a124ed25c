"""Every kernel of the book, compiled by the real nvcc.

Needs nvcc (a toolkit's, or the one that `make test` installs from PyPI) and a host compiler, no GPU. For the lowest
compute capability that a kernel claims, for 9.0 and for 12.0; with --all-architectures for every one that it claims.

A kernel in a .py file is a string that defines a `__global__` function, wrapped in extern "C" { } as
PyCUDA's SourceModule and `ct.Kernel` do. Comments inside a source say what is meant:

    // expect: compile error      it must not compile
    // expect: spills             registers may spill to local memory
    // requires: sm_80            this source claims less than its example does

A template is compiled for the instances that are named: in a `.cu` file by its `@rung` line and by lines
`// @instance gemm<128, float>`, and in both kinds of source by a call such as `ct.Kernel(source, "gemm<64, half>")`.
"""

import ast
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import pytest

from cudatut import catalog
from cudatut.gpu import instances, nvcc
from cudatut.gpu.signature import kernels

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

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


def sources() -> list[Source]:
    """All of them, each once: .cu files, and strings in the .py of examples."""
    claims: dict[Path, list[str]] = {}
    for example in catalog.examples(drafts=True):
        for name in example.sources():
            claims.setdefault(EXAMPLES / name, []).append(example.requires)
    found: list[Source] = []
    for path in sorted([*EXAMPLES.rglob("*.cu"), *(ROOT / "cudatut").rglob("*.cu")]):
        if "__global__" not in path.read_text(encoding="utf-8"):
            continue  # host code around a library: tests/cudatut/gpu/test_vendor.py compiles it
        found += of_file(
            path, sorted(set(claims.get(path, ["sm_75"])), key=lambda arch: (len(arch), arch))
        )
    for path in sorted(EXAMPLES.rglob("*.py")):
        if path.stem.endswith(catalog.EXERCISES):
            continue  # stubs, which test_exercises.py compiles behind their givens
        claimed = claims.get(path, ["sm_75"])
        requires = min(claimed, key=lambda arch: (len(arch), arch))
        for source in of_python(
            path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
        ):
            found.append(replace(source, requires=requires, folders=(path.parent, EXAMPLES)))
    unique = {
        (s.code, s.requires, s.defines, s.options, s.wrap, s.instances): s for s in reversed(found)
    }
    return sorted(unique.values(), key=lambda source: source.where)


def of_file(path: Path, claimed: list[str]) -> list[Source]:
    """The .cu file once for each different set of macros that the examples compile it with."""
    code = path.read_text(encoding="utf-8")
    name = path.relative_to(EXAMPLES).as_posix() if path.is_relative_to(EXAMPLES) else path.name
    variants: dict[tuple, list[str]] = {}
    for call in calls_with().get(name, ()):
        asked = variants.setdefault((defines_of(call), options_of(call)), [])
        asked += instances_of(call)
    where = path.relative_to(ROOT).as_posix()
    folders = (path.parent, EXAMPLES)
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


def of_python(text: str, where: str, first_line: int = 1) -> list[Source]:
    """Kernels in the strings of Python code, and in the programs that are themselves such strings."""
    tree = ast.parse(text)
    by_name = {
        call_arg.id: call
        for call in calls(tree)
        for call_arg in call.args
        if isinstance(call_arg, ast.Name)
    }
    found = []

    def visit(node: ast.AST, call: ast.Call | None, target: str | None) -> None:
        code = text_of(node)
        if code is not None:
            if DEFINES_KERNEL.search(code):
                line = first_line + node.lineno - 1
                if is_python(code):
                    found.extend(of_python(textwrap.dedent(code), where, line))
                else:
                    found.append(kernel(code, f"{where}:{line}", call or by_name.get(target or "")))
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
        return "".join(p.value if isinstance(p, ast.Constant) else "1" for p in node.values)
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


@cache
def calls_with() -> dict[str, list[ast.Call]]:
    """Calls in the examples by each text among their arguments."""
    found: dict[str, list[ast.Call]] = {}
    for script in EXAMPLES.rglob("*.py"):
        for call in calls(ast.parse(script.read_text(encoding="utf-8"))):
            for text in {a.value for a in call.args if isinstance(a, ast.Constant)}:
                if isinstance(text, str):
                    found.setdefault(text, []).append(call)
    return found


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
        f"-D{key.value}={item.value if isinstance(item, ast.Constant) else 1}"
        for key, item in zip(value.keys, value.values, strict=True)
        if isinstance(key, ast.Constant)
    )


def options_of(call: ast.Call | None) -> tuple[str, ...]:
    value = keyword(call, "options")
    if not isinstance(value, (ast.List, ast.Tuple)):
        return ()
    return tuple(item.value for item in value.elts if isinstance(item, ast.Constant))


def compile_source(source: Source, compiler, folder: Path, every: bool = False):
    """One run of nvcc for all architectures. A source with a main becomes a whole program."""
    lines = [source.code.rstrip("\n"), *map(instances.instantiation, source.instances)]
    text = "\n".join([f'#line 1 "{source.where}"', *lines, ""])
    whole = re.search(r"^int main\(", source.code, re.MULTILINE)
    headers = compiler.included(source.code, source.folders)
    texts = [source.code, *(data.decode() for data in (headers or {}).values())]
    return compiler(
        f'extern "C" {{\n{text}\n}}\n' if source.wrap else text,
        [
            *("-std=c++17", "-lineinfo", "-Xptxas", "-v", "--threads", "2"),
            *([] if whole else ["--fatbin"]),
            *source.code_for(texts, every or headers is None),
            *source.defines,
            *source.options,
        ],
        folder,
        source.folders,
        nvcc.nvcc_flags(compiler.program) if whole else (),
    )


def spills(log: str) -> list[str]:
    """ "kernel for 'sm_75': 8 bytes" for each kernel that spills, from ptxas's report."""
    report = re.compile(
        r"Compiling entry function '(\w+)' for '(\w+)'.*?(\d+) bytes spill stores", re.S
    )
    return [
        f"{name} for {arch}: {size} bytes" for name, arch, size in report.findall(log) if int(size)
    ]


SOURCES = sources()


@pytest.fixture(scope="session")
def every(request) -> bool:
    return request.config.getoption("--all-architectures")


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.where)
def test_compiles(source: Source, compiler, tmp_path: Path, record_property, every) -> None:
    done = compile_source(source, compiler, tmp_path, every)
    log = done.log
    if re.search(r"//\s*expect:\s*compile error", source.code):
        assert done.status != 0, f"{source.where} is meant not to compile, but does"
        assert "error" in log
        return
    assert done.status == 0, f"{source.where} does not compile:\n{log}"
    warned = [line for line in log.splitlines() if re.search(r"\bwarning\b", line)]
    assert not warned, f"{source.where} compiles with warnings:\n" + "\n".join(warned)
    spilt = spills(log)
    record_property("spills", spilt)
    if not re.search(r"//\s*expect:\s*spills", source.code):
        assert not spilt, f"{source.where} spills registers: {'; '.join(spilt)}"


@pytest.mark.parametrize(
    "source", [s for s in SOURCES if s.where.endswith(".cu")], ids=lambda source: source.where
)
def test_every_template_of_a_file_has_an_instance(source: Source) -> None:
    """A template without one is not compiled at all, so that nothing above would find it broken."""
    missing = templates_without_instance(source.code, source.instances)
    assert not missing, f"{source.where}: add a line `// @instance NAME<...>` for {missing}"


def templates_without_instance(code: str, named: tuple[str, ...]) -> list[str]:
    made = {re.sub(r"^.*::", "", name.partition("<")[0]) for name in named}
    # Or the source launches it, or instantiates it itself.
    used = re.findall(r"(\w+)\s*<[^;{}<]*>\s*(?:<<<|\(\s*[\w:* ]*\)\s*;)", code)
    defined = [kernel.partition("<")[0] for kernel in kernels(code) if "<" in kernel]
    return [name for name in defined if name not in {*made, *used}]


def test_kernels_are_found() -> None:
    """The collector sees what it should: files, inline strings, programs in strings, macros."""
    found = of_python(
        textwrap.dedent(
            '''
            source = """
            __global__ void a() {}
            """
            b = SourceModule('template <int N> __global__ void b() {}', no_extern_c=True)
            c = ct.Kernel("__global__ void c() { int x = N; }", "c", defines={"N": 3, "M": size})
            d = ct.isolated("""
            import cudatut as ct
            ct.Kernel('extern "C" __global__ void d() {}', "d")
            """)
            SourceModule(source, no_extern_c=True)
            message = "a __global__ function"
            e = ct.Kernel("template <int N> __global__ void e() {}", "e<3,4>")
            template = "template <int N> __global__ void f() {}"
            f = ct.Kernel(template, f"f<{size}>")
            '''
        ),
        "x.py",
    )
    assert [s.instances for s in found] == [(), (), (), (), ("e<3, 4>",), ("f<1>",)]
    assert [(s.where, s.wrap, s.defines) for s in found] == [
        ("x.py:2", False, ()),
        ("x.py:5", False, ()),
        ("x.py:6", True, ("-DN=3", "-DM=1")),
        ("x.py:9", False, ()),
        ("x.py:13", False, ()),
        ("x.py:14", False, ()),
    ]
    assert any(source.where.endswith(".cu") for source in SOURCES)
    assert any(".py:" in source.where for source in SOURCES)


TEMPLATE = """
// @rung kernel=k<3> block=256
// @instance k<4, float>
template <int N, typename T = double> __global__ void k(T* x) { x[N] = BROKEN; }
template <int N> __global__ void other(float* x) { x[0] = N; }
"""


def test_templates_are_compiled_for_the_instances_they_name(compiler, tmp_path: Path) -> None:
    named = unique_names(TEMPLATE, ["k<3>", "k<5>"])
    assert named == ("k<3>", "k<4, float>", "k<5>")
    assert templates_without_instance(TEMPLATE, named) == ["other"]
    assert not templates_without_instance(TEMPLATE + "int main() { other<3><<<1, 1>>>(0); }", named)
    for value, works in (("T(1)", True), ("T::none", False)):
        code = TEMPLATE.replace("BROKEN", value)
        done = compile_source(Source("x.cu", code, "sm_120", instances=named), compiler, tmp_path)
        log = done.log
        assert (done.status == 0) is works, log
        assert not works or log.count("Compiling entry function") == 3, log


def test_architectures() -> None:
    assert Source("", "").architectures() == ["75", "80", "86", "89", "90", "100", "120"]
    assert Source("", "", "sm_87").architectures() == ["87", "89", "90", "100", "120"]
    assert Source("", "", "sm_90a").architectures() == ["90a"]
    assert Source("", "// requires: sm_100", "sm_80").architectures() == ["100", "120"]
    for requires, usual in (
        ("sm_75", ["75", "90", "120"]),
        ("sm_87", ["87", "90", "120"]),
        ("sm_90", ["90", "120"]),
        ("sm_90a", ["90a"]),
        ("sm_100", ["100", "120"]),
    ):
        assert Source("", "", requires).architectures(every=False) == usual


@pytest.mark.parametrize(
    ("requires", "text", "every", "front_ends"),
    [
        ("sm_75", "", False, ["75"]),
        ("sm_90", "", False, ["90"]),
        ("sm_75", "#if __CUDA_ARCH__ < 900", False, ["75", "90", "120"]),
        ("sm_75", "#include <cuda_fp16.h>", False, ["75", "90", "120"]),
        ("sm_90a", "", False, ["90a"]),
        ("sm_86", "", True, ["86", "89", "90", "100", "120"]),
    ],
)
def test_code_for_every_architecture_that_is_asked_for(requires, text, every, front_ends) -> None:
    source = Source("", "", requires)
    flags = " ".join(source.code_for(["", text], every))
    assert re.findall(r"arch=compute_(\w+)", flags) == front_ends
    assert re.findall(r"\bsm_(\w+)", flags) == source.architectures(every)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("__global__ void f(float* x) { x[0] = y; }", "undefined"),
        ("__global__ void f(float* x) { int unused; x[0] = 1; }", "warning"),
    ],
)
def test_compiler_objects(code: str, problem: str, compiler, tmp_path: Path) -> None:
    """The compile test can fail: an error and a warning are both seen."""
    done = compile_source(Source("x.cu", code, "sm_120", wrap=True), compiler, tmp_path)
    assert problem in done.log


def test_spills_are_seen(compiler, tmp_path: Path) -> None:
    body = "".join(f"float v{i} = x[{i}];" for i in range(64)) + "__syncthreads();"
    body += (
        "x[threadIdx.x] = " + "*".join(f"(v{i} + {i}.5f * threadIdx.x)" for i in range(64)) + ";"
    )
    body += "".join(f"x[{i} + blockIdx.x] = v{i};" for i in range(64))
    code = f"__global__ void __launch_bounds__(1024, 2) f(float* x) {{ {body} }}"
    done = compile_source(Source("x.cu", code, "sm_90a", wrap=True), compiler, tmp_path)
    assert done.status == 0, done.log
    assert spills(done.log)
