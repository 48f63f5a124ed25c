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
