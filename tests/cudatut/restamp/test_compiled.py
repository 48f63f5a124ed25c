"""The machine code of declared kernels, and the kernels of which none is declared."""

import json
import sys
import time
import types

import pytest

from cudatut import recording
from cudatut.fingerprint import code
from cudatut.gpu import kernel
from cudatut.restamp import compiled
from cudatut.restamp.compiled import digest_of, kernels, main, uncovered_sources
from cudatut.restamp.declared import including

ADD = {"file": "a/add.cu", "name": "add", "defines": [], "options": [], "arch": "sm_90"}


def test_the_books_uncovered_kernels_are_found_quickly():
    """`status` lists them."""
    recordings, began = recording.every(), time.process_time()
    found = uncovered_sources(recordings)
    assert time.process_time() - began < 2  # a second on a machine of its own
    known = {name for one in recordings for name in one.metadata["sources"]}
    assert found == sorted(found) and {line.partition(":")[0] for line in found} <= known
    assert "basics/registers/registers.cu: the run may set what `#ifndef RING` asks for" in found


def test_kernels_of_which_no_instance_stands_for_what_ran(small):
    small.commit(
        **{
            "a/plain.cu": "__global__ void k() {}\n",
            "a/template.cu": "template <int N>\n__global__ void k(int *x) { x[0] = N; }\n",
            "a/declared.cu": "template <int N>\n__global__ void k(int *x) { x[0] = N; }\n// @instance k<3>\n",
            "a/macro.cu": "#ifndef N\n#define N 1\n#endif\n__global__ void k(int *x) { x[0] = N; }\n",
            "a/arch.cu": "#if __CUDA_ARCH__ < 900\n#endif\n__global__ void k() {}\n",
            "a/of_header.cu": '#include "sizes.cuh"\n__global__ void k(int *x) { x[0] = N; }\n',
            "a/sizes.cuh": "#ifndef N\n#define N 1\n#endif\n",
            "a/strings.py": 'K = f"""\n#include "sizes.cuh"\n__global__ void k() {{ {1} }}"""\n',
            "a/quiet.py": 'K = f"""__global__ void k() {{ {1} }}"""\n',
        }
    )
    names = [path.relative_to(small.root).as_posix() for path in (small.root / "a").iterdir()]
    small.record("b/read", *sorted(name for name in names if name != "a/add.py"))
    found = uncovered_sources([small.load("b/read")])
    assert found == [
        "a/macro.cu: the run may set what `#ifndef N` asks for",
        "a/of_header.cu: the run may set what `#ifndef N` asks for",
        "a/strings.py: its text is made by the run",
        "a/template.cu: no instance of k is declared",
    ]
    small.forge("b/read", lambda metadata, _: metadata.update(kernels=[]))
    assert uncovered_sources([small.load("b/read")]) == []  # it names them itself


def test_sources_that_include_a_file(small):
    small.commit(**{"b/far.cu": '#include "a/numbers.cuh"\n__global__ void far() {}\n'})
    small.commit(
        **{"b/inline.py": 'K = """\n#include "b/near.cuh"\n__global__ void near() {}"""\n'}
    )
    small.commit(
        **{"b/near.cuh": '#include "a/numbers.cuh"\n', "b/none.cu": "__global__ void none() {}"}
    )
    found = {source.where for source in including(["a/numbers.cuh"])}
    assert found == {"examples/a/add.cu", "examples/b/far.cu", "examples/b/inline.py:1"}
    assert {source.where for source in including(["b/none.cu"])} == {"examples/b/none.cu"}
    assert including(["a/words.txt"]) == []


def test_the_process_that_looks_at_a_tree(small, compiler, capsys, monkeypatch):
    def asked(*arguments, given):
        monkeypatch.setattr(
            compiled.sys, "stdin", type("Stdin", (), {"read": lambda self: json.dumps(given)})()
        )
        main(list(arguments))
        return json.loads(capsys.readouterr().out)

    declared = asked("declared", "sm_90", given=["a/numbers.cuh"])
    assert declared == kernels("sm_90", ["a/numbers.cuh"])
    (one,) = declared.values()
    assert (one["file"], one["includes"], one["uncovered"]) == ("a/add.cu", ["a/numbers.cuh"], "")
    assert asked("recorded", given=[ADD, ADD | {"name": "none"}]) == [one["code"]["add"], None]
    with pytest.raises(SystemExit, match="python -m"):
        main(["other"])


