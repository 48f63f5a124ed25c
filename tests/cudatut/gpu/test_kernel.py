"""Kernels as far as they go without a GPU."""

from types import SimpleNamespace

import numpy as np
import pytest

import cudatut as ct
from cudatut.gpu import kernel
from cudatut.gpu.kernel import explain_compile_error
from cudatut.gpu.signature import parameters


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


def passed(ctype, value):
    """What a launch hands over for a number."""
    (parameter,) = parameters(f"__global__ void k({ctype} x) {{}}", "k")
    return kernel.Kernel._number(SimpleNamespace(name="k"), parameter, value)


@pytest.mark.parametrize(
    ("ctype", "value"),
    [
        ("float", 1e300), ("float", -1e39), ("half", 70000.0), ("half", np.float32(1e5)), ("int", 2**31), ("int", -(2**31) - 1),
        ("unsigned", -1), ("unsigned char", 256), ("long long", 2**63), ("size_t", -1),
    ],
)  # fmt: skip
def test_a_number_that_does_not_fit_is_refused(ctype, value):
    with pytest.raises(ValueError, match=r"k: parameter 'x' .*does not fit"):
        passed(ctype, value)


def test_a_number_that_fits_arrives():
    assert passed("float", 3e38) == np.float32(3e38)
    assert passed("half", 65504.0).view("float16") == 65504
    assert np.isinf(passed("float", float("inf"))) and np.isnan(passed("float", float("nan")))
    assert passed("float", 1e-50) == 0 and passed("double", 1e300) == 1e300
    for ctype, ends in (("int", (-(2**31), 2**31 - 1)), ("unsigned char", (0, 255))):
        assert [passed(ctype, end) for end in ends] == list(ends)
    with pytest.raises(TypeError, match="takes an integer, but got 1.5"):
        passed("int", 1.5)
