"""Whether kernels have the same machine code at two commits, compiled by the real nvcc."""

import pytest

from cudatut.errors import ToolMissing
from cudatut.gpu.nvcc import find_nvcc, nvcc_version
from cudatut.restamp import machine_code
from cudatut.restamp.compiled import digest_of

SOURCES = ("a/helper.py", "a/add.cu", "a/numbers.cuh")
SAME = ("plus(x[i])", "plus((x[i]))"), ("  if (i < n)", "  bool inside = i < n;\n  if (inside)")
OTHER = ("i < n", "i <= n")


def named(**more):
    """A kernel as a recording names it, with the code that it has now."""
    kernel = {"file": "a/add.cu", "name": "add", "defines": [], "options": [], "arch": "sm_90"}
    kernel |= more
    return kernel | {"code": digest_of(kernel)}


@pytest.fixture(params=["older", "newer"])
def recorded(small, compiler, request):
    """A recording, as older ones are, and one that names its kernels."""
    kernels = {"kernels": [named()]} if request.param == "newer" else {}
    here = nvcc_version(find_nvcc())
    small.record("a/add", *SOURCES, toolchain={"nvcc": here}, **kernels)
    return small


@pytest.mark.parametrize("edit", SAME)
def test_the_same_code(recorded, edit):
    recorded.edit("a/add.cu", *edit)
    assert recorded.load().stale() == ["a/add.cu"]
    assert recorded.restamp().grounds == ("code",)
    assert recorded.load().stale() == []


def test_headers_that_were_merged(recorded):
    more = "__device__ inline float minus(float x) { return x - 1.0f; }\n"
    recorded.commit(**{"b/all.cuh": (recorded.root / "a/numbers.cuh").read_text() + more})
    recorded.edit("a/add.cu", '"numbers.cuh"', '"b/all.cuh"')
    recorded.commit(**{"a/numbers.cuh": None})
    assert recorded.restamp().grounds == ("code",)
    metadata = recorded.load().metadata
    assert metadata["restamped"][0]["added"] == ["b/all.cuh"]
    assert "b/all.cuh" in metadata["sources"] and "a/numbers.cuh" not in metadata["sources"]
    assert "b/all.cuh" in metadata["meanings"]
    recorded.edit("b/all.cuh", "1.0f", "2.0f")
    assert recorded.restamp().refused


def test_another_code(recorded):
    recorded.edit("a/add.cu", *OTHER)
    (reason,) = recorded.restamp().refused
    assert reason.startswith("a/add.cu: the code of ") and "is another" in reason


def test_a_kernel_that_does_not_compile_any_more(recorded):
    recorded.edit("a/add.cu", "i < n", "i < m")
    (reason,) = recorded.restamp().refused
    assert "is another" in reason


def test_another_compiler(small, compiler):
    small.record("a/add", *SOURCES, toolchain={"nvcc": "12.1.0"})
    small.edit("a/add.cu", *SAME[0])
    before = small.load().path.read_bytes()
    (reason,) = small.restamp().refused
    assert reason.startswith("its kernels were compiled by nvcc 12.1.0, and this is nvcc ")
    assert small.load().path.read_bytes() == before


def test_no_compiler(recorded, monkeypatch):
    def none():
        raise ToolMissing("nvcc not found")

    monkeypatch.setattr(machine_code, "find_nvcc", none)
    recorded.edit("a/add.cu", *SAME[0])
    assert recorded.restamp().refused == ("nvcc not found",)