def test_a_kernel_is_compiled_once(small, compiler, monkeypatch):
    """And again where anything is another on which its code depends."""
    runs = []
    run = compiled.subprocess.run

    def counted(command, **options):
        if "--cubin" in command:
            runs.append(command)
        return run(command, **options)

    monkeypatch.setattr(compiled.subprocess, "run", counted)
    first = digest_of(ADD)
    assert first and digest_of(ADD) == first and len(runs) == 1
    assert digest_of(ADD | {"arch": "sm_80"}) != first and len(runs) == 2
    assert digest_of(ADD | {"defines": ["N=3"]}) == first and len(runs) == 3
    assert digest_of(ADD | {"options": ["-Iexamples/b"]}) == first and len(runs) == 4
    small.edit("a/numbers.cuh", "1.0f", "2.0f")
    assert digest_of(ADD) not in (None, first) and len(runs) == 5
    small.edit("a/numbers.cuh", "2.0f", "1.0f")
    assert digest_of(ADD) == first and len(runs) == 5
    # In another folder, as the tree of another commit is.
    elsewhere = small.root.parent / "elsewhere"
    small.root.rename(elsewhere)
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(elsewhere))
    assert digest_of(ADD | {"options": ["-Iexamples/b"]}) == first and len(runs) == 5


@pytest.mark.parametrize(
    "recorded",
    [
        ADD | {"file": "a/none.cu"},
        {key: ADD[key] for key in ADD if key != "file"} | {"text": "0" * 64, "includes": []},
        ADD | {"options": ["--no-such-option"]},
    ],
)
def test_a_kernel_without_code(small, compiler, recorded):
    assert digest_of(recorded) is None


def test_the_code_is_that_of_ct_kernel(small, compiler, monkeypatch):
    """A recording has the digest of what PyCUDA had compiled; here nvcc is called as PyCUDA calls it."""
    made = {}

    def as_pycuda(source, nvcc, options, no_extern_c, arch, include_dirs, cache_dir):
        assert cache_dir is False  # cudatut keeps what was compiled
        whole = source if no_extern_c else f'extern "C" {{\n{source}\n}}\n'
        flags = [*options, "-arch", arch, *(f"-I{folder}" for folder in include_dirs)]
        done = compiler(whole, ["--cubin", *flags], small.root, output=True)
        assert done.status == 0, done.log
        made[whole] = done.output
        return done.output

    module = types.ModuleType("pycuda.compiler")
    module.compile = as_pycuda
    monkeypatch.setitem(sys.modules, "pycuda", types.ModuleType("pycuda"))
    monkeypatch.setitem(sys.modules, "pycuda.compiler", module)
    monkeypatch.setenv("PYCUDA_CACHE_DIR", str(small.root / "cubins"))
    driver = types.SimpleNamespace(CompileError=ZeroDivisionError)
    monkeypatch.setattr(kernel, "pycuda_driver", lambda: driver)
    text = (small.root / "a/add.cu").read_text()
    small.commit(
        **{
            "a/plain.cu": text.replace('extern "C" ', ""),
            "a/template.cu": text.replace('extern "C"', "template <int N>") + "// N\n",
        }
    )
    for one in (
        ADD,
        ADD | {"file": "a/plain.cu", "defines": ["N=3"], "options": ["-use_fast_math"]},
        ADD | {"file": "a/template.cu", "name": "add<3>", "arch": "sm_80"},
    ):
        defines = dict(macro.split("=") for macro in one["defines"])
        more = {"options": one["options"], "arch": one["arch"], "load": False}
        there = kernel.Kernel(one["file"], one["name"], defines, **more)
        assert code.digest(there.cubin, there.symbol) == digest_of(one)
    assert len(made) == 3


def test_what_is_python_and_what_is_not():
    from cudatut.restamp.declared import is_python

    assert is_python("import cudatut as ct\nx = 1\n") and is_python("    x = 1\n    y = 2\n")
    assert not is_python("__global__ void k() {}")
