"""Every kernel of the book, compiled by the real nvcc.

Needs nvcc (a toolkit's, or the one that `make test` installs from PyPI) and a host compiler, no GPU. For the lowest
compute capability that a kernel claims, for 9.0 and for 12.0; with --all-architectures or --full for every one that it claims.

`cudatut.restamp.declared` says which kernels there are, and which comments in a source say what is meant.
"""

import re
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from cudatut.errors import ToolMissing
from cudatut.gpu import nvcc
from cudatut.restamp.declared import (
    Source,
    of_python,
    sources,
    templates_without_instance,
    unique_names,
)
from cudatut.rules import kernels

ROOT = Path(__file__).resolve().parents[2]


def compile_source(source: Source, compiler, folder: Path, every: bool = False):
    """One run of nvcc for all architectures. A source with a main becomes a whole program."""
    found = compiler.included(source.code, source.folders)
    headers = None if found is None else [data.decode() for data in found.values()]
    return compiler(
        kernels.compiled_text(source),
        kernels.flags(source, headers, every),
        folder,
        source.folders,
        nvcc.nvcc_flags(compiler.program) if kernels.is_program(source) else (),
    )


SOURCES = sources((ROOT / "cudatut").rglob("*.cu"))


@pytest.fixture(scope="session")
def every(request) -> bool:
    return any(map(request.config.getoption, ("--all-architectures", "--full")))


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.where)
def test_compiles(source: Source, compiler, tmp_path: Path, record_property, every) -> None:
    done = compile_source(source, compiler, tmp_path, every)
    record_property("spills", kernels.spills(done.log))
    said = kernels.problems(source, done.status, done.log)
    assert not said, f"{source.where}: {'; '.join(said)}\n{done.log}"


@pytest.mark.parametrize(
    "source", [s for s in SOURCES if s.where.endswith(".cu")], ids=lambda source: source.where
)
def test_every_template_of_a_file_has_an_instance(source: Source) -> None:
    """A template without one is not compiled at all, so that nothing above would find it broken."""
    missing = kernels.without_instance(source)
    assert not missing, f"{source.where}: {'; '.join(missing)}"


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
    assert kernels.problems(Source("x.cu", code, "sm_120", wrap=True), done.status, done.log)


def test_spills_are_seen(compiler, tmp_path: Path) -> None:
    body = "".join(f"float v{i} = x[{i}];" for i in range(64)) + "__syncthreads();"
    body += (
        "x[threadIdx.x] = " + "*".join(f"(v{i} + {i}.5f * threadIdx.x)" for i in range(64)) + ";"
    )
    body += "".join(f"x[{i} + blockIdx.x] = v{i};" for i in range(64))
    code = f"__global__ void __launch_bounds__(1024, 2) f(float* x) {{ {body} }}"
    done = compile_source(Source("x.cu", code, "sm_90a", wrap=True), compiler, tmp_path)
    assert done.status == 0, done.log
    assert kernels.spills(done.log)
    source = Source("x.cu", code)
    (said,) = kernels.problems(source, 0, done.log)
    assert "registers spill (f for sm_90a" in said
    assert not kernels.problems(replace(source, code=code + "// expect: spills"), 0, done.log)


def test_what_is_meant_not_to_compile() -> None:
    meant = Source("x.cu", "// expect: compile error\n")
    assert not kernels.problems(meant, 1, "x.cu(1): error: y is undefined")
    assert "is meant not to compile" in kernels.problems(meant, 0, "")[0]
    refused = kernels.problems(Source("x.cu", ""), 1, "note\nx.cu(1): error: y is undefined\n")
    assert refused == ["nvcc refuses it: x.cu(1): error: y is undefined"]


def test_a_stub_may_leave_a_name_unused() -> None:
    unused, other = (
        "x.cu(1): warning #177-D: y was declared but never referenced",
        "x.cu(2): warning #1-D: z",
    )
    log = f"{unused}\n{other}\n"
    assert len(kernels.problems(Source("x.cu", ""), 0, log)) == 2
    assert kernels.problems(kernels.Stub("x.cu", ""), 0, log) == [f"nvcc warns: {other}"]


# --- without a compiler -----------------------------------------------------------------------------


def test_a_stub_is_compiled_for_its_oldest_architecture_and_one_of_today() -> None:
    for requires, wanted in (("sm_75", ["75", "90"]), ("sm_90", ["90"]), ("sm_100", ["100"])):
        assert kernels.Stub("x.cu", "", requires).architectures() == wanted