def test_a_compiler_that_fails_tells_why(recorded, monkeypatch, tmp_path):
    """Its process ends with an error: one line says at which commit, and the last words."""
    monkeypatch.setattr(machine_code.sys, "executable", "false")
    recorded.edit("a/add.cu", *SAME[0])
    (reason,) = recorded.restamp().refused
    assert "could not be compiled: it said nothing" in reason
    script = tmp_path / "fails"
    script.write_text("#!/bin/sh\necho Traceback >&2\necho SyntaxError: seven >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setattr(machine_code.sys, "executable", str(script))
    (reason,) = recorded.restamp().refused
    assert reason.endswith("could not be compiled: SyntaxError: seven")


def test_a_kernel_of_the_recording_counts_as_it_was_compiled(small, compiler):
    """With its macros and options; an instance of a template that no line declares."""
    text = (small.root / "a/add.cu").read_text()
    template = text.replace(
        'extern "C" __global__ void add', "template <int N> __global__ void add"
    )
    template = template.replace("plus(x[i])", "plus(x[i]) * N + M;\n  if (N > 5) x[i] = 0")
    small.commit(**{"a/add.cu": template})
    kernels = [named(name="add<7>", defines=["M=3"], options=["-use_fast_math"])]
    assert kernels[0]["code"]
    small.record("a/add", *SOURCES, kernels=kernels)
    small.edit("a/add.cu", "N + M", "N + (M)")
    assert small.restamp().grounds == ("code",)
    small.edit("a/add.cu", "N > 5", "N > 8")  # which is false for 7 alone
    assert small.restamp().refused == ("a/add.cu: the code of add<7> is another",)


def test_a_file_that_no_kernel_includes_is_not_compared(small, compiler):
    small.commit(**{"a/other.cuh": "#define OTHER 1\n"})
    small.record("a/add", *SOURCES, "a/other.cuh", kernels=[named()])
    small.edit("a/other.cuh", "1", "2")
    assert small.restamp().refused == ("a/other.cuh: no recorded kernel includes it",)
    # Of an older recording no more.
    small.record("b/read", "a/words.txt", "a/other.cuh")
    small.edit("a/other.cuh", "2", "3")
    reason = "a/other.cuh: no declared kernel includes it"
    assert small.restamp("b/read")["b/read"].refused == (reason,)


def test_a_kernel_in_a_string_is_not_kept(small, compiler):
    """A recording has the hash of its text alone."""
    kernel = {"text": "0" * 64, "includes": ["a/numbers.cuh"], "name": "k", "defines": []}
    kernel |= {"options": [], "arch": "sm_90", "code": "1" * 64}
    small.record("a/add", *SOURCES, kernels=[kernel])
    small.edit("a/numbers.cuh", "x + 1.0f", "1.0f + x")
    (reason,) = small.restamp().refused
    assert reason == "the kernel k in a string includes a/numbers.cuh"


@pytest.mark.parametrize(
    "script",
    [
        'add = ct.Kernel("a/add.cu", "add", defines={"N": n})',
        'FILE = "a/add.cu"\nadd = ct.Kernel(FILE, "add", defines={"N": 2})',
        'for file in ("a/add.cu",):\n    ct.Kernel(file, "add")',
        'add = ladder["add"]',
    ],
)
def test_macros_that_the_run_may_set(small, compiler, script):
    """Of an older recording the values are not known, and so not what was compiled."""
    small.edit("a/add.py", 'add = ct.Kernel("a/add.cu", "add")', script)
    small.edit("a/add.cu", "#include", "#ifndef N\n#define N 1\n#endif\n#include")
    if "ladder" in script:
        small.edit("a/add.cu", "// Adds.", "// @rung 3 kernel=add block=256")
    small.record("a/add", *SOURCES)
    small.edit("a/add.cu", "plus(x[i])", "plus((x[i]))")
    (reason,) = small.restamp().refused
    assert (
        reason
        == "a/add.cu: the run may set what `#ifndef N` asks for, so which kernels ran is not known"
    )


def test_macros_that_a_call_gives_in_the_open(small, compiler):
    call = 'ct.Kernel("a/add.cu", "add")'
    small.edit("a/add.py", call, f'{call[:-1]}, defines={{"N": 5}})')
    small.edit("a/add.cu", "#include", "#ifndef N\n#define N 1\n#endif\n#include")
    small.edit("a/add.cu", "plus(x[i])", "plus(x[i]) * N;\n  if (N == 5) x[i] = 0")
    small.record("a/add", *SOURCES)
    small.edit("a/add.cu", "plus(x[i])", "plus((x[i]))")
    assert small.restamp().grounds == ("code",)
    small.edit("a/add.cu", "N == 5", "N == 6")
    assert small.restamp().refused


def test_recordings_ask_for_a_commit_once(small, compiler, monkeypatch):
    """To read its files takes as long as to compile a kernel."""
    asked = []
    run = machine_code.Compiler._run

    def counted(self, commit, arguments, given):
        asked.append((commit, arguments[0]))
        return run(self, commit, arguments, given)

    monkeypatch.setattr(machine_code.Compiler, "_run", counted)
    small.commit(**{"c/two.cu": (small.root / "a/add.cu").read_text().replace('"n', '"a/n')})
    small.edit("b/read.py", "open('a/words.txt').read()", "ct.Kernel('c/two.cu', 'add')")
    commit = small.repository.git("rev-parse", "HEAD")
    small.record("a/add", *SOURCES, commit=commit)
    small.record("b/read", "c/two.cu", "a/numbers.cuh", commit=commit)
    small.edit("a/add.cu", *SAME[0])
    small.edit("c/two.cu", *SAME[0])
    found = small.restamp("a/add", "b/read")
    assert [one.grounds for one in found.values()] == [("code",), ("code",)]
    assert len(asked) == len(set(asked)) == 2
