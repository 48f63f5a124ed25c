"""What the text of an example declares of its kernels."""

import ast

import pytest

from cudatut.restamp import declared


@pytest.mark.parametrize(
    ("how", "wrapped"),
    [
        ("", True),
        ("no_extern_c=True", False),
        ("options=['-O3'], no_extern_c=True", False),
        ("no_extern_c=False, options=['-O3']", True),
        ("no_extern_c=flag", True),
    ],
)
def test_a_source_is_wrapped_in_extern_c_unless_its_call_says_otherwise(how, wrapped):
    call = ast.parse(f"SourceModule(source, {how})", mode="eval").body
    assert declared.kernel("__global__ void k() {}", "x.py:1", call).wrap is wrapped


def test_a_template_whose_default_is_an_instance_of_another_has_its_own_name():
    code = "template <class T = tile<4>> __global__ void k(T x) {}"
    assert declared.templates_without_instance(code, ()) == ["k"]
    assert declared.templates_without_instance(code, ("k<int>",)) == []