def test_what_nvcc_is_given_keeps_its_lines_and_has_its_instances_behind() -> None:
    source = Source("x.py:7", "template <int N> __global__ void k() {}\n\n", instances=("k<3>",))
    *before, instance, end = kernels.compiled_text(source).split("\n")
    assert before == ['#line 1 "x.py:7"', "template <int N> __global__ void k() {}"]
    assert "k<3>" in instance and end == ""
    wrapped = kernels.compiled_text(Source("x.cu", "int x;", wrap=True))
    assert wrapped == 'extern "C" {\n#line 1 "x.cu"\nint x;\n\n}\n'


def test_the_flags_of_a_source() -> None:
    source = Source("x.cu", "", "sm_90", defines=("-DN=3",), options=("-O1",))
    first = ["-std=c++17", "-lineinfo", "-Xptxas", "-v", "--threads", "2"]
    found = kernels.flags(source, [])
    assert found[:7] == [*first, "--fatbin"] and found[-2:] == ["-DN=3", "-O1"]
    assert found[7:-2] == source.code_for([""])
    # A header may differ by architecture; one that nobody knows does.
    differing = source.code_for([""], every=True)
    assert differing != source.code_for(["#if __CUDA_ARCH__"]) != source.code_for([""])
    assert kernels.flags(source, ["#if __CUDA_ARCH__"])[7:-2] == source.code_for(
        ["#if __CUDA_ARCH__"]
    )
    assert (
        kernels.flags(source, None)[7:-2]
        == kernels.flags(source, [], every=True)[7:-2]
        == differing
    )
    program = replace(source, code="#include <x>\nint main() {}\n")
    assert kernels.is_program(program) and "--fatbin" not in kernels.flags(program, [])
    assert not kernels.is_program(Source("x.cu", "// int main() {}\n"))


PTXAS = """ptxas info    : Compiling entry function 'a' for 'sm_75'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'b' for 'sm_90'
    8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
"""


def test_kernels_that_spill_are_told_unless_they_are_meant_to_or_to_be_written() -> None:
    assert kernels.spills(PTXAS) == ["b for sm_90: 8 bytes"]
    (said,) = kernels.problems(Source("x.cu", ""), 0, PTXAS)
    assert said.startswith("registers spill (b for sm_90: 8 bytes): use fewer")
    assert kernels.problems(Source("x.cu", "// expect: spills"), 0, PTXAS) == []
    assert kernels.problems(kernels.Stub("x.cu", ""), 0, PTXAS) == []


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("a\n  x.cu(1): error: no \nx.cu(2): error: too", "x.cu(1): error: no"),
        ("terrors\nthe end\n", "terrors\nthe end"),
        ("y" * 400, "y" * 300),
        (" \n", "without a word"),
    ],
)
def test_what_nvcc_says_of_what_it_refuses(log, said) -> None:
    assert kernels.problems(Source("x.cu", ""), 1, log) == [f"nvcc refuses it: {said}"]


def test_a_template_that_nothing_compiles_is_told() -> None:
    code = "template <int N> __global__ void k() {}\n"
    said = "nothing compiles the template k: add a line `// @instance k<...>`"
    assert kernels.without_instance(Source("x.cu", code)) == [said]
    assert kernels.without_instance(Source("x.cu", code, instances=("k<3>",))) == []


