"""Kernels as far as they go without a GPU."""

import pytest

import cudatut as ct
from cudatut.gpu import kernel
from cudatut.gpu.kernel import explain_compile_error


def test_cdiv():
    assert [ct.cdiv(n, 256) for n in (0, 1, 256, 257)] == [0, 1, 1, 2]


def test_compile_errors_show_their_lines():
    text = explain_compile_error(
        'inline.cu(2): error: identifier "x" is undefined\n1 error', "a\nb = x;\nc", "inline.cu"
    )
    assert text.splitlines()[1:] == [
        '  inline.cu, line 2: error: identifier "x" is undefined',
        "       1 | a",
        "       2 | b = x;",
    ]
    assert "nvcc fatal: no host compiler" in explain_compile_error(
        "nvcc fatal: no host compiler", "", "inline.cu"
    )


@pytest.mark.parametrize("watched", ["racecheck", "initcheck", "synccheck", "ncu"])
def test_only_memcheck_compiles_for_the_other_tools(monkeypatch, watched):
    monkeypatch.setenv("CUDATUT_TOOL", watched)
    monkeypatch.setattr(kernel, "Kernel", None)  # calling it would raise
    monkeypatch.setattr(kernel, "device", None)
    assert kernel.compile_ahead([("gemm/final.cu", "sgemm<1>")]) == {}


def test_what_does_not_compile_is_told_by_instance(monkeypatch):
    ran = []

    def compiled(source, name, load):
        ran.append((source, name, load))
        if name == "bad":
            raise ct.KernelCompileError("no")
        if name == "nowhere":
            raise FileNotFoundError(source)

    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    monkeypatch.setattr(kernel, "Kernel", compiled)
    monkeypatch.setattr(kernel, "device", lambda: None)
    found = kernel.compile_ahead([("a.cu", "good"), ("a.cu", "bad"), ("a.cu", "good")])
    assert list(found) == [("a.cu", "bad")] and str(found["a.cu", "bad"]) == "no"
    assert sorted(ran) == [("a.cu", "bad", False), ("a.cu", "good", False)]
    with pytest.raises(FileNotFoundError):
        kernel.compile_ahead([("b.cu", "nowhere"), ("a.cu", "good")])