def test_nvcc_is_asked_in_a_folder_of_its_own(monkeypatch, tmp_path: Path) -> None:
    asked = []

    def run(command, **how):
        asked.append((command, how["cwd"], how["env"]))
        return kernels.subprocess.CompletedProcess(command, 3, "out ", "err")

    monkeypatch.setattr(kernels.subprocess, "run", run)
    monkeypatch.setattr(nvcc, "find_host_compiler", lambda: "g++")
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: Path("/nvcc"))
    monkeypatch.setattr(nvcc, "nvcc_env", lambda program: {"of": program})
    monkeypatch.setattr(nvcc, "nvcc_flags", lambda program: ["-for-programs"])
    compiles = kernels.Nvcc.found()
    source = Source("x.cu", "__global__ void k() {}\n", folders=(tmp_path / "a", tmp_path / "b"))
    assert compiles(source, tmp_path) == (3, "out err")
    program = replace(source, code="int main() {}\n")
    compiles(program, tmp_path)
    (command, cwd, env), (other, *_) = asked
    assert cwd == tmp_path and env == {"of": Path("/nvcc")}
    folders = [f"-I{tmp_path / 'a'}", f"-I{tmp_path / 'b'}"]
    assert command == [
        Path("/nvcc"),
        *kernels.flags(source, []),
        *folders,
        "-o",
        "out",
        "source.cu",
    ]
    assert other[-5:] == [folders[1], "-for-programs", "-o", "out", "source.cu"]
    assert (tmp_path / "source.cu").read_text() == kernels.compiled_text(program)

    header = "#if __CUDA_ARCH__ < 900  // 中\n#endif\n"
    (tmp_path / "own.cuh").write_text(header, encoding="utf-8")
    including = replace(source, code='#include "own.cuh"\n', folders=(tmp_path,))
    compiles(including, tmp_path)
    assert asked[2][0][1:-4] == kernels.flags(including, [header]) != kernels.flags(including, [])

    def none():
        raise ToolMissing("no host compiler")

    monkeypatch.setattr(nvcc, "find_host_compiler", none)
    with pytest.raises(ToolMissing, match="no host compiler"):
        kernels.Nvcc.found()


HEADER = "# ---\n# jupyter:\n#   cudatut: {title: {en: A, zh: 甲}, requires: sm_90}\n# ---\n"
CELLS = "# %% [markdown]\n# A.\n\n# %% program\n"


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Call it with a file's name below examples/a/x and its text."""
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path / "examples"))

    def write(name: str, text: str) -> Path:
        path = tmp_path / "examples" / "a" / "x" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_kernels_of_files_are_told_with_their_places(written) -> None:
    script = written("chapter.py", f'{HEADER}{CELLS}K = """__global__ void k() {{}}"""\n')
    module = written("more.py", 'K = """\n__global__ void m() {}\n"""\n')
    file = written("x.cu", "template <int N> __global__ void f() {}\n")
    said, compiled = [], []

    def compiler(source, folder):
        assert Path(folder).is_dir()
        compiled.append((source.where, source.requires))
        return (1, "error: no") if source.line else (0, "")

    found = kernels.of_files([script, module, file], [], compiler, said.append)
    assert list(map(str, found)) == [
        "examples/a/x/chapter.py:9: nvcc refuses it: error: no",
        "examples/a/x/more.py:1: nvcc refuses it: error: no",
        "examples/a/x/x.cu: nothing compiles the template f: add a line `// @instance f<...>`",
    ]
    places = ["examples/a/x/chapter.py:9", "examples/a/x/more.py:1", "examples/a/x/x.cu"]
    assert said == [f"compiling {place}" for place in places]
    assert [where for where, _ in compiled] == places
    # A file of the chapter's own script is compiled for what that claims; others for all.
    assert [requires for _, requires in compiled] == ["sm_90", "sm_75", "sm_75"]
    script.write_text(script.read_text("utf-8") + '\nct.Kernel("a/x/x.cu", "f<3>")\n', "utf-8")
    compiled.clear()
    kernels.of_files([script, file], [], compiler)
    assert compiled[-1] == ("examples/a/x/x.cu", "sm_90")


def test_of_stubs_what_their_chapter_has_not_compiled_is_compiled(written) -> None:
    from types import SimpleNamespace

    kernel = 'K = """__global__ void {}() {{}}"""\n'
    written("exercises.py", f"# %% stub-1\n{kernel.format('s')}")
    script = written("chapter.py", f"{HEADER}{CELLS}{kernel.format('k')}")

    def exercise(stub):
        return SimpleNamespace(
            chapter="a/x", number=1, file="a_x_1", given="", stub=stub, check="", requires="sm_90a"
        )

    compiled = []

    def compiler(source, folder):
        compiled.append((source.code, source.requires, type(source)))
        return (1, "error: no") if isinstance(source, kernels.Stub) else (0, "")

    stubs = [exercise(kernel.format("s")), exercise(kernel.format("k")), exercise("x = = 1")]
    found = kernels.of_files([script], stubs, compiler)
    assert [code.split()[2] for code, *_ in compiled] == ["k()", "s()"]
    assert compiled[1][1:] == ("sm_90a", kernels.Stub)
    assert list(map(str, found)) == ["examples/a/x/exercises.py:1: nvcc refuses it: error: no"]
    (stub,) = kernels.of_stub(stubs[0])
    assert stub.folders == (script.parent, script.parents[2])
